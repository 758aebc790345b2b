"""Child processes that cannot outlive the process that started them.

Holds the plan of a child, the running child, and how it is signalled and ended. It does
not decide when a child is started again; that is `evalsite.supervisor`.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
# Loaded before any fork: a child between fork and exec must not load libraries.
_LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_HURRIED_SECONDS = 1.0
_KEPT_LOG_LINES = 20


class CannotStart(Exception):
    """Something cannot be started; the text is a sentence for the person who asked."""


@dataclass(frozen=True)
class Account:
    """A user of the operating system, as numbers a child can be started with."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True)
class StopStep:
    """A signal, and how many seconds a child has to end after it."""

    signal: signal.Signals
    seconds: float


def _nothing() -> None:
    """Stand in for a plan that has nothing to do before its child starts."""


@dataclass(frozen=True, kw_only=True)
class ProcessPlan:
    """How one child is started and stopped.

    `before_start` runs before every start, also before a restart. `death_signal` is
    what the kernel sends the child when our own process dies (Linux only).
    """

    name: str
    command: tuple[str, ...]
    log: Path
    environment: Mapping[str, str]
    folder: Path = Path("/")
    account: Account | None = None
    stop_steps: tuple[StopStep, ...] = (StopStep(signal.SIGTERM, 5),)
    death_signal: signal.Signals = signal.SIGTERM
    before_start: Callable[[], None] = _nothing


class Process:
    """One started child: it leads a session of its own, so its whole group can end."""

    def __init__(self, plan: ProcessPlan) -> None:
        plan.before_start()
        self.plan = plan
        self.started = time.monotonic()
        with plan.log.open("ab") as log:
            self._popen = _spawn(plan, log.fileno())

    @property
    def pid(self) -> int:
        """Process id, which is also the id of the child's group."""
        return self._popen.pid

    def ended(self) -> bool:
        """Say whether the child is gone; reaps it if so."""
        return self._popen.poll() is not None

    def ending(self) -> str:
        """Return how the child ended, as the rest of a sentence."""
        code = self._popen.poll()
        if code is None:
            return "is still running"
        if code < 0:
            return f"was killed by signal {-code}"
        return f"ended with code {code}"

    def send(self, number: signal.Signals) -> None:
        """Signal the child alone, not its group; does nothing when it is gone."""
        if not self.ended():
            self._popen.send_signal(number)

    def end_group(self) -> None:
        """Kill whatever is left of the child and its descendants; safe to run twice."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()

    def log_tail(self, lines: int = _KEPT_LOG_LINES) -> str:
        """Return the last lines of the child's log, indented for a terminal."""
        return log_tail(self.plan.log, lines)


def _spawn(plan: ProcessPlan, log: int) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def tie_to_parent() -> None:
        if _LIBC is None:
            return
        _LIBC.prctl(_PR_SET_PDEATHSIG, int(plan.death_signal), 0, 0, 0)
        # The parent may have died before the line above took effect.
        if os.getppid() != parent:
            os._exit(1)

    account = plan.account
    try:
        # The process that starts children has no threads; prctl is one system call.
        return subprocess.Popen(  # noqa: S603
            plan.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=plan.folder,
            env=dict(plan.environment),
            start_new_session=True,
            preexec_fn=tie_to_parent,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
    except OSError as error:
        raise CannotStart(
            f"{plan.name} could not be started from {plan.command[0]}: {error}."
        ) from error


def log_tail(log: Path, lines: int = _KEPT_LOG_LINES) -> str:
    """Return the last lines of a log, indented; empty when there is none."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - 64 * 1024))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])


def rotate_log(log: Path) -> None:
    """Move a log of an earlier start aside, keeping one; safe to run twice."""
    with contextlib.suppress(FileNotFoundError):
        if log.stat().st_size:
            log.replace(log.with_name(log.name + ".1"))


def stop_together(
    processes: Sequence[Process], *, hurried: Callable[[], bool] = lambda: False
) -> None:
    """Stop children at the same time, each by its own steps, then kill what is left.

    Returns when every child and its group are gone. When `hurried` turns true, each
    remaining step gets one second at most.
    """
    for step in range(max((len(p.plan.stop_steps) for p in processes), default=0)):
        waiting = []
        for process in processes:
            if step < len(process.plan.stop_steps) and not process.ended():
                chosen = process.plan.stop_steps[step]
                process.send(chosen.signal)
                waiting.append((process, time.monotonic(), chosen.seconds))
        _wait_for(waiting, hurried)
    for process in processes:
        process.end_group()


def _wait_for(
    waiting: Sequence[tuple[Process, float, float]], hurried: Callable[[], bool]
) -> None:
    def patience(seconds: float) -> float:
        return min(seconds, _HURRIED_SECONDS) if hurried() else seconds

    while any(
        not process.ended() and time.monotonic() < since + patience(seconds)
        for process, since, seconds in waiting
    ):
        time.sleep(0.02)


def end_leftovers(found: Callable[[], list[int]], *, patience: float) -> None:
    """Wait for processes of an earlier start to end, then kill those that did not.

    Args:
        found: Lists the process ids that are still there.
        patience: Seconds they get to end by themselves.
    """
    seen: set[int] = set()

    def are_left() -> bool:
        # Of a process that is ending, /proc forgets the environment and the folder
        # first: it is no longer found while it still holds its files and sockets.
        seen.update(found())
        return any(map(_is_running, seen))

    deadline = time.monotonic() + patience
    while are_left() and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in found():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 2
    while are_left() and time.monotonic() < deadline:
        time.sleep(0.02)


def _is_running(pid: int) -> bool:
    """Whether a process still holds what it had; one that waits for its parent does not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    # The name before the state may hold anything, brackets too.
    return fields.rpartition(")")[2].split()[0] not in {"Z", "X"}


def working_in(folder: Path) -> list[int]:
    """List processes whose working folder is `folder`; empty without /proc.

    PostgreSQL and Valkey change into their data folder, and so do PostgreSQL's own
    children, which lead sessions of their own and outlive a kill of their group.
    """
    wanted = os.path.realpath(folder)
    return [pid for pid in _pids() if _link(Path(f"/proc/{pid}/cwd")) == wanted]


def marked_with(name: str, value: str) -> list[int]:
    """List processes started with an environment variable; empty without /proc."""
    wanted = os.fsencode(f"{name}={value}")
    found = []
    for pid in _pids():
        with contextlib.suppress(OSError):
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def _pids() -> list[int]:
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - names are all that is wanted
    except OSError:
        return []
    mine = os.getpid()
    return [int(name) for name in names if name.isdigit() and int(name) != mine]


def _link(path: Path) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 - the kernel's text, not a path yet
    except OSError:
        return ""
