"""Runs agents that are Python callables or commands, each run as one record.

They run in the sandbox and nowhere else; their code is never imported here. What they
were not allowed to run for (a name on no list, too little isolation) is a record too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from apps.engine.memory_tests.conversation import Said, TurnFailed
from apps.engine.replay.case import Case, hash_of
from apps.engine.replay.run import (
    AnswerSource,
    Effect,
    Ending,
    ErrorKind,
    Event,
    Message,
    Proof,
    Ran,
    RunError,
    StateSeen,
    ToolAnswer,
    ToolCalled,
)
from apps.isolation.hooks import Cancelled, NotNow, OverBudget
from apps.isolation.sandbox import (
    RELAY_URL,
    Isolated,
    Reached,
    Refused,
    RelayRequest,
    RelayResponse,
    Run,
    SandboxOrder,
    StopRun,
    probe,
)

Answer = Callable[[str, Any], ToolAnswer]
Stop = Callable[[], bool]
Clock = Callable[[], int]
_T = TypeVar("_T")
_MOST_MESSAGES: Final = 5_000

_COPY_OF_A_COMMAND: Final = (
    "A command is handed a copy of its input as text: its hash is the same afterwards "
    "whatever it does with that copy."
)
_ENDINGS: Final = {
    Cancelled: (Ending.CANCELLED, ErrorKind.CANCELLED),
    OverBudget: (Ending.OVER_BUDGET, ErrorKind.BUDGET),
    NotNow: (Ending.FAILED, ErrorKind.RATE_LIMITED),
}


class LocalOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A case for local code. `sandbox` says how; what is handed over is of the case."""

    case: Case
    sandbox: SandboxOrder
    temperature: float | None = None
    seed: int | None = None


def given_of(order: LocalOrder) -> dict[str, Any]:
    """What the agent is handed as JSON, the first line of a command's input."""
    case = order.case
    return {
        "input": case.input,
        "messages": list(case.messages),
        "state": case.state,
        "context": case.context,
        "tools": [msgspec.to_builtins(offer) for offer in case.tools],
        "model": case.model,
        "model_url": RELAY_URL if order.sandbox.relay else "",
        "temperature": order.temperature,
        "seed": order.seed,
        "case_name": case.name,
    }


def run_callable(
    order: LocalOrder, *, answer: Answer, stop: Stop, clock_ns: Clock
) -> Ran:
    """Run a callable alone. `answer` stands for its tools.

    Whatever the callable does, a record comes back. Raises `NotNow`, with the record so
    far in it, where the way to its model does; else what `answer` raises by mistake.
    """
    return _run(order, answer, stop, clock_ns)


def run_command(
    order: LocalOrder, *, answer: Answer, stop: Stop, clock_ns: Clock
) -> Ran:
    """Run a command alone; as `run_callable`.

    Its first line of input is the order as JSON. It may print lines {"ask": "tool",
    "tool", "arguments"} and reads a line with "result" or "error" for each. The line
    {"output", "state"} is its answer; without one, all that it printed is.
    """
    return _run(order, answer, stop, clock_ns)


def run_stateful(
    order: LocalOrder,
    drive: Callable[[TurnByTurn], _T],
    *,
    answer: Answer,
    stop: Stop,
    clock_ns: Clock,
) -> tuple[Ran, _T | None]:
    """Talk with a stateful callable: `drive` gets the conversation, turn by turn.

    Back come the record and what `drive` gave back, `None` where nothing was begun.
    What `drive` raises goes on after the run was ended.
    """
    record = _Record(order, answer, clock_ns)
    conversation = TurnByTurn(record, stop)
    result = None
    try:
        conversation.begin()
        result = drive(conversation)
    except Refused as refusal:
        return record.refused(str(refusal)), None
    finally:
        conversation.end()
    return record.ran(conversation.parts), result


def _run(order: LocalOrder, answer: Answer, stop: Stop, clock_ns: Clock) -> Ran:
    record = _Record(order, answer, clock_ns)
    try:
        run = Run(record.sandbox(), ask=record.ask, stop=stop, clock_ns=clock_ns)
        with run:
            run.go_on(lambda: False)
    except Refused as refusal:
        return record.refused(str(refusal))
    return record.ran([run.isolated()])


class TurnByTurn:
    """A conversation with a stateful callable in one process after another."""

    def __init__(self, record: _Record, stop: Stop) -> None:
        self._sandbox = msgspec.structs.replace(record.sandbox(), has_turns=True)
        self._record, self._stop = record, stop
        self._run: Run | None = None
        self._turns = 0
        self.parts: list[Isolated] = []
        """What the processes were, once they have ended."""

    def begin(self) -> None:
        """Start the agent from the state of the case. Raises `Refused`."""
        run = Run(
            self._sandbox,
            ask=self._record.ask,
            stop=self._stop,
            clock_ns=self._record.clock_ns,
        )
        run.ledger.after = len(self._record.events)
        self._run = run.__enter__()

    def turn(self, text: str) -> Said:
        """The answer to what a user says. Raises `TurnFailed`."""
        self._turns += 1
        before = len(self._record.events)
        self._note(Message(role="user", content=text, at_ns=self._record.clock_ns()))
        found = self._exchanged({"turn": text}, "turned")
        said = Message(role="assistant", content=found, at_ns=self._record.clock_ns())
        self._note(said)
        return Said(answer=found, events=tuple(self._record.events[before + 1 : -1]))

    def state(self) -> Any:
        """What the agent keeps, as a JSON value. Raises `TurnFailed`."""
        found = self._exchanged({"state": True}, "remembered")
        now = self._record.clock_ns()
        self._note(StateSeen(state=found, turn=self._turns, at_ns=now))
        return found

    def restart(self) -> None:
        """Forget all: the process ends, and another begins. Raises `TurnFailed`."""
        self.end()
        try:
            self.begin()
        except Refused as refusal:
            raise TurnFailed(
                RunError(kind=ErrorKind.NOT_ALLOWED, sentence=str(refusal))
            ) from refusal

    def end(self) -> None:
        """Let the agent end by itself, or end it; safe to call twice."""
        run, self._run = self._run, None
        if run is None:
            return
        try:
            if run.talking is not None and not run.is_over and run.final is None:
                run.talking.send({"done": True})
                run.go_on(lambda: run.final is not None)
        finally:
            run.__exit__(None, None, None)
            self.parts.append(run.isolated())

    def _note(self, event: Event) -> None:
        self._record.events.append(event)
        if self._run is not None:
            self._run.ledger.after = len(self._record.events)

    def _exchanged(self, said: dict[str, Any], name: str) -> Any:
        """Send a line and wait for the one that answers it."""
        run = self._run
        if run is None or run.talking is None:
            raise TurnFailed(self._why())
        replies = run.talking.replies
        if not any("started" in one for one in replies):
            run.go_on(lambda: bool(replies) or run.final is not None)
        replies.clear()
        replies.append({"started": True})
        run.talking.send(said)
        run.go_on(lambda: len(replies) > 1 or run.final is not None)
        if len(replies) > 1 and name in replies[-1]:
            return replies[-1][name]
        self.end()
        raise TurnFailed(self._why())

    def _why(self) -> RunError:
        found = self.parts[-1].error if self.parts else None
        words = "The agent ended before it was asked."
        return found or RunError(kind=ErrorKind.CRASHED, sentence=words)


class _Record:
    """The events of a run, and the record that is made of them."""

    def __init__(self, order: LocalOrder, answer: Answer, clock_ns: Clock) -> None:
        self._order, self._answer = order, answer
        self.clock_ns = clock_ns
        self.events: list[Event] = []
        self._model_calls = itertools.count(1)
        self._put_back: NotNow | None = None

    def sandbox(self) -> SandboxOrder:
        """The order with what is handed over, and its way to the model watched."""
        sandbox = self._order.sandbox
        relay = self._relayed if sandbox.relay else None
        return msgspec.structs.replace(
            sandbox, given=given_of(self._order), relay=relay
        )

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """The answer to a question of the agent. Raises `StopRun`."""
        now = self.clock_ns()
        if question.get("ask") == "message":
            self._check_messages()
            role = str(question.get("role") or "assistant")
            said = Message(role=role, content=question.get("content"), at_ns=now)
            self.events.append(said)
            return {}
        if question.get("ask") != "tool" or not isinstance(question.get("tool"), str):
            return {"error": 'Ask with {"ask": "tool", "tool": name, "arguments": {}}.'}
        tool, arguments = question["tool"], question.get("arguments")
        self._check_tool_calls()
        try:
            found = self._answer(tool, arguments)
        except (Cancelled, OverBudget) as refusal:
            raise self._stopped(refusal) from refusal
        number = question.get("id")
        called = ToolCalled(
            tool=tool,
            arguments=arguments,
            answer=found,
            call_id=None if number is None else str(number),
            start_ns=now,
            end_ns=self.clock_ns(),
        )
        self.events.append(called)
        if found.stops:
            words = found.note or found.error or f"The stub of {tool} ends the run."
            raise StopRun(
                Ending.STOPPED, RunError(kind=ErrorKind.STOPPED, sentence=words)
            )
        return {"error": found.error} if found.error else {"result": found.result}

    def _check_messages(self) -> None:
        if sum(isinstance(one, Message) for one in self.events) >= _MOST_MESSAGES:
            words = f"The agent wrote more than {_MOST_MESSAGES:,} messages down."
            raise StopRun(Ending.FAILED, RunError(kind=ErrorKind.LIMIT, sentence=words))

    def _check_tool_calls(self) -> None:
        most = self._order.sandbox.limits.tool_calls
        if sum(isinstance(one, ToolCalled) for one in self.events) >= most:
            words = f"The agent called more than {most} tools."
            raise StopRun(Ending.FAILED, RunError(kind=ErrorKind.LIMIT, sentence=words))

    def _relayed(self, request: RelayRequest) -> RelayResponse:
        most = self._order.sandbox.limits.model_calls
        # One call after the other comes out of this, from whatever thread.
        if next(self._model_calls) > most:
            words = f"The agent called its model more than {most} times."
            raise StopRun(Ending.FAILED, RunError(kind=ErrorKind.LIMIT, sentence=words))
        relay = self._order.sandbox.relay
        assert relay is not None  # noqa: S101 - this stands before it
        try:
            response = relay(request)
        except (Cancelled, OverBudget, NotNow) as refusal:
            raise self._stopped(refusal) from refusal
        if response.event is not None:
            self.events.append(response.event)
        return response

    def _stopped(self, refusal: Cancelled | OverBudget | NotNow) -> StopRun:
        ending, kind = _ENDINGS[type(refusal)]
        wait = None
        if isinstance(refusal, NotNow):
            self._put_back, wait = refusal, refusal.seconds
        return StopRun(
            ending, RunError(kind=kind, sentence=str(refusal), retry_after=wait)
        )

    def refused(self, sentence: str) -> Ran:
        """The record of a run that was not begun."""
        now = self.clock_ns()
        return Ran(
            ending=Ending.FAILED,
            error=RunError(kind=ErrorKind.NOT_ALLOWED, sentence=sentence),
            proof=self._proof(probe(self._order.sandbox.at_most), None),
            start_ns=now,
            end_ns=now,
        )

    def ran(self, parts: list[Isolated]) -> Ran:
        """The record of a run of one process or more. Raises `NotNow`."""
        last = parts[-1]
        effects: list[Effect] = [effect for one in parts for effect in one.effects]
        ran = Ran(
            ending=last.ending,
            output=last.output,
            state=last.state,
            error=last.error,
            events=tuple(self.events),
            effects=tuple(effects),
            proof=self._proof(last.reached, last),
            printed="".join(one.printed for one in parts),
            start_ns=parts[0].start_ns,
            end_ns=last.end_ns,
        )
        if self._put_back is not None:
            self._put_back.ran = ran if self.events else None
            raise self._put_back
        return ran

    def _proof(self, reached: Reached, last: Isolated | None) -> Proof:
        tools = [one for one in self.events if isinstance(one, ToolCalled)]
        missed = sum(one.answer.source is AnswerSource.MISS for one in tools)
        used = {one.answer.matched for one in tools}
        case = self._order.case
        has_state = last is not None and last.state is not None
        return Proof(
            level=str(reached.level),
            wall=reached.wall,
            not_walled=(*reached.not_walled, *self._not_seen()),
            input_before=last.input_before if last else "",
            input_after=last.input_after if last else "",
            state_copy="" if case.state is None else hash_of(case.state),
            state_after=hash_of(last.state) if last and has_state else "",
            stubbed_calls=len(tools) - missed,
            missed_calls=missed,
            unconsumed=tuple(n for n in range(len(case.calls)) if n not in used),
            intended_writes=sum(one.answer.writes for one in tools),
            versions=reached.versions,
            limits=self._order.sandbox.limits,
        )

    def _not_seen(self) -> tuple[str, ...]:
        return (_COPY_OF_A_COMMAND,) if self._order.sandbox.is_command else ()
