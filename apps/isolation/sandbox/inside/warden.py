"""The first process of a run: starts the agent's, ends it, and sees what is left.

It stays outside of the wall that the agent's process puts up, so that the agent can
neither signal it nor look into it. When whoever started the run is gone, it ends all.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any

from . import agent, walling
from .channel import Channel, encoded

_SUBREAPER = 36
_SECONDS_OF_KILLING = 2.0


def main(*, control: int, line: int) -> None:
    """Read the plan, run it, and say on `control` how it ended; then exit."""
    told = socket.socket(fileno=control)
    received = _first_line(told)
    plan = json.loads(received)
    plan["size"] = len(received)
    # Orphans of the agent come here, and nobody of its account looks in here.
    walling.prctl(_SUBREAPER, 1)
    walling.be_dumpable(0)
    child = os.fork()
    if child == 0:
        _be_the_agent(told, plan, line)
    os.close(line)
    _be_silent()
    os._exit(_watch(told, child))


def _first_line(told: socket.socket) -> bytes:
    """All bytes up to the end of the first line."""
    pieces: list[bytes] = []
    while not pieces or not pieces[-1].endswith(b"\n"):
        piece = told.recv(1 << 20)
        if not piece:
            raise SystemExit(2)
        pieces.append(piece)
    return b"".join(pieces)


def _be_silent() -> None:
    """Let go of what the agent prints on: its end is then the end of it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def _be_the_agent(told: socket.socket, plan: dict[str, Any], line: int) -> None:
    """Put up the wall and become the agent; never comes back."""
    told.close()
    os.setsid()
    os.chdir(plan["scratch"])
    channel = Channel(line, plan["limits"]["answer"], plan["size"])
    try:
        in_place, asked_on = walling.put_up(plan)
    except OSError as error:
        channel.note({"no_wall": f"{error.strerror or ''} ({error.errno})"})
        os._exit(3)
    channel.send({"ready": in_place}, asked_on or None)
    if asked_on:
        os.close(asked_on)
    if plan["kind"] == "command":
        _become_the_command(channel, plan["argv"])
    if plan["kind"] == "callable":
        for name in [one for one in sys.modules if one.startswith("evalsite_inside")]:
            del sys.modules[name]
        agent.run(plan, channel)
    os._exit(0)


def _become_the_command(channel: Channel, argv: list[str]) -> None:
    try:
        os.execv(argv[0], argv)  # noqa: S606 - there is no shell in between
    except OSError as error:
        channel.note({"not_started": str(error.strerror)})
    os._exit(127)


def _watch(told: socket.socket, child: int) -> int:
    """Wait for the agent or for the word to end it; then end and tell what is left."""
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([told.fileno(), ended], [], [])
    was_ended = ended not in ready
    if was_ended:
        os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    left = [] if was_ended else [name for _, name in _descendants()]
    _end_all()
    report = {
        "status": status,
        "left": left[:20],
        "peak_bytes": usage.ru_maxrss * 1024,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
    }
    with contextlib.suppress(OSError):
        told.sendall(encoded(report))
    return 0


def _descendants() -> list[tuple[int, str]]:
    """The processes that come from this one, with their names; zombies left out."""
    parents: dict[int, int] = {}
    names: dict[int, str] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - pathlib costs a start its time
        if entry.isdigit():
            with contextlib.suppress(OSError):
                _read_stat(int(entry), parents, names)
    ours = {os.getpid()}
    grows = True
    while grows:
        found = {one for one, parent in parents.items() if parent in ours} - ours
        ours |= found
        grows = bool(found)
    return [(one, names[one]) for one in sorted(ours - {os.getpid()}) if one in names]


def _read_stat(process: int, parents: dict[int, int], names: dict[int, str]) -> None:
    with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        head, _, tail = file.read().rpartition(")")
    state, parent = tail.split()[:2]
    parents[process] = int(parent)
    if state not in "ZX":
        names[process] = head.partition("(")[2]


def _end_all() -> None:
    """Kill what comes from here until nothing does, for two seconds at most."""
    until = time.monotonic() + _SECONDS_OF_KILLING
    while time.monotonic() < until:
        living = _descendants()
        for process, _ in living:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        if not _reap() and not living:
            return
        time.sleep(0.002)


def _reap() -> bool:
    """Take back the ended; whether there are children still."""
    while True:
        try:
            process, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if process == 0:
            return True
