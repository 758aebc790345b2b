"""Sends folders of trace files to an Evalsite: only what is not there yet."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from evalsite.api_client import ApiClient, Refused
from evalsite.packing import CannotPack, packed
from evalsite.walking import files_below

ASKED_AT_ONCE = 50
_CHUNK = 1024 * 1024
_POLL_SECONDS = 1.0
_SAID_EVERY_SECONDS = 5.0
_NO_FILE = "0" * 64
_TOO_LARGE = 413
_EACH = "A folder is sent as one zip; --each sends its files one by one."

Say = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Parcel:
    """Something to send as one upload: a file, or a folder that becomes one zip."""

    path: Path
    name: str
    is_folder: bool = False

    def open(self, say: Say) -> BinaryIO:
        """The bytes, seekable; raises `OSError` or `CannotPack`."""
        return packed(self.path, say=say) if self.is_folder else self.path.open("rb")


@dataclass(frozen=True)
class _Ready:
    """A parcel that is open, so that what is sent is what was asked about."""

    parcel: Parcel
    place: str
    stream: BinaryIO
    size: int
    sha256: str


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

    @property
    def total(self) -> int:
        """How many parcels were looked at."""
        return len(self.sent) + len(self.here) + self.would_send + self.not_sent

    def summary(self) -> str:
        """All counts in one sentence."""
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
        files = counted(self.total, "file")
        return f"{files}: {', '.join(parts) or 'nothing to send'}."


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 trace", "1,200 traces"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def parcels_of(paths: Sequence[Path], *, each: bool) -> list[Parcel]:
    """What to send for `paths`, in order: a folder as one zip, or `each` of its files."""
    found = []
    for path in paths:
        top = path.resolve().name or "folder"
        if not path.is_dir():
            found.append(Parcel(path, path.name))
        elif not each:
            found.append(Parcel(path, f"{top}.zip", is_folder=True))
        else:
            found += [
                Parcel(file, f"{top}/{file.relative_to(path).as_posix()}")
                for file in files_below([path])
            ]
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
        # A folder is not packed for a server that does not want it.
        self._known([_NO_FILE])
        places = [
            (parcel, f"[{number}/{len(parcels)}] {parcel.name}")
            for number, parcel in enumerate(parcels, 1)
        ]
        for group in _groups_to_send(places):
            with ExitStack() as open_files:
                self._send_group(group, open_files)
        return self.outcome

    def _send_group(
        self, group: list[tuple[Parcel, str]], open_files: ExitStack
    ) -> None:
        opened = [self._ready(parcel, place, open_files) for parcel, place in group]
        ready = [one for one in opened if one]
        known = self._known([one.sha256 for one in ready])
        for one in ready:
            self._send_one(one, known.get(one.sha256))

    def _ready(
        self, parcel: Parcel, place: str, open_files: ExitStack
    ) -> _Ready | None:
        """A parcel with its SHA-256; `None`, and said, when it cannot be sent at all."""
        digest, size = hashlib.sha256(), 0
        try:
            stream = parcel.open(lambda words: self.say(f"{place}: {words}"))
            open_files.enter_context(stream)
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
                size += len(chunk)
        except CannotPack as error:
            self._failed(place, str(error))
            return None
        except OSError as error:
            self._failed(place, f"It cannot be opened: {error.strerror or error}.")
            return None
        if not size:
            self._failed(place, "It is empty: it has 0 bytes.")
            return None
        return _Ready(parcel, place, stream, size, digest.hexdigest())

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

    def _send_one(self, ready: _Ready, known: dict[str, Any] | None) -> None:
        if known is not None:
            self.outcome.here.append(known)
            self.say(f"{ready.place}: here already, {known['page']}")
        elif self.dry_run:
            self.outcome.would_send += 1
            self.say(f"{ready.place}: would be sent")
        else:
            self._transfer(ready)

    def _transfer(self, ready: _Ready) -> None:
        place, size = ready.place, ready.size
        watched = _Watched(ready.stream, size, lambda words: self.say(place + words))
        try:
            upload, is_new = self.client.send(
                watched, size=size, name=ready.parcel.name, slug=self.slug
            )
        except OSError as error:
            self._failed(place, f"It cannot be read: {error.strerror or error}.")
        except Refused as refusal:
            if refusal.status in {401, 403}:
                raise
            is_too_large = refusal.status == _TOO_LARGE and ready.parcel.is_folder
            self._failed(place, f"{refusal} {_EACH}" if is_too_large else str(refusal))
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
            f"{upload['name']}: {upload['format']}, {counted(upload['traces'], 'trace')}, "
            f"{counted(upload['model_calls'], 'model call')} "
            f"({upload['usage_known']:,} with usage), "
            f"{counted(upload['tool_calls'], 'tool call')}, "
            f"{counted(upload['rejected'], 'record')} not read, "
            f"{counted(upload['signals'], 'signal')}"
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
        # A file that grows meanwhile is sent as long as it was said to be.
        rest = self._size - self._stream.tell()
        return self._stream.read(rest if size < 0 else min(size, rest))


def _groups(things: Iterable[T]) -> Iterator[list[T]]:
    """The things in lists of as many as are asked for at once."""
    rest = iter(things)
    while group := list(islice(rest, ASKED_AT_ONCE)):
        yield group


def _groups_to_send(
    places: Iterable[tuple[Parcel, str]],
) -> Iterator[list[tuple[Parcel, str]]]:
    """Files in groups that are asked about at once; a folder, packed, stands alone."""
    group: list[tuple[Parcel, str]] = []
    for one in places:
        if group and (one[0].is_folder or len(group) == ASKED_AT_ONCE):
            yield group
            group = []
        group.append(one)
        if one[0].is_folder:
            yield group
            group = []
    if group:
        yield group
