"""Landlock through ctypes: which files and ports a process may reach, for good.

Source: landlock(7). Later versions of the interface (ABI) know more: 3 cutting files,
4 TCP ports, 5 device calls, 6 abstract sockets and signals.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from typing import Any

from .syscalls import LANDLOCK

_CREATE, _ADD, _RESTRICT = LANDLOCK, LANDLOCK + 1, LANDLOCK + 2
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _DEVICE = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _DEVICE
_READ = _EXECUTE | _READ_FILE | _READ_DIR


def abi() -> int:
    """The version that the kernel offers; 0 where there is none or it is off."""
    libc: Any = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE, None, 0, 1)))


def _files(version: int) -> int:
    """All rights of files that this version can deny."""
    bits = 13 + (version >= 2) + (version >= 3)
    return (1 << bits) - 1 | (_DEVICE if version >= 5 else 0)


def restrict(readable: list[str], writable: list[str], version: int) -> None:
    """Only these may be read (and run) or written from here on.

    No TCP port may be used, no abstract socket reached and nobody outside signalled,
    as far as the version knows of them. Paths that do not exist are passed over.
    Raises `OSError`; no new privileges must be set before.
    """
    libc: Any = ctypes.CDLL(None, use_errno=True)
    handled = _files(version)
    parts = [handled]
    if version >= 4:
        parts.append(3)
    if version >= 6:
        parts.append(3)
    attributes = struct.pack(f"={len(parts)}Q", *parts)
    rules = _checked(libc.syscall(_CREATE, attributes, len(attributes), 0))
    try:
        for path in readable:
            _add(libc, rules, path, _READ & handled)
        for path in writable:
            _add(libc, rules, path, handled & ~_DEVICE)
        _checked(libc.syscall(_RESTRICT, rules, 0))
    finally:
        os.close(rules)


def _add(libc: Any, rules: int, path: str, rights: int) -> None:
    """Allow `rights` below a path."""
    with contextlib.suppress(FileNotFoundError, PermissionError, NotADirectoryError):
        # A descriptor that only names the file.
        found = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            is_folder = os.path.isdir(f"/proc/self/fd/{found}")  # noqa: PTH112
            allowed = rights if is_folder else rights & _OF_FILES
            beneath = struct.pack("=Qi", allowed, found)
            _checked(libc.syscall(_ADD, rules, 1, beneath, 0))
        finally:
            os.close(found)


def _checked(answer: int) -> int:
    if answer < 0:
        raise OSError(ctypes.get_errno(), "landlock")
    return int(answer)
