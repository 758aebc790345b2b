"""Starting the first process of a run and handing it the plan."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import secrets
import socket
import subprocess
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from apps.isolation.sandbox import bubblewrap
from apps.isolation.sandbox.folders import (
    DEVICES,
    INSIDE,
    OF_PROC,
    SYSTEM,
    WRITABLE_DEVICES,
    is_open_to_all,
    readable,
)
from apps.isolation.sandbox.levels import Way
from apps.isolation.sandbox.order import RELAY_HOST, RELAY_PORT, SandboxOrder

_ACCOUNTS: Final = range(61_184, 65_520)
"""Accounts that systemd keeps for processes without one; no file belongs to them."""
_SECONDS_OF_HANDING_OVER: Final = 10.0


class Launched(msgspec.Struct, kw_only=True):
    """A run that was started: its processes and our ends of what leads there."""

    process: subprocess.Popen[bytes]
    control: socket.socket
    line: socket.socket
    printed: tuple[IO[bytes], ...]
    typed: IO[bytes] | None

    def close(self) -> None:
        """Close our ends and wait for the process, which is killed where it stays."""
        self.control.close()
        self.line.close()
        for pipe in self.printed:
            pipe.close()
        if self.typed is not None:
            with contextlib.suppress(OSError):
                self.typed.close()
        try:
            self.process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=10.0)


def launch(order: SandboxOrder, way: Way, scratch: Path, *, kind: str = "") -> Launched:
    """Start the run in its scratch folder, which belongs to it from then on.

    `kind` is "nothing" for a run that ends as soon as its wall stands. Raises
    `Refused` for folders that may not be read, `OSError` where nothing starts.
    """
    folders = readable(order)
    given = plan(order, way, scratch, folders) | {
        "kind": kind or ("command" if order.is_command else "callable")
    }
    control, its_control = socket.socketpair()
    line, its_line = socket.socketpair()
    ends = (its_control.fileno(), its_line.fileno())
    words = bubblewrap.words(way, folders, scratch) if way.bubblewrap else []
    words += [str(order.python), "-I", "-S", "-B", str(INSIDE / "entry.py")]
    process = subprocess.Popen(  # noqa: S603 - the words are ours
        [*words, *map(str, ends)],
        stdin=subprocess.PIPE if order.is_command else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(order, scratch),
        cwd="/",
        pass_fds=ends,
        start_new_session=True,
    )
    its_control.close()
    its_line.close()
    assert process.stdout is not None and process.stderr is not None  # noqa: PT018, S101
    launched = Launched(
        process=process,
        control=control,
        line=line,
        printed=(process.stdout, process.stderr),
        typed=process.stdin,
    )
    control.settimeout(_SECONDS_OF_HANDING_OVER)
    with contextlib.suppress(OSError):
        # Where the other side is gone already, that is seen by its end.
        control.sendall(json.dumps(given).encode() + b"\n")
    control.settimeout(0.0)
    return launched


def _environment(order: SandboxOrder, scratch: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        **order.env,
    }


def plan(
    order: SandboxOrder, way: Way, scratch: Path, folders: tuple[Path, ...]
) -> dict[str, Any]:
    """All that the first process must know, as JSON. Gives the scratch folder away."""
    has_mounts = way.bubblewrap is not None
    account = _account() if way.takes_account else None
    if account is not None:
        os.chown(scratch, account, account)
    needs_search = account is not None and not all(
        is_open_to_all(path, whole_way=not has_mounts)
        for path in (*folders, scratch.parent)
    )
    proc = ("/proc",) if has_mounts else OF_PROC
    limits = order.limits
    return {
        "name": order.name,
        "argv": list(order.target) if order.is_command else [],
        "code": [str(path) for path in order.code],
        "with_site": True,
        "with_turns": order.has_turns,
        "given": order.given,
        "relay": [RELAY_HOST, RELAY_PORT] if order.relay else None,
        "limits": {
            "seconds": limits.seconds,
            "memory": limits.memory_bytes,
            "file": limits.file_bytes,
            "processes": limits.processes,
            "answer": limits.answer_bytes,
        },
        "scratch": str(scratch),
        "account": account,
        # Without a filter it could open files by their handles, wherever they lie.
        "keeps_search": needs_search and way.has_filter,
        "tasks_before": 0 if account or way.has_own_users else _tasks_of_ours(),
        "landlock": way.landlock,
        "seccomp": way.has_filter,
        "asks": way.asks,
        "has_mounts": has_mounts,
        "readable": [*map(str, folders), *SYSTEM, *DEVICES, *proc],
        "writable": [str(scratch), *WRITABLE_DEVICES],
    }


def _account() -> int:
    """An account that nobody has; runs at the same time hardly ever share one."""
    while True:
        found = secrets.choice(_ACCOUNTS)
        try:
            pwd.getpwuid(found)
        except KeyError:
            return found


def _tasks_of_ours() -> int:
    """How many threads our account has; its limit counts all of them."""
    own, found = os.getuid(), 0
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if folder.stat().st_uid == own:
                    found += len(list((folder / "task").iterdir()))
    return found
