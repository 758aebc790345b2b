"""Where the raw bytes of uploads lie: content-addressed, never changed.

A file is hashed while it arrives and is taken over by a rename, so an upload is
either wholly there under its SHA-256 or not there at all. Bytes lie in clear, or
sealed with the site's key; those of a structure-only project are sealed with a key
that is never written down, from their first byte until they are read.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest

from apps.accounts.models import Project, RawBytes
from apps.accounts.queries import live_token, project_by_slug
from apps.engine.privacy.sealed import MARK, SealedWriter, is_sealed
from apps.traces import encryption

_TOO_LARGE = "evalsite.too_large"
_COPY = 256 * 1024
_SEALED = ".sealed"


class Keeping(msgspec.Struct, frozen=True):
    """How bytes may lie on the disk: in clear, or sealed with `key`.

    `is_lasting` is the site's key, which a worker has too. `needs_key` says that the
    key was made for these bytes and is known to nobody else: who sends a file in
    parts must get it (`new_key`) and bring it along.
    """

    key: bytes | None = None
    is_lasting: bool = False
    needs_key: bool = False


IN_CLEAR = Keeping()


class ReceivedFile(msgspec.Struct, frozen=True):
    """Bytes that arrived but belong to no upload yet; `name` is what the sender said.

    `sha256` and `size` are of the bytes as they came. Where something else is kept of
    them (structure only), `stored_sha256` is its hash and `reduced` says what was
    read.
    """

    path: Path
    size: int
    sha256: str
    name: str
    keeping: Keeping = IN_CLEAR
    stored_sha256: str = ""
    reduced: dict[str, Any] | None = None

    def open(self) -> BinaryIO:
        """The plain bytes, as a seekable stream."""
        return open_kept(self.path, self.keeping)

    def drop(self) -> None:
        """Forget the bytes. Safe to run twice."""
        self.path.unlink(missing_ok=True)


class TooLarge(Exception):
    """More bytes came than are taken; the message is a sentence for a person."""


class CannotKeep(ImproperlyConfigured):
    """Bytes must be sealed and the site has no key; a sentence for a person."""


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


def raw_policy(project: Project) -> RawBytes:
    """What happens to raw bytes of this project: the stricter of site and project."""
    order = list(RawBytes)
    both = (settings.RAW_BYTES, project.raw_bytes)
    return max((RawBytes(one) for one in both if one), key=order.index)


def new_key() -> str:
    """A key for a file that is sent in parts to a structure-only project, as text."""
    return encryption.new_key_text()


def keeping_of(project: Project, *, key: str = "") -> Keeping:
    """How arriving bytes of this project may lie on the disk.

    `key` is a text of `new_key` that came back with a part; `ValueError` with a
    sentence when it is none. Raises `CannotKeep` when the project wants its bytes
    encrypted and the site has no key any more.
    """
    if project.structure_only:
        own = encryption.key_of(key) if key else encryption.key_of(new_key())
        return Keeping(key=own, needs_key=True)
    policy, site_key = raw_policy(project), encryption.site_key()
    if policy is RawBytes.ENCRYPTED and site_key is None:
        raise CannotKeep(
            f"The project “{project.slug}” keeps what it receives encrypted only, and "
            "EVALSITE_RAW_KEY is not set."
        )
    if policy is RawBytes.KEPT or site_key is None:
        return IN_CLEAR
    return Keeping(key=site_key, is_lasting=True)


def incoming_folder() -> Path:
    """Where files lie while they arrive."""
    folder: Path = settings.UPLOADS_DIR / "incoming"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


class Receiver:
    """Takes chunks of one file, hashes them and keeps them in a temporary file."""

    def __init__(self, *, limit: int, name: str, keeping: Keeping = IN_CLEAR) -> None:
        self._limit = limit
        self._name = name
        self._keeping = keeping
        self._hash = hashlib.sha256()
        self._size = 0
        descriptor, path = tempfile.mkstemp(dir=incoming_folder())
        self._file = os.fdopen(descriptor, "wb")
        self._path = Path(path)
        key = keeping.key
        self._sealed = None if key is None else SealedWriter(self._file, key)

    def take(self, chunk: bytes) -> None:
        """Keep `chunk`; raises `TooLarge` (and drops everything) over the limit."""
        self._size += len(chunk)
        if self._size > self._limit:
            self.drop()
            raise TooLarge(too_large_sentence(self._limit))
        self._hash.update(chunk)
        with self._dropped_when_full():
            (self._sealed or self._file).write(chunk)

    @contextmanager
    def _dropped_when_full(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self.drop()
            raise

    def finish(self) -> ReceivedFile:
        """Make the bytes durable and return them."""
        with self._dropped_when_full():
            if self._sealed is not None:
                self._sealed.finish()
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        return ReceivedFile(
            path=self._path,
            size=self._size,
            sha256=self._hash.hexdigest(),
            name=self._name,
            keeping=self._keeping,
        )

    def drop(self) -> None:
        """Forget the bytes. Safe to run twice."""
        with suppress(OSError):  # a full disk, once more
            self._file.close()
        self._path.unlink(missing_ok=True)


def receive(
    chunks: Iterable[bytes], *, limit: int, name: str, keeping: Keeping = IN_CLEAR
) -> ReceivedFile:
    """Keep the bytes of `chunks` in a durable temporary file.

    Raises `TooLarge` when they are more than `limit`.
    """
    receiver = Receiver(limit=limit, name=name, keeping=keeping)
    try:
        for chunk in chunks:
            receiver.take(chunk)
    except BaseException:
        receiver.drop()
        raise
    return receiver.finish()


def kept_as(received: ReceivedFile, keeping: Keeping) -> ReceivedFile:
    """The same bytes, lying as `keeping` asks; written anew only when they do not."""
    if received.keeping == keeping:
        return received
    with received.open() as plain:
        chunks = iter(lambda: plain.read(_COPY), b"")
        fresh = receive(
            chunks, limit=received.size, name=received.name, keeping=keeping
        )
    received.drop()
    return fresh


def open_kept(path: Path, keeping: Keeping = IN_CLEAR) -> BinaryIO:
    """The plain bytes of a file that arrived as `keeping` says; seekable.

    Raises `CannotOpen` when they were sealed with another key.
    """
    stream = path.open("rb")
    if keeping.key is None:
        return stream
    head = stream.read(len(MARK))
    stream.seek(0)
    return encryption.open_with(stream, [keeping.key]) if is_sealed(head) else stream


def path_of(sha256: str, *, is_encrypted: bool = False) -> Path:
    """Where the bytes with this hash lie in the store, in clear or encrypted."""
    folder: Path = settings.UPLOADS_DIR
    return folder / sha256[:2] / (sha256 + (_SEALED if is_encrypted else ""))


def take_over(received: ReceivedFile) -> None:
    """Move received bytes into the store, durably. Safe to run twice.

    Raises `ValueError` for bytes that are sealed with a key that nobody will have.
    """
    if received.keeping.needs_key:
        raise ValueError(
            "Bytes of a structure-only project are never kept as they are."
        )
    sha256 = received.stored_sha256 or received.sha256
    target = path_of(sha256, is_encrypted=received.keeping.is_lasting)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    received.path.replace(target)
    _make_durable(target.parent)
    # Always, not only by who made the sub-folder: another process may have made it a
    # moment ago and not have come to this line yet.
    _make_durable(target.parent.parent)


def remove_raw(sha256: str) -> None:
    """Remove the bytes with this hash from the store. Safe to run twice."""
    for is_encrypted in (False, True):
        path_of(sha256, is_encrypted=is_encrypted).unlink(missing_ok=True)


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
    for path in incoming_folder().iterdir():
        try:
            if path.stat().st_mtime < newest:
                path.unlink()
                removed += 1
        except FileNotFoundError:  # taken over or removed just now
            continue
    return removed


def open_raw(sha256: str) -> BinaryIO:
    """The bytes with this hash, decrypted, as a seekable binary stream.

    Raises `FileNotFoundError`, and `CannotOpen` with a sentence when the key that
    sealed them is not at hand.
    """
    try:
        return path_of(sha256).open("rb")
    except FileNotFoundError:
        sealed = path_of(sha256, is_encrypted=True).open("rb")
        return encryption.open_with(sealed)


class HashedUpload(UploadedFile):  # type: ignore[type-arg] # generic in stubs only
    """An uploaded file that was hashed and kept while it arrived."""

    def __init__(self, received: ReceivedFile) -> None:
        super().__init__(file=None, name=received.name, size=received.size)
        self.received = received

    def close(self) -> None:
        """Drop the bytes unless they were taken over."""
        self.received.drop()


def _keeping_for(request: HttpRequest | None) -> Keeping | None:
    """How a file of this request may lie on the disk; None when none is taken.

    The project of a page is in its address and that of the API in its token. Without
    a project the bytes are sealed with a key of this request alone.
    """
    if request is None:
        return None
    user = getattr(request, "user", None)
    if user is not None and user.is_authenticated:
        match = request.resolver_match
        slug = match.kwargs.get("slug", "") if match is not None else ""
        project = project_by_slug(slug)
    else:
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        token = live_token(secret.strip()) if scheme.lower() == "bearer" else None
        if token is None:
            return None
        project = token.project
    if project is None:
        return Keeping(key=encryption.key_of(new_key()), needs_key=True)
    return keeping_of(project)


class HashingUploadHandler(FileUploadHandler):
    """Django's upload handler: streams each file to disk and hashes it on the way.

    Forms are parsed before anyone asks who sent them, so it keeps files only of people
    who are signed in and of live API tokens. For all others parsing ends at the first
    file, and the view answers as it answers a stranger.
    """

    receiver: Receiver | None = None

    def new_file(self, *args: object, **kwargs: object) -> None:
        keeping = _keeping_for(self.request)
        if keeping is None:
            raise StopUpload(connection_reset=True)
        super().new_file(*args, **kwargs)  # type: ignore[arg-type]
        self.receiver = Receiver(
            limit=settings.MAX_UPLOAD_BYTES,
            name=self.file_name or "unnamed",
            keeping=keeping,
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
