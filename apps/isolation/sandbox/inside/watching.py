"""Writes down what the agent tries to reach outside of its run.

An audit hook of Python: it sees what goes through the interpreter before it happens.
It holds nothing back, which is the wall's work, and it does not see what native code
does by itself. What the agent was given and its own libraries are not written down.
"""

from __future__ import annotations

import os
import sys
import threading
from os.path import abspath, realpath
from typing import Any, Callable  # noqa: UP035 - also read by Python 3.9

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MOST_TOLD = 400
_LENGTH = 300
_MORE = "more attempts than are listed"
_MORE_BREACHES = f"{_MORE}, breaches among them"
# Programs ask these about the machine they run on; they are told nothing.
_ABOUT_THE_MACHINE = ("uname", "lsb_release", "ldconfig", "gcc", "cc", "ld", "objdump")
_HERE = ("", "localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104 - names, not bound

Tell = Callable[[Any], None]


class Watch:
    """The hook and what it needs to know: `tell` gets `{"effect": [kind, what, breach]}`."""

    def __init__(self, plan: dict[str, Any], tell: Tell) -> None:
        self._tell = tell
        self._writable = [realpath(path) for path in plan["writable"]]
        self._own = f"/proc/{os.getpid()}"
        self._readable = {*plan["readable"], "/proc/self", self._own, *self._writable}
        self._readable |= {realpath(path) for path in plan["readable"]}
        self._relay = plan["relay"]
        self._told: set[tuple[str, str, int]] = set()
        self._asked = 0
        self._thread = threading.local()
        self._rules = self._table()

    def begin(self) -> None:
        """Watch from now on; there is no end to it."""
        sys.addaudithook(self._hook)

    def next_event(self) -> None:
        """Something was asked: the same attempt after it is another one."""
        self._asked += 1

    def _table(self) -> dict[str, Callable[[tuple[Any, ...]], None]]:
        table: dict[str, Callable[[tuple[Any, ...]], None]] = {"open": self._open}
        for name in ("os.listdir", "os.scandir"):
            table[name] = self._read_folder
        for name in ("remove", "mkdir", "rmdir", "truncate", "chmod", "chown", "utime"):
            table[f"os.{name}"] = self._write_first
        for name in ("os.setxattr", "os.removexattr", "sqlite3.connect"):
            table[name] = self._write_first
        for name in ("os.rename", "os.link", "os.symlink"):
            table[name] = self._write_both
        for name in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.spawn"):
            table[name] = self._start
        table["os.system"] = table["pty.spawn"] = self._start
        table["os.fork"] = table["os.forkpty"] = self._fork
        table["os.kill"] = table["os.killpg"] = self._signal
        for name in ("connect", "bind", "sendto", "sendmsg"):
            table[f"socket.{name}"] = self._address(name)
        for name in ("getaddrinfo", "gethostbyname", "gethostbyaddr"):
            table[f"socket.{name}"] = self._look_up
        return table

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        rule = self._rules.get(event)
        if rule is None or getattr(self._thread, "is_inside", False):
            return
        self._thread.is_inside = True
        try:
            rule(arguments)
        except Exception:  # noqa: BLE001, S110 - a hook that raises would be a wall
            pass
        finally:
            self._thread.is_inside = False

    def _say(self, kind: str, what: str, *, is_breach: bool = True) -> None:
        if len(self._told) >= _MOST_TOLD:
            kind, what = "other", _MORE_BREACHES if is_breach else _MORE
        what = what[:_LENGTH]
        key = (kind, what, 0 if kind == "other" else self._asked)
        if key not in self._told:
            self._told.add(key)
            self._tell({"effect": [kind, what, is_breach]})

    def _open(self, arguments: tuple[Any, ...]) -> None:
        path, mode, flags = arguments
        if not isinstance(path, (str, bytes)):
            return
        is_write = bool((flags or 0) & _WRITES) or any(
            one in (mode or "") for one in "wax+"
        )
        if is_write:
            self._write(path)
        else:
            self._read(path)

    def _read_folder(self, arguments: tuple[Any, ...]) -> None:
        path = arguments[0] if arguments else "."
        if path is None or isinstance(path, (str, bytes)):
            self._read(path or ".")

    def _read(self, path: str | bytes) -> None:
        name = abspath(os.fsdecode(path))  # noqa: PTH100 - links stay
        is_other = name.startswith("/proc/") and name[6:7].isdigit()
        if is_other and not _is_below(name, (self._own,)):
            self._say("file_read", f"read {name}")
        elif not _is_below(name, self._readable):
            is_about_it = name.startswith(("/sys/", "/proc/"))
            self._say("file_read", f"read {name}", is_breach=not is_about_it)

    def _write(self, path: str | bytes) -> None:
        name = os.fsdecode(path)
        if name.startswith((":memory:", "file::memory:")):
            return
        if not _is_below(realpath(name), self._writable) and name != os.devnull:
            self._say("file_write", f"write {abspath(name)}")  # noqa: PTH100

    def _write_first(self, arguments: tuple[Any, ...]) -> None:
        if isinstance(arguments[0], (str, bytes)):
            self._write(arguments[0])

    def _write_both(self, arguments: tuple[Any, ...]) -> None:
        for path in arguments[:2]:
            if isinstance(path, (str, bytes)):
                self._write(path)

    def _start(self, arguments: tuple[Any, ...]) -> None:
        first = arguments[0]
        words = arguments[1] if len(arguments) > 1 else None
        if isinstance(words, (list, tuple)):
            text = " ".join(_text(word) for word in words[:20])
        else:
            text = _text(words if isinstance(words, (str, bytes)) else first)
        name = text.partition(" ")[0].rpartition("/")[2]
        self._say("process", f"start {text}", is_breach=name not in _ABOUT_THE_MACHINE)

    def _fork(self, _arguments: tuple[Any, ...]) -> None:
        self._say("process", "start a copy of itself")

    def _signal(self, arguments: tuple[Any, ...]) -> None:
        process, number = arguments[:2]
        if process != os.getpid():
            self._say("signal", f"signal {int(number)} to process {process}")

    def _address(self, name: str) -> Callable[[tuple[Any, ...]], None]:
        words = {"connect": "connect to", "bind": "listen on"}.get(name, "send to")

        def rule(arguments: tuple[Any, ...]) -> None:
            address = arguments[1]
            if isinstance(address, (list, tuple)) and len(address) > 1:
                if list(address[:2]) == self._relay:
                    return
                host, port = address[:2]
                # Whether there is IPv6 is asked by binding to any port of one's own.
                is_probe = name == "bind" and host in _HERE and port == 0
                self._say("socket", f"{words} {host}:{port}", is_breach=not is_probe)
            elif isinstance(address, (str, bytes)):
                self._say("socket", f"{words} {_text(address).replace(chr(0), '@')}")

        return rule

    def _look_up(self, arguments: tuple[Any, ...]) -> None:
        host = _text(arguments[0] or "")
        is_number = ":" in host or host.replace(".", "").isdigit()
        if host not in _HERE and not is_number:
            self._say("name_lookup", f"look up {host}")


def _is_below(name: str, folders: Any) -> bool:
    return any(name == one or name.startswith(f"{one}/") for one in folders)


def _text(value: Any) -> str:
    return (
        os.fsdecode(value)
        if isinstance(value, (str, bytes, os.PathLike))
        else str(value)
    )
