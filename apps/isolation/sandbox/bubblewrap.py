"""The command line of bubblewrap for one run."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from apps.isolation.sandbox.folders import SYSTEM
from apps.isolation.sandbox.levels import Way


@cache
def found_bubblewrap() -> Path | None:
    """Where the program is; `None` where it is not installed."""
    found = shutil.which("bwrap")
    return Path(found) if found else None


def words(way: Way, readable: Iterable[Path], scratch: Path) -> list[str]:
    """What stands before the program: only these folders are there, all but one fixed.

    The program is process 1 of its namespace: when it ends, all of them end. As root
    without users of its own it keeps what it needs to become somebody else.
    """
    said = [
        *(str(way.bubblewrap), "--die-with-parent", "--as-pid-1"),
        *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-cgroup-try", "--hostname", "replay"),
    ]
    if way.has_own_users:
        said.append("--unshare-user")
    else:
        said += ["--cap-drop", "ALL"]
        for right in ("SETUID", "SETGID", "KILL", "DAC_READ_SEARCH"):
            said += ["--cap-add", f"CAP_{right}"]
    said += ["--proc", "/proc", "--dev", "/dev"]
    wanted = dict.fromkeys((*map(Path, SYSTEM), *readable))
    # What lies in another of them is there with it.
    folders = [one for one in wanted if not wanted.keys() & set(one.parents)]
    # What lies above them is made here, and is only a way to them for everybody.
    above = {one for path in (*folders, scratch) for one in path.parents} - set(folders)
    for path in sorted(above - {Path("/")}):
        said += ["--perms", "0755", "--dir", str(path)]
    for path in folders:
        said += ["--ro-bind-try", str(path), str(path)]
    said += ["--bind", str(scratch), str(scratch), "--remount-ro", "/"]
    return [*said, "--chdir", "/", "--"]
