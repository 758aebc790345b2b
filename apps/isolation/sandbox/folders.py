"""Which folders a run may read: the system's, its interpreter's, and its own code."""

from __future__ import annotations

import os
import stat
from functools import cache
from pathlib import Path
from typing import Final

from apps.isolation.sandbox.order import Refused, SandboxOrder

INSIDE: Final = Path(__file__).resolve().parent / "inside"
SYSTEM: Final = (
    *("/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin"),
    *(
        f"/etc/{name}"
        for name in (
            *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ca-certificates"),
            # Not what lies beside them: the private keys of this machine.
            *("ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "crypto-policies"),
            *("pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf"),
            *("pki/ca-trust", "localtime", "timezone", "hosts", "host.conf"),
            "nsswitch.conf",
            *("gai.conf", "services", "protocols", "mime.types", "os-release"),
            *("debian_version", "lsb-release", "alternatives", "locale.alias"),
        )
    ),
)
DEVICES: Final = ("/dev/urandom", "/dev/random")
WRITABLE_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full")
OF_PROC: Final = (
    "/proc/self",
    *(f"/proc/{one}" for one in ("cpuinfo", "meminfo", "version", "filesystems")),
    *(f"/proc/{one}" for one in ("stat", "uptime", "loadavg")),
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/kernel/osrelease",
)


_OF_HOME: Final = ("lib", "lib64", "include", "share")


@cache
def of_interpreter(python: Path) -> tuple[Path, ...]:
    """The folders that a Python needs: its own, and those of its virtual environment."""
    found: list[Path] = []
    environment = python.parent.parent
    homes = [python.resolve().parent]
    configuration = environment / "pyvenv.cfg"
    if configuration.is_file():
        names = ("bin", "lib", "lib64", "include", "pyvenv.cfg")
        found += [environment / name for name in names if (environment / name).exists()]
        for line in configuration.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home":
                homes.append(Path(value.strip()))
    for home in homes:
        # A Python of the system lies in /usr, which is readable anyway.
        if not home.is_relative_to("/usr/bin") and home != Path("/bin"):
            parts = (home, *(home.parent / name for name in _OF_HOME))
            found += [path for path in parts if path.exists()]
    return tuple(dict.fromkeys(found))


def readable(order: SandboxOrder) -> tuple[Path, ...]:
    """What the run may read besides the system, without doubles.

    Raises `Refused` where one of these holds, or lies in, a folder that is never to
    be read, and where one is not there.
    """
    own = [*order.code, *order.readable]
    missing = [path for path in own if not path.exists()]
    if missing:
        raise Refused(f"The folder {missing[0]} of the agent is not there.")
    if order.is_command:
        program = Path(order.target[0])
        if not program.is_absolute() or not program.exists():
            raise Refused(f"{program} is not the absolute path of a program.")
        own.append(program)
    wanted = [*of_interpreter(order.python), *own]
    found = [Path(os.path.abspath(path)) for path in wanted]  # noqa: PTH100 - links stay
    found += [path.resolve() for path in found]
    for never in order.never:
        _check_apart(never.resolve(), [*found, *map(Path, SYSTEM)])
    return tuple(dict.fromkeys([*found, INSIDE]))


def _check_apart(never: Path, found: list[Path]) -> None:
    for path in found:
        if path == never or path.is_relative_to(never) or never.is_relative_to(path):
            raise Refused(
                f"The agent would read {path}, and {never} is never to be read by one."
            )


def is_open_to_all(path: Path, *, whole_way: bool) -> bool:
    """Whether any account may enter a folder; with `whole_way` also those above it."""
    names = [path, *path.parents] if whole_way else [path]
    for one in names:
        mode = one.stat().st_mode
        needed = stat.S_IXOTH | stat.S_IROTH if one is path else stat.S_IXOTH
        if stat.S_ISREG(mode):
            needed = stat.S_IROTH
        if mode & needed != needed:
            return False
    return True
