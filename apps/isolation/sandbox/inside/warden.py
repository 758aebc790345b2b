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
from typing import Any

from . import agent, walling
from .channel import Channel, encoded
from .family import descendants, end_all

_SUBREAPER = 36


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
        _become_the_command(channel, line, plan["argv"])
    if plan["kind"] == "callable":
        for name in [one for one in sys.modules if one.startswith("evalsite_inside")]:
            del sys.modules[name]
        agent.run(plan, channel)
    os._exit(0)


def _become_the_command(channel: Channel, line: int, argv: list[str]) -> None:
    # It has its own ways to ask, and this is none of them.
    os.set_inheritable(line, False)  # noqa: FBT003
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
    left = [] if was_ended else [name for _, name in descendants(os.getpid())]
    end_all(os.getpid())
    report = {
        "status": status,
        "left": left[:20],
        "peak_bytes": usage.ru_maxrss * 1024,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
    }
    with contextlib.suppress(OSError):
        told.sendall(encoded(report))
    return 0
