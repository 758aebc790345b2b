"""Uploads that arrive in pieces, over days and connections, until they are whole.

Each unfinished upload is a folder with what is known of it and one durable file for
each piece, named by its offset and size. A piece is added under a lock and only where
the bytes before it end, so two senders of the same file cannot mix their bytes, and a
killed process leaves whole pieces.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from django.conf import settings

from apps.traces.storage import Keeping, ReceivedFile, open_kept

LASTS_SECONDS = 86_400
MOST_OPEN = 20
_CHUNK = 256 * 1024
_ABOUT, _DONE = "about.json", "done.json"
_PIECE = re.compile(r"(\d{15})-(\d+)")
_ID = re.compile(r"[0-9a-f]{32}")


class WrongOffset(Exception):
    """The bytes before this piece do not end where it starts; `offset` is where."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"The next byte that is missing is number {offset}.")
        self.offset = offset


class TooManyParts(Exception):
    """The project has as many unfinished uploads as it may; a sentence for a person."""


class Gone(Exception):
    """This unfinished upload was given up or finished meanwhile."""


class About(msgspec.Struct, frozen=True):
    """What the sender said of a file, and whose it is.

    `fingerprint` tells the file from others of the same sender, so that it goes on
    where it stopped when it is sent again; empty when the sender has none. With
    `needs_key` the pieces are sealed with a key that only the sender has.
    """

    project_id: int
    user_id: int
    size: int
    name: str
    format: str = ""
    fingerprint: str = ""
    needs_key: bool = False


class _Became(msgspec.Struct, frozen=True):
    upload_id: int
    was_here: bool = False


class Part:
    """One unfinished upload."""

    def __init__(self, folder: Path, about: About) -> None:
        self.folder = folder
        self.about = about

    @property
    def id(self) -> str:
        """The name under which the sender finds it again."""
        return self.folder.name

    @property
    def expires(self) -> float:
        """When it is removed, in seconds since 1970, unless a piece comes before."""
        try:
            return self.folder.stat().st_mtime + LASTS_SECONDS
        except FileNotFoundError as error:
            raise Gone from error

    def pieces(self) -> list[tuple[Path, int]]:
        """The pieces with their sizes, from the first byte on without a gap."""
        by_offset = {}
        for path in _names_in(self.folder):
            if match := _PIECE.fullmatch(path.name):
                by_offset[int(match[1])] = (path, int(match[2]))
        found: list[tuple[Path, int]] = []
        offset = 0
        while piece := by_offset.get(offset):
            found.append(piece)
            offset += piece[1]
        return found

    def offset(self) -> int:
        """How many bytes are here; all of them once it is finished."""
        if self.finished() is not None:
            return self.about.size
        return sum(size for _, size in self.pieces())

    def append(self, received: ReceivedFile, *, at: int) -> int:
        """Add bytes that start at `at`, durably, and return the new offset.

        Raises `WrongOffset` (the bytes are dropped) when others came first, and `Gone`.
        """
        try:
            with self.alone():
                offset = self.offset()
                if offset != at:
                    raise WrongOffset(offset)
                try:
                    received.path.replace(self.folder / f"{at:015d}-{received.size}")
                except FileNotFoundError as error:
                    raise Gone from error
                _make_durable(self.folder)
                return at + received.size
        finally:
            received.drop()

    def content(self, keeping: Keeping) -> Iterator[bytes]:
        """All bytes that are here, in chunks; raises `Gone` and `CannotOpen`."""
        for path, _ in self.pieces():
            try:
                with open_kept(path, keeping) as stream:
                    while chunk := stream.read(_CHUNK):
                        yield chunk
            except FileNotFoundError as error:
                raise Gone from error

    def finish(self, *, upload_id: int, was_here: bool = False) -> None:
        """Drop the pieces and remember what they became; call it inside `alone`."""
        _write(self.folder / _DONE, msgspec.json.encode(_Became(upload_id, was_here)))
        for path, _ in self.pieces():
            path.unlink(missing_ok=True)

    def finished(self) -> int | None:
        """The id of the upload that it became, or None."""
        became = self._became()
        return became.upload_id if became else None

    def was_here(self) -> bool:
        """Whether the same bytes were an upload before these came."""
        became = self._became()
        return became is not None and became.was_here

    def _became(self) -> _Became | None:
        try:
            said = (self.folder / _DONE).read_bytes()
        except FileNotFoundError:
            return None
        # A bare number was written before there was more to say.
        became = msgspec.json.decode(said, type=int | _Became)
        return _Became(became) if isinstance(became, int) else became

    def drop(self) -> None:
        """Forget it with all of its bytes. Safe to run twice."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep all others from adding and finishing meanwhile; raises `Gone`."""
        try:
            descriptor = os.open(self.folder, os.O_RDONLY)
        except FileNotFoundError as error:
            raise Gone from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def begin(about: About) -> tuple[Part, bool]:
    """The unfinished upload of this file, and whether it is new.

    The same file of the same sender, known by its fingerprint, is found again. Raises
    `TooManyParts` when the project has no room for another one.
    """
    project = _folder_of(about.project_id)
    name = _id_of(about) if about.fingerprint else secrets.token_hex(16)
    known = _load(project / name)
    if known is not None and known.finished() is None:
        return known, False
    if known is not None:
        known.drop()
    if _count_open(project) >= MOST_OPEN:
        raise TooManyParts(
            f"{MOST_OPEN} uploads of this project are unfinished, which is as many as "
            "are kept. Finish one of them, or wait: a day without a byte ends them."
        )
    folder = project / name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write(folder / _ABOUT, msgspec.json.encode(about))
    # The pieces are as durable as the folders that lead to them.
    for above in (project, _root(), _root().parent):
        _make_durable(above)
    return Part(folder, about), True


def find(*, project_id: int, user_id: int, part_id: str) -> Part | None:
    """An unfinished upload of this user in this project, or None."""
    if not _ID.fullmatch(part_id):
        return None
    part = _load(_folder_of(project_id) / part_id)
    if part is None or part.about.user_id != user_id:
        return None
    return part


def parts_of(*, project_id: int, user_id: int) -> list[Part]:
    """All unfinished uploads of this user in this project, in no order."""
    parts = map(_load, _names_in(_folder_of(project_id)))
    return [
        part
        for part in parts
        if part and part.about.user_id == user_id and part.finished() is None
    ]


def remove_abandoned_parts(*, older_than_seconds: float = LASTS_SECONDS) -> int:
    """Remove unfinished uploads that got no piece for so long; returns how many.

    Safe to run twice, and beside running uploads.
    """
    newest = time.time() - older_than_seconds
    removed = 0
    for project in _names_in(_root()):
        for folder in _names_in(project):
            try:
                is_old = folder.stat().st_mtime < newest
            except FileNotFoundError:
                continue
            if is_old:
                shutil.rmtree(folder, ignore_errors=True)
                removed += 1
    return removed


def _root() -> Path:
    folder: Path = settings.UPLOADS_DIR / "parts"
    return folder


def _folder_of(project_id: int) -> Path:
    return _root() / str(project_id)


def _id_of(about: About) -> str:
    return hashlib.sha256(msgspec.json.encode(about)).hexdigest()[:32]


def _load(folder: Path) -> Part | None:
    try:
        content = (folder / _ABOUT).read_bytes()
    except FileNotFoundError:
        return None
    return Part(folder, msgspec.json.decode(content, type=About))


def _count_open(project: Path) -> int:
    # What was dropped while a piece came may leave a folder without its beginning.
    return sum(
        (folder / _ABOUT).exists() and not (folder / _DONE).exists()
        for folder in _names_in(project)
    )


def _names_in(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def _write(path: Path, content: bytes) -> None:
    """Write a small file durably: it is wholly there or not there."""
    half = path.with_name(f".{secrets.token_hex(8)}")
    with half.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    half.replace(path)
    _make_durable(path.parent)


def _make_durable(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
