"""Hearing and answering a run: its lines, what it prints, and what the kernel asks."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import selectors
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from apps.engine.reading.json_values import is_too_deep
from apps.engine.reading.json_words import MAX_DEPTH
from apps.engine.replay.answer_gate import MOST_VALUES
from apps.engine.replay.run import EffectKind, Ending, ErrorKind
from apps.isolation.masking import Mask
from apps.isolation.sandbox import relay
from apps.isolation.sandbox.ending import Report
from apps.isolation.sandbox.launching import Launched
from apps.isolation.sandbox.levels import Level
from apps.isolation.sandbox.lines import id_of, object_in, values_in
from apps.isolation.sandbox.notices import HeldBack, Notice, Notices
from apps.isolation.sandbox.order import (
    RelayRequest,
    RelayResponse,
    StopRun,
    failed,
)
from apps.isolation.sandbox.printed import HIDDEN, visible
from apps.isolation.sandbox.typing_in import TypingIn

if TYPE_CHECKING:
    from apps.isolation.sandbox.runner import Run

_PIECE: Final = 1 << 18
_LONGEST_CONTROL: Final = 65_536
_SECONDS_OF_THE_REST: Final = 0.5
_SECONDS_OF_AN_ANSWER: Final = 5.0
_MOST_WORDS: Final = 300
_MOST_REPLIES: Final = 4
_MOST_CONNECTIONS: Final = 32
_PIECES_BEFORE_A_NOTICE: Final = 4
_ASKED_TIMES: Final = 4
_TOO_DEEP: Final = f"It is nested more than {MAX_DEPTH} levels."
_KINDS: Final = frozenset(str(kind) for kind in EffectKind)


class Talking:
    """All that is open towards a run, each with what is done when it says something."""

    def __init__(
        self, run: Run, launched: Launched, selector: selectors.BaseSelector
    ) -> None:
        self._run, self._selector = run, selector
        self._line, self._control = launched.line, launched.control
        limits = run.order.limits
        handed_over = len(msgspec.json.encode(run.order.given))
        self._longest = limits.answer_bytes + 3 * handed_over + 2 * _LONGEST_CONTROL
        self._of_line, self._of_control = bytearray(), bytearray()
        self._notices: Notices | None = None
        self._has_wall = run.reached.level != Level.NONE
        self._is_ready = self._has_begun = False
        self._secrets = Mask(run.order.secrets, HIDDEN)
        self.is_gone = False
        self.replies: list[dict[str, Any]] = []
        self.said = bytearray()
        self._most_values = MOST_VALUES + values_in(
            msgspec.json.encode(run.order.given)
        )
        self._asked_bytes = 0
        self._connections: list[threading.Thread] = []
        self._line.settimeout(_SECONDS_OF_AN_ANSWER)
        self._listen(self._line, self._hear_line)
        self._listen(self._control, self._hear_control)
        self._out, self._err = launched.printed
        self._typing: TypingIn | None = None
        if launched.typed is not None:
            self._typing = TypingIn(launched.typed, selector)
            self._typing.write(run.order.given)
        for pipe in launched.printed:
            os.set_blocking(pipe.fileno(), False)
            self._listen(pipe, partial(self._hear_printed, pipe))

    def _listen(self, what: Any, hear: Callable[[], None]) -> None:
        self._selector.register(what, selectors.EVENT_READ, hear)

    def _forget(self, what: Any) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(what)

    def send(self, value: Any) -> None:
        """Send the agent a line; one that nobody reads ends the run in seconds."""
        line = msgspec.json.encode(value) + b"\n"
        try:
            self._line.sendall(line)
        except OSError:
            self._forget(self._line)

    # The line of the agent's process.

    def _hear_line(self) -> None:
        # It may have been heard already, before what the kernel asked.
        if not _is_readable(self._line):
            return
        try:
            piece, descriptors, _, _ = socket.recv_fds(self._line, _PIECE, 4)
        except OSError:
            piece, descriptors = b"", []
        for descriptor in descriptors:
            if self._notices is None and not self._is_ready:
                self._notices = Notices(descriptor)
                self._listen(descriptor, self._hear_notice)
            else:
                os.close(descriptor)
        if not piece:
            self._forget(self._line)
            return
        self._of_line += piece
        if len(self._of_line) > self._longest:
            self._too_large("sent a line of", self._run.order.limits.answer_bytes)
            return
        *whole, rest = self._of_line.split(b"\n")
        self._of_line = rest
        for line in whole:
            self._take(bytes(line))

    def _take(self, line: bytes) -> None:
        """One line of the process; what is none of ours ends the run."""
        told = object_in(line, self._most_values)
        if told is None:
            self._run.end(
                Ending.FAILED,
                failed(
                    ErrorKind.BAD_ANSWER,
                    f"{self._run.order.name} sent a line that is no JSON object of at "
                    f"most {self._most_values:,} values.",
                ),
            )
            return
        for name, take in self._takes().items():
            if name in told:
                self._asked_bytes += len(line) if name == "ask" else 0
                take(told)
                return

    def _takes(self) -> dict[str, Callable[[dict[str, Any]], None]]:
        return {
            "effect": self._take_effect,
            "ask": lambda told: self.send(self._answered(told)),
            "final": self._take_final,
            "ready": lambda _: setattr(self, "_is_ready", True),
            "started": self._take_reply,
            "turned": self._take_reply,
            "remembered": self._take_reply,
            "no_wall": self._take_no_wall,
            "not_started": self._take_not_started,
        }

    def _answered(self, told: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question of the agent; it counts as an event.

        After the end nothing is answered, and so nothing is written down, any more.
        """
        if self._run.error is not None:
            return {"error": "The run was ended."}
        if self._asked_bytes > _ASKED_TIMES * self._longest:
            self._too_large("asked with", _ASKED_TIMES * self._longest)
            return {"error": "The run was ended."}
        if is_too_deep(told):
            return {"error": _TOO_DEEP}
        question, has_leak = self._secrets.hidden(told)
        if has_leak:
            what = "handed a secret that it was given to a tool"
            self._run.ledger.told(EffectKind.LEAK, what, was_stopped=True)
        try:
            return self._run.ask(question)
        finally:
            self._run.ledger.after += 1

    def _take_effect(self, told: dict[str, Any]) -> None:
        match told["effect"]:
            case [str(kind), str(what), bool(is_breach)] if kind in _KINDS:
                # What is held back inside of the run and what is only looked at.
                self._run.ledger.told(
                    EffectKind(kind),
                    visible(what[:_MOST_WORDS]),
                    was_stopped=True if self._has_wall else None,
                    is_breach=is_breach,
                )

    def _take_final(self, told: dict[str, Any]) -> None:
        final = told["final"]
        if not isinstance(final, dict) or self._run.final is not None:
            return
        if any(is_too_deep(final.get(part)) for part in ("output", "state")):
            final = {
                "error": [ErrorKind.BAD_ANSWER, f"The answer is no JSON: {_TOO_DEEP}"]
            }
        self._run.final = final

    def _take_reply(self, told: dict[str, Any]) -> None:
        """What answers us in a conversation; what nobody waits for is not kept."""
        if is_too_deep(told):
            self._run.end(Ending.FAILED, failed(ErrorKind.BAD_ANSWER, _TOO_DEEP))
            return
        reply, has_leak = self._secrets.hidden(told)
        if has_leak:
            what = "gave out a secret that it was given"
            self._run.ledger.told(EffectKind.LEAK, what, was_stopped=True)
        if len(self.replies) < _MOST_REPLIES:
            self.replies.append(reply)

    def _take_no_wall(self, told: dict[str, Any]) -> None:
        if not self._is_ready:
            why = visible(str(told["no_wall"])[:_MOST_WORDS])
            words = f"The wall could not be put up: {why}."
            self._run.end(Ending.FAILED, failed(ErrorKind.OURS, words))

    def _take_not_started(self, told: dict[str, Any]) -> None:
        why = visible(str(told["not_started"])[:_MOST_WORDS])
        words = f"{self._run.order.name} could not be started: {why}."
        self._run.end(Ending.FAILED, failed(ErrorKind.TARGET, words))

    def _too_large(self, how: str, most: int) -> None:
        words = f"{self._run.order.name} {how} more than {most:,} bytes."
        self._run.end(Ending.FAILED, failed(ErrorKind.TOO_LARGE, words))

    # The first process of the run.

    def _hear_control(self) -> None:
        try:
            piece = self._control.recv(_PIECE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        self._of_control += piece
        if b"\n" in self._of_control:
            with contextlib.suppress(msgspec.DecodeError):
                line = self._of_control.partition(b"\n")[0]
                self._run.report = msgspec.json.decode(line, type=Report)
        if not piece or len(self._of_control) > _LONGEST_CONTROL:
            self.is_gone = True
            self._forget(self._control)
            if self._run.report is None and self._run.final is None:
                words = f"The sandbox of {self._run.order.name} broke off."
                self._run.end(Ending.FAILED, failed(ErrorKind.OURS, words))

    # What it prints, and a command's lines among that.

    def _hear_printed(self, pipe: IO[bytes]) -> None:
        try:
            piece = os.read(pipe.fileno(), _PIECE)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        if not piece:
            self._forget(pipe)
        if self._typing is None or pipe is not self._out:
            self._run.printed.add(piece)
            return
        for line in self._typing.lines(piece, self._longest):
            self._take_printed(line)

    def _take_printed(self, line: bytes) -> None:
        """A line of a command: a question, its answer, or simply text."""
        told = object_in(line, self._most_values)
        if told is not None and "output" in told:
            self._take_final(
                {"final": {"output": told["output"], "state": told.get("state")}}
            )
        elif told is not None and "ask" in told and self._typing is not None:
            self._asked_bytes += len(line)
            answer = self._answered(told)
            self._typing.write({**answer, **id_of(told)})
        else:
            self._run.printed.add(line)
            if len(self.said) <= self._run.order.limits.answer_bytes:
                self.said += line

    # What the kernel asks.

    def _hear_notice(self) -> None:
        assert self._notices is not None  # noqa: S101 - only listened to when there
        notice = self._notices.next()
        if notice is None:
            if not self._is_asked():
                self._forget(self._notices.descriptor)
            return
        # What the watch said of it lies in the line already; whoever writes on and on
        # does not keep us here.
        for _ in range(_PIECES_BEFORE_A_NOTICE):
            if self._line not in self._open() or not _is_readable(self._line):
                break
            self._hear_line()
        self._decide(self._notices, notice)

    def _open(self) -> list[Any]:
        return [key.fileobj for key in self._selector.get_map().values()]

    def _is_asked(self) -> bool:
        """Whether somebody is still there who could ask."""
        assert self._notices is not None  # noqa: S101
        poll = select.poll()
        poll.register(self._notices.descriptor, select.POLLIN)
        return not any(event & select.POLLHUP for _, event in poll.poll(0))

    def _decide(self, notices: Notices, notice: Notice) -> None:
        order = self._run.order
        if order.relay is not None and notices.is_for_relay(notice):
            self._connect(notices, notice)
            return
        held_back = notices.described(notice)
        if order.is_command and notice.name in {"execve", "execveat"}:
            notices.let(notice)
            self._note_start(held_back)
            return
        notices.refuse(notice, held_back.error)
        self._run.ledger.held_back(
            held_back.kind, visible(held_back.what), is_breach=held_back.is_breach
        )

    def _connect(self, notices: Notices, notice: Notice) -> None:
        """Give the agent one more connection to its model, of some at a time."""
        self._connections = [one for one in self._connections if one.is_alive()]
        if len(self._connections) >= _MOST_CONNECTIONS:
            notices.refuse(notice, errno.ECONNREFUSED)
            return
        ours, theirs = relay.tcp_pair()
        notices.replace(notice, theirs)
        theirs.close()
        most = self._run.order.limits.answer_bytes
        self._connections.append(relay.begin(ours, self._relayed, most))

    def _relayed(self, request: RelayRequest) -> RelayResponse:
        """The answer of the model endpoint; runs in a thread of its connection."""
        assert self._run.order.relay is not None  # noqa: S101 - not connected else
        try:
            response = self._run.order.relay(
                msgspec.structs.replace(request, waiting=self._run.not_counted)
            )
        except StopRun as stopped:
            self._run.end(stopped.ending, stopped.error)
            raise
        self._run.ledger.after += response.event is not None
        return response

    def _note_start(self, held_back: HeldBack) -> None:
        """A command may start others; its own start is none of them."""
        if self._has_begun:
            self._run.ledger.told(
                held_back.kind,
                visible(held_back.what),
                was_stopped=False,
                is_breach=False,
            )
        self._has_begun = True

    def hear_the_rest(self) -> None:
        """Take in what was said before the end, and let go of the kernel."""
        until = time.monotonic() + _SECONDS_OF_THE_REST
        while time.monotonic() < until:
            ready = self._selector.select(0)
            heard = [key for key, events in ready if events & selectors.EVENT_READ]
            for key in heard:
                with contextlib.suppress(Exception):
                    key.data()
            if not heard:
                break
        if self._typing is not None:
            for line in self._typing.last():
                self._take_printed(line)
        if self._notices is not None:
            self._forget(self._notices.descriptor)
            os.close(self._notices.descriptor)
            self._notices = None


def _is_readable(end: socket.socket) -> bool:
    poll = select.poll()
    poll.register(end, select.POLLIN)
    return bool(poll.poll(0))
