"""Putting the wall around this process: limits, account, Landlock, system calls.

Each step is for good. What could not be put in place raises, so that nothing of the
agent runs without it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
from typing import Any

from . import landlock, policy, seccomp

_KEEP_CAPS, _NO_NEW_PRIVILEGES, _DUMPABLE, _PARENT_DEATH = 8, 38, 4, 1
_AMBIENT, _AMBIENT_RAISE = 47, 2
_MAY_READ_ALL = 2
"""CAP_DAC_READ_SEARCH: reading where only the owner may; Landlock stands before it."""
_KILL = 9


def prctl(option: int, *values: int) -> None:
    """The call of this name; raises `OSError`."""
    libc: Any = ctypes.CDLL(None, use_errno=True)
    arguments = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    if libc.prctl(option, *arguments):
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def be_dumpable(value: int) -> None:
    """Whether others of this account may look into this process (0 or 1)."""
    prctl(_DUMPABLE, value)


def put_up(plan: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Put up all that the plan says.

    Back come what is in place now, and the file descriptor on which the parent is
    asked about system calls (0: nobody is asked). Raises `OSError`.
    """
    _limit(plan["limits"], plan["tasks_before"])
    prctl(_NO_NEW_PRIVILEGES, 1)
    if plan["account"] is not None:
        _become(plan["account"], keeps_search=plan["keeps_search"])
    be_dumpable(1)
    prctl(_PARENT_DEATH, _KILL)
    version = plan["landlock"]
    if version:
        landlock.restrict(plan["readable"], plan["writable"], version)
    asked_on = _filter(plan, version) if plan["seccomp"] else 0
    return {
        "landlock": version,
        "seccomp": plan["seccomp"],
        "asks": bool(asked_on),
        "uid": os.getuid(),
    }, asked_on


def _limit(limits: dict[str, Any], tasks_before: int) -> None:
    """The limits of the kernel, lowered as far as they are not lower already."""
    wanted = {
        resource.RLIMIT_AS: limits["memory"],
        resource.RLIMIT_FSIZE: limits["file"],
        resource.RLIMIT_CPU: int(limits["seconds"]) * 4 + 5,
        resource.RLIMIT_NPROC: limits["processes"] + tasks_before,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
    }
    for which, most in wanted.items():
        hard = resource.getrlimit(which)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (least, least))


def _become(account: int, *, keeps_search: bool) -> None:
    """Become an ordinary account without any right of root.

    With `keeps_search` it may still read what only root may: needed where the
    interpreter lies in root's own folder.
    """
    prctl(_KEEP_CAPS, 1 if keeps_search else 0)
    os.setgroups([])
    os.setresgid(account, account, account)
    os.setresuid(account, account, account)
    kept = 1 << _MAY_READ_ALL if keeps_search else 0
    libc: Any = ctypes.CDLL(None, use_errno=True)
    version_3 = struct.pack("=Ii", 0x20080522, 0)
    if libc.capset(version_3, struct.pack("=6I", kept, kept, kept, 0, 0, 0)):
        raise OSError(ctypes.get_errno(), "capset")
    if keeps_search:
        prctl(_AMBIENT, _AMBIENT_RAISE, _MAY_READ_ALL)


def _filter(plan: dict[str, Any], version: int) -> int:
    """Put the filter in place, with the parent to ask where the kernel lets it."""
    machine = platform.machine()
    is_command = plan["kind"] == "command"
    found = policy.rules(
        os.getpid(),
        is_command=is_command,
        memory=plan["limits"]["memory"],
        landlock=version,
        has_mounts=plan["has_mounts"],
    )
    if plan["asks"]:
        return seccomp.install(seccomp.program(found, machine), machine, asks=True)
    plain = policy.without_asking(found, is_command=is_command)
    return seccomp.install(seccomp.program(plain, machine), machine, asks=False)
