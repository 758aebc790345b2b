"""The processes that come from another one, and ending all of them.

Used by the first process of a run for itself, and from outside where that one does not
answer any more.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

_SECONDS = 2.0


def descendants(of: int) -> list[tuple[int, str]]:
    """The living processes that come from a process, with their names."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - pathlib costs a start its time
        if entry.isdigit():
            with contextlib.suppress(OSError):
                _read_stat(int(entry), parents, names)
    found = {of}
    grows = True
    while grows:
        more = {one for one, parent in parents.items() if parent in found} - found
        found |= more
        grows = bool(more)
    return [(one, names[one]) for one in sorted(found - {of}) if one in names]


def _read_stat(process: int, parents: dict[int, int], names: dict[int, str]) -> None:
    with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        head, _, tail = file.read().rpartition(")")
    state, parent = tail.split()[:2]
    parents[process] = int(parent)
    if state not in "ZX":
        names[process] = head.partition("(")[2]


def end_all(of: int) -> None:
    """Kill what comes from a process until nothing does, for two seconds at most."""
    until = time.monotonic() + _SECONDS
    while time.monotonic() < until:
        living = descendants(of)
        for process, _ in living:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        if of == os.getpid():
            _reap()
        if not living:
            return
        time.sleep(0.002)


def _reap() -> None:
    """Take back the ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
