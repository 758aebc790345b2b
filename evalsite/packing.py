"""A folder as one zip: the same files make the same bytes, whenever it is packed.

Names are sorted, times and permissions fixed, and every file is deflated alike, so the
SHA-256 tells whether the folder was sent before. Another build of zlib may deflate to
other bytes; a folder that is sent from two machines may then be two uploads.
"""

from __future__ import annotations

import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

from apps.engine.reading.members import MAX_MEMBERS
from evalsite.walking import folder_files

_CHUNK = 1024 * 1024
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_UNIX, _PLAIN_FILE = 3, 0o100644 << 16
# From here on the sizes are written wide, with room for a file that still grows.
_WIDE_FROM = 1024**3
_SAID_EVERY_SECONDS = 5.0

Say = Callable[[str], None]


class CannotPack(Exception):
    """The folder cannot become one zip; the message is a sentence for a person."""


def packed(folder: Path, *, say: Say) -> BinaryIO:
    """Return the files below a folder as one zip in a temporary file, at its start.

    `say` hears what was put in and what was left out. Raises `CannotPack`; the file is
    gone once it is closed.
    """
    target = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - the caller's
    try:
        _pack(folder, target, say)
    except BaseException as error:
        target.close()
        if isinstance(error, OSError):
            raise CannotPack(_why_not(error)) from error
        raise
    target.seek(0)
    return target


def _pack(folder: Path, target: BinaryIO, say: Say) -> None:
    found = folder_files(folder)
    total = len(found.files)
    if not total:
        raise CannotPack(f"It holds no files. {found.left_out_in_words()}".rstrip())
    if total > MAX_MEMBERS:
        raise CannotPack(
            f"It holds {total:,} files, and {MAX_MEMBERS:,} fit into one zip. Name its "
            "subfolders instead, or send each file by itself with --each."
        )
    said_at = time.monotonic()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as whole:
        for number, (name, path) in enumerate(found.files, 1):
            _add(whole, name, path)
            if time.monotonic() - said_at > _SAID_EVERY_SECONDS:
                said_at = time.monotonic()
                say(f"{number:,} of {total:,} files put into one zip")
    files = "1 file" if total == 1 else f"{total:,} files"
    words = f"one zip of {files}. {found.left_out_in_words()}"
    say(words.rstrip(" ."))


def _add(whole: zipfile.ZipFile, name: str, path: Path) -> None:
    entry = zipfile.ZipInfo(name, _NO_TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system, entry.external_attr = _UNIX, _PLAIN_FILE
    is_wide = path.stat().st_size >= _WIDE_FROM
    with (
        path.open("rb") as stream,
        whole.open(entry, "w", force_zip64=is_wide) as member,
    ):
        while chunk := stream.read(_CHUNK):
            member.write(chunk)


def _why_not(error: OSError) -> str:
    reason = error.strerror or str(error)
    if error.filename:
        return f"{error.filename} cannot be read: {reason}."
    return f"It cannot be put into one zip: {reason}."
