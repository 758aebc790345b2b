"""The folder that a run may write to: made for it, looked at, and gone after it.

What lies in it was made by a stranger: folders without end in each other, folders that
nobody may enter, files that have no name any more but are still held open.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from apps.isolation.sandbox.inside.family import descendants

_PREFIX: Final = "evalsite-run-"
_SECONDS_KEPT: Final = 3_600
MOST_FILES: Final = 10_000
_OWN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class CannotLook(Exception):
    """The folder cannot be looked at as a whole; the message says why, after "it"."""


def new_folder() -> Path:
    """A new empty folder that only its owner may enter."""
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))


def sizes(folder: Path) -> Iterator[int]:
    """The sizes in bytes of the files below a folder; raises `CannotLook`."""
    waiting, seen = [str(folder)], 0
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if seen > MOST_FILES:
                        raise CannotLook(f"made more than {MOST_FILES:,} files")
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        with contextlib.suppress(FileNotFoundError):
                            yield entry.stat(follow_symlinks=False).st_size
        except FileNotFoundError:
            continue
        except OSError as error:
            raise CannotLook("keeps files that cannot be counted") from error


def nameless_sizes(process: int) -> Iterator[int]:
    """The sizes of files without a name that descendants of a process hold open.

    Each counts once, however often it is open; those of processes that cannot be looked
    into do not.
    """
    counted: set[tuple[int, int]] = set()
    for one, _ in descendants(process):
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{one}/fd"):  # noqa: PTH208 - names are enough
                with contextlib.suppress(OSError):
                    found = os.stat(f"/proc/{one}/fd/{name}")  # noqa: PTH116
                    key = (found.st_dev, found.st_ino)
                    is_nameless = stat.S_ISREG(found.st_mode) and not found.st_nlink
                    if is_nameless and key not in counted:
                        counted.add(key)
                        yield found.st_size


def remove_folder(folder: Path) -> None:
    """Remove a folder with all that is in it, as far as this account may.

    Nothing of it is at work any more. What lies deeper is brought up one level before
    it is looked into, so that neither depth nor length of names counts; links are not
    followed.
    """
    numbers = (f"up-{number}" for number in itertools.count())
    with contextlib.suppress(OSError):
        top = _entered(folder)
        try:
            while names := os.listdir(top):  # noqa: PTH208 - of a descriptor
                if not [name for name in names if _removed(top, name, numbers)]:
                    break
        finally:
            os.close(top)
        folder.rmdir()


def _entered(folder: Path) -> int:
    """A descriptor of a folder that is no link, which its owner may enter again."""
    named = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.chmod(f"/proc/self/fd/{named}", 0o700)  # noqa: PTH101 - of a descriptor
        return os.open(".", _OWN_FOLDER, dir_fd=named)
    finally:
        os.close(named)


def _removed(top: int, name: str, numbers: Iterator[str]) -> bool:
    """Remove one entry, its own folders brought up before; whether that went well."""
    try:
        if not stat.S_ISDIR(os.lstat(name, dir_fd=top).st_mode):
            os.unlink(name, dir_fd=top)
            return True
        os.chmod(name, 0o700, dir_fd=top)
        inner = os.open(name, _OWN_FOLDER, dir_fd=top)
        try:
            for one in os.listdir(inner):  # noqa: PTH208 - of a descriptor
                _brought_up(inner, one, top, numbers)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=top)
    except OSError:
        return False
    return True


def _brought_up(inner: int, name: str, top: int, numbers: Iterator[str]) -> None:
    """Remove a file, or rename a folder into the topmost one."""
    if not stat.S_ISDIR(os.lstat(name, dir_fd=inner).st_mode):
        os.unlink(name, dir_fd=inner)
        return
    os.chmod(name, 0o700, dir_fd=inner)
    for free in numbers:
        try:
            os.lstat(free, dir_fd=top)
        except FileNotFoundError:
            os.rename(name, free, src_dir_fd=inner, dst_dir_fd=top)
            return


def remove_abandoned(now: float | None = None) -> None:
    """Remove the folders of runs whose worker was killed, an hour later.

    Those of living processes stay, and those of other accounts.
    """
    before = (time.time() if now is None else now) - _SECONDS_KEPT
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            is_old = folder.lstat().st_mtime < before
            if is_old and owner.isdecimal() and not Path(f"/proc/{owner}").exists():
                remove_folder(folder)
