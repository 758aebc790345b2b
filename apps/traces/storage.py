"""Where the raw bytes of uploads lie: content-addressed, never changed.

A file is hashed while it arrives and is taken over by a rename, so an upload is
either wholly there under its SHA-256 or not there at all.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest

from apps.accounts.queries import live_token

_TOO_LARGE = "evalsite.too_large"


class ReceivedFile(msgspec.Struct, frozen=True):
    """Bytes that arrived but belong to no upload yet; `name` is what the sender said."""

    path: Path
    size: int
    sha256: str
    name: str


class TooLarge(Exception):
    """More bytes came than are taken; the message is a sentence for a person."""


def size_in_words(size: float) -> str:
    """A byte count for people, in steps of 1,000: `4.1 MB`."""
    unit = "bytes"
    for larger in ("kB", "MB", "GB"):
        if size < 1000:
            break
        size /= 1000
        unit = larger
    return f"{size:.1f}".removesuffix(".0") + f" {unit}"


def too_large_sentence(limit: int) -> str:
    """What the uploader is told when a file is over the limit."""
    return (
        f"This file is larger than {size_in_words(limit)}, the most that is taken. "
        "Split it, compress it (.gz or .zst), or raise EVALSITE_MAX_UPLOAD_BYTES."
    )


def was_too_large(meta: Mapping[str, Any]) -> bool:
    """Whether a file of the request with this META was dropped for its size.

    Known only after the body was parsed. What was parsed is then incomplete.
    """
    return bool(meta.get(_TOO_LARGE))


def _incoming() -> Path:
    folder = settings.UPLOADS_DIR / "incoming"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


class Receiver:
    """Takes chunks of one file, hashes them and keeps them in a temporary file."""

    def __init__(self, *, limit: int, name: str) -> None:
        self._limit = limit
        self._name = name
        self._hash = hashlib.sha256()
        self._size = 0
        descriptor, name = tempfile.mkstemp(dir=_incoming())
        self._file = os.fdopen(descriptor, "wb")
        self._path = Path(name)

    def take(self, chunk: bytes) -> None:
        """Keep `chunk`; raises `TooLarge` (and drops everything) over the limit."""
        self._size += len(chunk)
        if self._size > self._limit:
            self.drop()
            raise TooLarge(too_large_sentence(self._limit))
        self._hash.update(chunk)
        self._file.write(chunk)

    def finish(self) -> ReceivedFile:
        """Make the bytes durable and return them."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return ReceivedFile(self._path, self._size, self._hash.hexdigest(), self._name)

    def drop(self) -> None:
        """Forget the bytes. Safe to run twice."""
        self._file.close()
        self._path.unlink(missing_ok=True)


def receive(chunks: Iterable[bytes], *, limit: int, name: str) -> ReceivedFile:
    """Keep the bytes of `chunks` in a durable temporary file.

    Raises `TooLarge` when they are more than `limit`.
    """
    receiver = Receiver(limit=limit, name=name)
    try:
        for chunk in chunks:
            receiver.take(chunk)
    except BaseException:
        receiver.drop()
        raise
    return receiver.finish()


def path_of(sha256: str) -> Path:
    """Where the bytes with this hash lie in the store."""
    folder: Path = settings.UPLOADS_DIR
    return folder / sha256[:2] / sha256


def take_over(received: ReceivedFile) -> None:
    """Move received bytes into the store, durably. Safe to run twice."""
    target = path_of(received.sha256)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    received.path.replace(target)
    _make_durable(target.parent)
    # Always, not only by who made the sub-folder: another process may have made it a
    # moment ago and not have come to this line yet.
    _make_durable(target.parent.parent)


def _make_durable(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_abandoned(*, older_than_seconds: float = 86_400) -> int:
    """Remove files that stopped arriving when their process was killed.

    Returns how many were removed. A file counts as abandoned when nothing was written
    to it for `older_than_seconds`. Safe to run twice, and beside running uploads.
    """
    newest = time.time() - older_than_seconds
    removed = 0
    for path in _incoming().iterdir():
        try:
            if path.stat().st_mtime < newest:
                path.unlink()
                removed += 1
        except FileNotFoundError:  # taken over or removed just now
            continue
    return removed


def open_raw(sha256: str) -> BinaryIO:
    """The bytes with this hash, as a binary stream; raises `FileNotFoundError`."""
    return path_of(sha256).open("rb")


class HashedUpload(UploadedFile):  # type: ignore[type-arg] # generic in stubs only
    """An uploaded file that was hashed and kept while it arrived."""

    def __init__(self, received: ReceivedFile) -> None:
        super().__init__(file=None, name=received.name, size=received.size)
        self.received = received

    def close(self) -> None:
        """Drop the bytes unless they were taken over."""
        self.received.path.unlink(missing_ok=True)


def _may_send_files(request: HttpRequest | None) -> bool:
    user = getattr(request, "user", None)
    if user is not None and user.is_authenticated:
        return True
    header = request.headers.get("Authorization", "") if request is not None else ""
    scheme, _, secret = header.partition(" ")
    return scheme.lower() == "bearer" and live_token(secret.strip()) is not None


class HashingUploadHandler(FileUploadHandler):
    """Django's upload handler: streams each file to disk and hashes it on the way.

    Forms are parsed before anyone asks who sent them, so it keeps files only of people
    who are signed in and of live API tokens. For all others parsing ends at the first
    file, and the view answers as it answers a stranger.
    """

    receiver: Receiver | None = None

    def new_file(self, *args: object, **kwargs: object) -> None:
        if not _may_send_files(self.request):
            raise StopUpload(connection_reset=True)
        super().new_file(*args, **kwargs)  # type: ignore[arg-type]
        self.receiver = Receiver(
            limit=settings.MAX_UPLOAD_BYTES, name=self.file_name or "unnamed"
        )

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:  # noqa: ARG002
        if self.receiver is None:
            return
        try:
            self.receiver.take(raw_data)
        except TooLarge as error:
            self.receiver = None
            if self.request is not None:
                self.request.META[_TOO_LARGE] = True
            raise StopUpload(connection_reset=True) from error

    def file_complete(self, file_size: int) -> HashedUpload | None:  # noqa: ARG002
        if self.receiver is None:
            return None
        received, self.receiver = self.receiver.finish(), None
        return HashedUpload(received)

    def upload_interrupted(self) -> None:
        """Leave no half file behind when the sender goes away."""
        if self.receiver is not None:
            self.receiver.drop()
            self.receiver = None
