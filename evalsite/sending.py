"""Sends folders of trace files to an Evalsite: only what is not there yet."""

from __future__ import annotations

import hashlib
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from evalsite.api_client import ApiClient, Refused
from evalsite.walking import files_below

ASKED_AT_ONCE = 50
_CHUNK = 1024 * 1024
_POLL_SECONDS = 1.0
_SAID_EVERY_SECONDS = 5.0
# Every entry has the same time, so that the same files make the same bytes.
_NO_TIME = (1980, 1, 1, 0, 0, 0)

Say = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Parcel:
    """Something to send as one upload: a file, or a folder that becomes one zip."""

    path: Path
    name: str

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The bytes, seekable; raises `OSError` when they cannot be had."""
        if not self.path.is_dir():
            with self.path.open("rb") as stream:
                yield stream
            return
        with tempfile.TemporaryFile() as packed:
            _pack(self.path, cast("BinaryIO", packed))
            yield cast("BinaryIO", packed)


@dataclass
class Outcome:
    """What became of the parcels; each is in one of the lists or counted in one."""

    sent: list[dict[str, Any]] = field(default_factory=list)
    here: list[dict[str, Any]] = field(default_factory=list)
    would_send: int = 0
    not_sent: int = 0
    not_read: int = 0

    @property
    def is_good(self) -> bool:
        """Whether everything is there, and read as far as it was waited for."""
        return not (self.not_sent or self.not_read)

    def summary(self) -> str:
        """All counts in one sentence."""
        total = len(self.sent) + len(self.here) + self.would_send + self.not_sent
        parts = [
            f"{count:,} {words}"
            for count, words in (
                (len(self.sent), "sent"),
                (self.would_send, "would be sent"),
                (len(self.here), "here already"),
                (self.not_sent, "not sent"),
                (self.not_read, "not read"),
            )
            if count
        ]
        files = "1 file" if total == 1 else f"{total:,} files"
        return f"{files}: {', '.join(parts) or 'nothing to send'}."


def parcels_of(paths: Sequence[Path], *, zip_folders: bool) -> list[Parcel]:
    """What to send for `paths`, in order, each named from the folder it was found in."""
    found = []
    for path in paths:
        if path.is_dir() and zip_folders:
            found.append(Parcel(path, f"{path.resolve().name}.zip"))
        elif path.is_dir():
            top = path.resolve().name
            found += [
                Parcel(file, f"{top}/{file.relative_to(path).as_posix()}")
                for file in files_below([path])
            ]
        else:
            found.append(Parcel(path, path.name))
    return found


@dataclass
class Sender:
    """Sends parcels through a client, and says what it does, a line for each."""

    client: ApiClient
    say: Say
    slug: str = ""
    dry_run: bool = False
    may_ask: bool = True
    outcome: Outcome = field(default_factory=Outcome)

    def send_all(self, parcels: Sequence[Parcel]) -> Outcome:
        """Send what is not there yet; raises `Refused` when the token is no good."""
        for group in _groups(enumerate(parcels, 1)):
            hashes = {number: self._digest(parcel) for number, parcel in group}
            known = self._known([value for value in hashes.values() if value])
            for number, parcel in group:
                place = f"[{number}/{len(parcels)}] {parcel.name}"
                if digest := hashes[number]:
                    self._send_one(parcel, place, known.get(digest))
        return self.outcome

    def _digest(self, parcel: Parcel) -> str:
        """The SHA-256 of a parcel; empty, and said, when it cannot be sent at all."""
        digest, size = hashlib.sha256(), 0
        try:
            with parcel.opened() as stream:
                while chunk := stream.read(_CHUNK):
                    digest.update(chunk)
                    size += len(chunk)
        except OSError as error:
            self._failed(
                parcel.name, f"It cannot be opened: {error.strerror or error}."
            )
            return ""
        if not size:
            self._failed(parcel.name, "It is empty: it has 0 bytes.")
            return ""
        return digest.hexdigest()

    def _known(self, hashes: list[str]) -> dict[str, dict[str, Any]]:
        if not hashes or not self.may_ask:
            return {}
        try:
            return self.client.uploads_with(sorted(set(hashes)))
        except Refused as refusal:
            if refusal.status != 403:
                raise
            # A token that may only upload sends everything: it changes nothing twice.
            self.may_ask = False
            return {}

    def _send_one(
        self, parcel: Parcel, place: str, known: dict[str, Any] | None
    ) -> None:
        if known is not None:
            self.outcome.here.append(known)
            self.say(f"{place}: here already, {known['page']}")
        elif self.dry_run:
            self.outcome.would_send += 1
            self.say(f"{place}: would be sent")
        else:
            self._transfer(parcel, place)

    def _transfer(self, parcel: Parcel, place: str) -> None:
        try:
            with parcel.opened() as stream:
                size = stream.seek(0, 2)
                watched = _Watched(stream, size, lambda words: self.say(place + words))
                upload, is_new = self.client.send(
                    watched, size=size, name=parcel.name, slug=self.slug
                )
        except OSError as error:
            self._failed(place, f"It cannot be opened: {error.strerror or error}.")
        except Refused as refusal:
            if refusal.status in {401, 403}:
                raise
            self._failed(place, str(refusal))
        else:
            (self.outcome.sent if is_new else self.outcome.here).append(upload)
            words = "sent" if is_new else "here already"
            self.say(f"{place}: {words}, {upload['page']}")

    def _failed(self, place: str, sentence: str) -> None:
        self.outcome.not_sent += 1
        self.say(f"{place}: not sent. {sentence}")

    def wait(self) -> None:
        """Wait until all that is there has been read, and say what was found."""
        waiting = {
            one["sha256"]: one for one in [*self.outcome.sent, *self.outcome.here]
        }
        while waiting:
            for group in _groups(sorted(waiting)):
                found = self.client.uploads_with(group)
                for digest in group:
                    self._look(waiting, digest, found.get(digest))
            if waiting:
                time.sleep(_POLL_SECONDS)

    def _look(
        self,
        waiting: dict[str, dict[str, Any]],
        digest: str,
        upload: dict[str, Any] | None,
    ) -> None:
        if upload is None:
            name = waiting.pop(digest)["name"]
            self.outcome.not_read += 1
            self.say(f"{name}: not read. It was removed from the site meanwhile.")
        elif upload["state"] in {"done", "failed"}:
            del waiting[digest]
            self._say_what_was_read(upload)

    def _say_what_was_read(self, upload: dict[str, Any]) -> None:
        if upload["state"] == "failed":
            self.outcome.not_read += 1
            self.say(f"{upload['name']}: not read. {upload['failure']}")
            return
        self.say(
            f"{upload['name']}: {upload['format']}, {upload['traces']:,} traces, "
            f"{upload['model_calls']:,} model calls ({upload['usage_known']:,} with "
            f"usage), {upload['tool_calls']:,} tool calls, {upload['rejected']:,} "
            f"records not read, {upload['signals']:,} signals"
        )


class _Watched:
    """A file that says every few seconds how much of it was read."""

    def __init__(self, stream: BinaryIO, size: int, say: Say) -> None:
        self._stream, self._size, self._say = stream, size, say
        self._said_at = time.monotonic()

    def seek(self, offset: int) -> int:
        return self._stream.seek(offset)

    def read(self, size: int = -1) -> bytes:
        if time.monotonic() - self._said_at > _SAID_EVERY_SECONDS:
            self._said_at = time.monotonic()
            self._say(f": {self._stream.tell() * 100 // self._size} % sent")
        return self._stream.read(size)


def _groups(things: Iterable[T]) -> Iterator[list[T]]:
    """The things in lists of as many as are asked for at once."""
    rest = iter(things)
    while group := list(islice(rest, ASKED_AT_ONCE)):
        yield group


def _pack(folder: Path, target: BinaryIO) -> None:
    """Write the files below `folder` as one zip; the same files make the same bytes."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in files_below([folder]):
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _NO_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            with path.open("rb") as stream, packed.open(entry, "w") as member:
                while chunk := stream.read(_CHUNK):
                    member.write(chunk)
    target.seek(0)
