"""What the kernel reports of system calls that the filter held back.

Source: seccomp_unotify(2). The addresses of a call are read out of the process that
waits for its answer; they are written down, and one alone decides something: a
connection to the model endpoint, which is replaced by a socket of ours and so cannot be
changed to another address afterwards.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import platform
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from apps.engine.replay.run import EffectKind
from apps.isolation.sandbox.inside.syscalls import names_on
from apps.isolation.sandbox.order import RELAY_HOST, RELAY_PORT

_RECEIVE: Final = 0xC0502100
_ANSWER: Final = 0xC0182101
_IS_VALID: Final = 0x40082102
_PUT_DESCRIPTOR: Final = 0x40182103
_GO_ON: Final = 1
_AT_THIS_NUMBER: Final = 1
_NAMES: Final = names_on(platform.machine()) if platform.machine() in {
    "x86_64",
    "aarch64",
} else {}  # fmt: skip
_FAMILIES: Final = {1: "unix", 2: "IPv4", 10: "IPv6", 17: "packet"}
_TYPES: Final = {1: "stream", 2: "datagram", 3: "raw", 5: "packet"}
_WHERE: Final = {"connect": (1, 2), "bind": (1, 2), "sendto": (4, 5)}
_WORDS: Final = {
    "connect": "connect to",
    "bind": "listen on",
    "sendto": "send to",
    "listen": "listen on",
    "sendmsg": "send to",
    "sendmmsg": "send to",
}


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One system call that waits for our answer."""

    id: int
    process: int
    name: str
    arguments: tuple[int, ...]


class HeldBack(msgspec.Struct, frozen=True, kw_only=True):
    """What a call would have done, for the ledger."""

    kind: EffectKind
    what: str
    is_breach: bool = True
    error: int = errno.EPERM


class Notices:
    """The descriptor on which the kernel asks."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def next(self) -> Notice | None:
        """The next call that waits; `None` where it is gone again."""
        raw = bytearray(80)
        try:
            fcntl.ioctl(self.descriptor, _RECEIVE, raw)
        except OSError:
            return None
        number, process, _, call, _, _, *arguments = struct.unpack("=QIIiIQ6Q", raw)
        return Notice(
            id=number,
            process=process,
            name=_NAMES.get(call, str(call)),
            arguments=tuple(arguments),
        )

    def refuse(self, notice: Notice, error: int) -> None:
        """The call fails with this error."""
        self._answer(struct.pack("=QqiI", notice.id, 0, -error, 0))

    def let(self, notice: Notice) -> None:
        """The call goes on as it was meant."""
        self._answer(struct.pack("=QqiI", notice.id, 0, 0, _GO_ON))

    def replace(self, notice: Notice, ours: socket.socket) -> None:
        """The descriptor of the call becomes this socket, and the call succeeds."""
        target = notice.arguments[0] & 0xFFFFFFFF
        flags = _flags_of(notice.process, target)
        ours.setblocking(not flags & os.O_NONBLOCK)
        closes = os.O_CLOEXEC if flags & os.O_CLOEXEC else 0
        put = struct.pack(
            "=QIIII", notice.id, _AT_THIS_NUMBER, ours.fileno(), target, closes
        )
        try:
            fcntl.ioctl(self.descriptor, _PUT_DESCRIPTOR, put)
        except OSError:
            self.refuse(notice, errno.ECONNREFUSED)
        else:
            self._answer(struct.pack("=QqiI", notice.id, 0, 0, 0))

    def _answer(self, answer: bytes) -> None:
        # Who asked may be dead by now.
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.descriptor, _ANSWER, answer)

    def is_for_relay(self, notice: Notice) -> bool:
        """Whether it connects to the address of the model endpoint."""
        wanted = f"{RELAY_HOST}:{RELAY_PORT}"
        return notice.name == "connect" and _address(notice) == wanted

    def described(self, notice: Notice) -> HeldBack:
        """What the call would have done."""
        plain = f"system call {notice.name}"
        rule = _RULES.get(notice.name)
        if rule is None:
            return HeldBack(kind=EffectKind.OTHER, what=plain)
        found = rule(notice)
        # Once who asked is gone, what was read may be another's.
        is_its_own = self._is_waiting(notice)
        return found if is_its_own else msgspec.structs.replace(found, what=plain)

    def _is_waiting(self, notice: Notice) -> bool:
        try:
            fcntl.ioctl(self.descriptor, _IS_VALID, struct.pack("=Q", notice.id))
        except OSError:
            return False
        return True


def _flags_of(process: int, descriptor: int) -> int:
    """The flags of an open descriptor of another process; 0 where it is gone."""
    with contextlib.suppress(OSError, ValueError):
        told = Path(f"/proc/{process}/fdinfo/{descriptor}").read_text(encoding="ascii")
        for line in told.splitlines():
            if line.startswith("flags:"):
                return int(line.split()[1], 8)
    return 0


def _memory(process: int, address: int, size: int) -> bytes:
    """Bytes of another process; fewer, or none, where they cannot be read."""
    if not address:
        return b""
    with contextlib.suppress(OSError, OverflowError):
        found = os.open(f"/proc/{process}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(found, size, address)
        finally:
            os.close(found)
    return b""


def _text(process: int, address: int) -> str:
    """A text that ends with a zero; up to the end of its page where it is long."""
    size = min(300, 4096 - address % 4096) if address else 0
    raw = _memory(process, address, size)
    return raw.partition(b"\0")[0].decode("utf-8", "replace")


def _address(notice: Notice) -> str:
    """The address of a call in words; "an address" where it cannot be read."""
    at, length = _WHERE[notice.name]
    size = min(notice.arguments[length] & 0xFFFFFFFF, 128)
    raw = _memory(notice.process, notice.arguments[at], size)
    family = int.from_bytes(raw[:2], "little")
    if family == socket.AF_INET and len(raw) >= 8:
        port = int.from_bytes(raw[2:4], "big")
        return f"{socket.inet_ntop(socket.AF_INET, raw[4:8])}:{port}"
    if family == socket.AF_INET6 and len(raw) >= 24:
        port = int.from_bytes(raw[2:4], "big")
        return f"{socket.inet_ntop(socket.AF_INET6, raw[8:24])}:{port}"
    if family == socket.AF_UNIX and len(raw) > 2:
        name = raw[2:]
        if name[:1] == b"\0":
            return "@" + name[1:].decode("utf-8", "replace")
        return name.partition(b"\0")[0].decode("utf-8", "replace")
    return "an address"


def _reaching(notice: Notice) -> HeldBack:
    where = _address(notice) if notice.name in _WHERE else "a port"
    return HeldBack(kind=EffectKind.SOCKET, what=f"{_WORDS[notice.name]} {where}")


def _making(notice: Notice) -> HeldBack:
    family = _FAMILIES.get(notice.arguments[0], f"family {notice.arguments[0]}")
    kind = _TYPES.get(notice.arguments[1] & 0xF, "other")
    return HeldBack(kind=EffectKind.SOCKET, what=f"make a socket ({family}, {kind})")


def _starting(_notice: Notice) -> HeldBack:
    return HeldBack(kind=EffectKind.PROCESS, what="start a copy of itself")


def _executing(notice: Notice) -> HeldBack:
    at = 0 if notice.name == "execve" else 1
    name = _text(notice.process, notice.arguments[at]) or "a program"
    return HeldBack(kind=EffectKind.PROCESS, what=f"start {name}")


def _signalling(notice: Notice) -> HeldBack:
    process, number = notice.arguments[0] & 0xFFFFFFFF, notice.arguments[1]
    if notice.name == "tgkill":
        number = notice.arguments[2]
    signed = process - (1 << 32) if process >= 1 << 31 else process
    return HeldBack(
        kind=EffectKind.SIGNAL, what=f"signal {number & 0xFF} to process {signed}"
    )


def _asking_for_memory(notice: Notice) -> HeldBack:
    size = notice.arguments[1 if notice.name == "mmap" else 2]
    return HeldBack(
        kind=EffectKind.MEMORY,
        what=f"ask for {size:,} bytes of memory at once",
        is_breach=False,
        error=errno.ENOMEM,
    )


def _about_a_file(notice: Notice) -> HeldBack:
    has_folder = notice.name.endswith("at") or notice.name == "fchmodat2"
    name = ""
    if has_folder or not notice.name.startswith("f"):
        name = _text(notice.process, notice.arguments[1 if has_folder else 0])
    return HeldBack(
        kind=EffectKind.FILE_WRITE, what=f"{notice.name} {name or 'an open file'}"
    )


_RULES: Final[dict[str, Callable[[Notice], HeldBack]]] = {
    **dict.fromkeys(
        ("connect", "bind", "sendto", "listen", "sendmsg", "sendmmsg"), _reaching
    ),
    **dict.fromkeys(("socket", "socketpair"), _making),
    **dict.fromkeys(("clone", "fork", "vfork"), _starting),
    **dict.fromkeys(("execve", "execveat"), _executing),
    **dict.fromkeys(("kill", "tkill", "tgkill"), _signalling),
    **dict.fromkeys(("mmap", "mremap"), _asking_for_memory),
    **dict.fromkeys(
        (
            *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchown"),
            *("fchownat", "utime", "utimes", "futimesat", "utimensat", "truncate"),
            *("setxattr", "lsetxattr", "fsetxattr"),
        ),
        _about_a_file,
    ),
}
