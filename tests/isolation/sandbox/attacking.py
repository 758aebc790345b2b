"""Runs the table of attacks once; also as a script, by another account.

The script prints, as one line of JSON, what `attacked` gives for each level.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import msgspec

sys.path[:0] = [str(Path(__file__).resolve().parents[3])]

from apps.isolation.sandbox import Level, probe  # noqa: E402
from tests.isolation.sandbox.runs import (  # noqa: E402
    PLANTED,
    SMALL,
    WALLED,
    ended_within,
    of_kind,
    ran,
)

ROOMY = msgspec.structs.replace(SMALL, file_bytes=64 * 1024**2)


def attacked(level: Level) -> dict:
    """What every attack came to at a level, told by it and seen from outside."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o777)
        secret, outside = folder / "secret", folder / "outside"
        secret.write_text("canary-in-a-file")
        secret.chmod(0o666)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(str(folder / "socket"))
        (folder / "socket").chmod(0o777)
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        name = f"evalsite-{os.getpid()}-{level}"
        abstract.bind(f"\0{name}")
        listening = [tcp, udp, unix, abstract]
        for one in (unix, abstract):
            one.listen()
        nap = f"31{os.getpid()}"
        at = {
            "secret": str(secret),
            "outside": str(outside),
            "parent": os.getpid(),
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "unix": str(folder / "socket"),
            "abstract": name,
            "nap": nap,
            # Without a wall this would be all: the others are to be seen.
            "without": ["end_warden"] if level == Level.NONE else [],
        }
        alone = ran(
            "attacks:every_attack",
            at_most=level,
            least=level,
            limits=ROOMY,
            given={"input": at},
        )
        command = ran(
            (sys.executable, str(PLANTED / "attacks.py")),
            at_most=level,
            least=level,
            limits=ROOMY,
            given={"input": at},
            readable=(PLANTED,),
        )
        return {
            "level": str(probe(level).level),
            "attacks": alone.output or str(alone.error),
            "effects": [[one.kind, one.what, one.after] for one in alone.effects],
            "of_command": command.output or f"{command.error} {command.printed}",
            "left": [one.what for one in of_kind(command, "left_running")],
            "are_gone": ended_within(nap),
            "reached": [_has_heard(one) for one in listening],
            "files": {
                path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()
            },
            "scratch": sorted(
                path.name
                for path in Path(tempfile.gettempdir()).glob("evalsite-run-*")
                if path.stat().st_uid == os.getuid()
            ),
        }


def _has_heard(one: socket.socket) -> bool:
    one.settimeout(0)
    try:
        if one.type == socket.SOCK_DGRAM:
            one.recv(10)
        else:
            one.accept()[0].close()
    except BlockingIOError:
        return False
    return True


if __name__ == "__main__":
    print(json.dumps({level: attacked(level) for level in WALLED}))
