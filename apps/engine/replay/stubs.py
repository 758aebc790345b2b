"""What answers the tool calls of a run: recordings, static values, handlers, or a miss.

Nothing real is called. A tool that writes is answered like any other, and the call is
kept as an intended act. What was answered before is in the log, from which a session
goes on after a break.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from apps.engine.bodies.canonical import canonical, opened
from apps.engine.bodies.effects import is_reading_action, is_write
from apps.engine.bodies.offers import plain_name
from apps.engine.contracts.budget import Budget, BudgetSpent, Undecided
from apps.engine.replay.case import Case
from apps.engine.replay.nearest import like, why_missed
from apps.engine.replay.run import AnswerSource, ToolAnswer
from apps.engine.replay.stub_expressions import MOST_UNITS, computed
from apps.engine.replay.stub_plan import (
    Again,
    BadPlan,
    MissPolicy,
    StubKind,
    StubPlan,
    ToolStub,
)

Handler: TypeAlias = Callable[[str, Any], Any]
"""Gets the name of the tool and a copy of the arguments, gives a JSON value."""

LARGEST_RESULT: Final = 10 * 1024**2


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """One call as it was answered; the entry of a log as a value."""

    tool: str
    arguments: Any
    answer: ToolAnswer


class StubSession:
    """Answers the tool calls of one run, one after another, by a plan.

    Not safe to use from two threads at once.
    """

    def __init__(
        self,
        case: Case,
        plan: StubPlan,
        *,
        log: Sequence[Mapping[str, Any]] = (),
        handlers: Mapping[str, Handler] | None = None,
    ) -> None:
        """`log` is that of an earlier session of the same case and plan.

        `handlers` is the allow-list. Raises `BadPlan` where the plan names a handler
        that is not on it, or where the log is none of such a session.
        """
        self._case = case
        self._plan = plan
        self._handlers = dict(handlers or {})
        unknown = [name for name in plan.handlers if name not in self._handlers]
        if unknown:
            raise BadPlan(
                f"The handler “{unknown[0]}” is not on the list of this installation."
            )
        self._by_key: dict[tuple[str, str], list[int]] = {}
        self._by_tool: dict[str, list[int]] = {}
        for place, call in enumerate(case.calls):
            tool = plain_name(call.tool)
            self._by_tool.setdefault(tool, []).append(place)
            if call.arguments is not None:
                key = (tool, _canonical(call.arguments))
                self._by_key.setdefault(key, []).append(place)
        self._used: set[int] = set()
        self._budget = Budget(MOST_UNITS)
        self._called: dict[str, int] = {}
        self._answered: list[Answered] = []
        for entry in log:
            self._keep(_taken_up(entry, len(case.calls)))

    def answer(self, tool: str, arguments: Any) -> ToolAnswer:
        """The answer to a call, which the log keeps. Never raises for JSON values.

        The value is a copy: what the agent does to it changes no recording.
        """
        given = copy.deepcopy(opened(arguments))
        stub = self._plan.of(tool)
        answer = self._by_kind(stub, tool, given)
        answer = msgspec.structs.replace(answer, writes=self._writes(stub, tool, given))
        self._keep(Answered(tool=tool, arguments=given, answer=answer))
        return copy.deepcopy(answer)

    @property
    def log(self) -> tuple[dict[str, Any], ...]:
        """Every call with its answer, in order, as JSON values."""
        return tuple(msgspec.to_builtins(one) for one in self._answered)

    @property
    def answered(self) -> tuple[Answered, ...]:
        """Every call with its answer, in order."""
        return tuple(self._answered)

    @property
    def misses(self) -> tuple[Answered, ...]:
        """The calls that no stub knew."""
        return tuple(
            one for one in self._answered if one.answer.source is AnswerSource.MISS
        )

    @property
    def intended_writes(self) -> tuple[Answered, ...]:
        """The calls of tools that change something: intended, and not done."""
        return tuple(one for one in self._answered if one.answer.writes)

    @property
    def unconsumed(self) -> tuple[int, ...]:
        """The places among `Case.calls` of the recordings that were never used."""
        places = range(len(self._case.calls))
        return tuple(place for place in places if place not in self._used)

    def _keep(self, one: Answered) -> None:
        self._answered.append(one)
        tool = plain_name(one.tool)
        self._called[tool] = self._called.get(tool, 0) + 1
        if one.answer.matched is not None:
            self._used.add(one.answer.matched)

    def _by_kind(self, stub: ToolStub, tool: str, given: Any) -> ToolAnswer:
        if stub.kind is StubKind.RECORDED:
            return self._recorded(stub, tool, given)
        if stub.kind is StubKind.IN_ORDER:
            return self._in_order(stub, tool, given)
        if stub.kind is StubKind.STATIC:
            result = copy.deepcopy(stub.value)
            return ToolAnswer(
                source=AnswerSource.STATIC, result=result, error=stub.error
            )
        if stub.kind is StubKind.EXPRESSION:
            return self._computed(stub, tool, given)
        return self._handled(stub, tool, given)

    def _recorded(self, stub: ToolStub, tool: str, given: Any) -> ToolAnswer:
        places = self._by_key.get((plain_name(tool), _canonical(given)), [])
        unused = [place for place in places if place not in self._used]
        if unused:
            return self._from(unused[0])
        if not places:
            return self._missed(self._why(tool, given))
        count = f"{len(places):,} recording{'' if len(places) == 1 else 's'}"
        if stub.again is Again.MISS:
            return self._missed(f"The {count} of this call are used up.")
        return self._from(places[-1], f"The {count} of this call came before: again.")

    def _in_order(self, stub: ToolStub, tool: str, given: Any) -> ToolAnswer:
        places = self._by_tool.get(plain_name(tool), [])
        unused = [place for place in places if place not in self._used]
        if unused:
            return self._from(unused[0], self._differs(unused[0], given))
        if not places:
            return self._missed(self._why(tool, given))
        if stub.again is Again.MISS:
            return self._missed(f"All {len(places):,} recordings of it are used up.")
        return self._from(
            places[-1], "All recordings of it came before: the last again."
        )

    def _differs(self, place: int, given: Any) -> str:
        call = self._case.calls[place]
        if call.arguments is None or _canonical(call.arguments) == _canonical(given):
            return ""
        return f"Taken by its order. {why_missed(given, [(place, call)])}"

    def _why(self, tool: str, given: Any) -> str:
        places = self._by_tool.get(plain_name(tool), [])
        if not places:
            return like(tool, [call.tool for call in self._case.calls])
        return why_missed(given, [(place, self._case.calls[place]) for place in places])

    def _from(self, place: int, note: str = "") -> ToolAnswer:
        call = self._case.calls[place]
        if call.result is None and not call.error:
            note = f"{note} What it answered is not recorded.".strip()
        return ToolAnswer(
            source=AnswerSource.RECORDED,
            result=copy.deepcopy(call.result),
            error=call.error,
            matched=place,
            note=note,
        )

    def _missed(self, why: str) -> ToolAnswer:
        policy = self._plan.misses
        if policy is MissPolicy.EMPTY:
            return ToolAnswer(source=AnswerSource.MISS, result="", note=why)
        return ToolAnswer(
            source=AnswerSource.MISS,
            error="This call has no prepared answer.",
            stops=policy is MissPolicy.STOP,
            note=why,
        )

    def _computed(self, stub: ToolStub, tool: str, given: Any) -> ToolAnswer:
        call = self._called.get(plain_name(tool), 0) + 1
        variables = {"arguments": given, "tool": tool, "call": call}
        try:
            value = computed(stub.expression).value(variables, self._budget)
        except Undecided as error:
            return self._missed(f"No answer, because {error}.")
        except BudgetSpent:
            return self._missed("The expressions of this run have cost too much.")
        return ToolAnswer(source=AnswerSource.HANDLER, result=value)

    def _handled(self, stub: ToolStub, tool: str, given: Any) -> ToolAnswer:
        handler = self._handlers[stub.handler]
        named = f"The handler “{stub.handler}”"
        try:
            value = handler(tool, copy.deepcopy(given))
            text = json.dumps(value, allow_nan=False)
        # An operator's own code may raise anything; the run goes on with a miss.
        except Exception as error:  # noqa: BLE001
            return self._missed(f"{named} failed ({type(error).__name__}).")
        if len(text) > LARGEST_RESULT:
            return self._missed(
                f"{named} gave more than {LARGEST_RESULT:,} characters."
            )
        return ToolAnswer(source=AnswerSource.HANDLER, result=json.loads(text))

    def _writes(self, stub: ToolStub, tool: str, given: Any) -> bool:
        if stub.writes is not None:
            return stub.writes
        places = self._by_tool.get(plain_name(tool), ())
        if any(self._case.calls[place].writes for place in places):
            return not is_reading_action(given)
        return is_write(tool) and not is_reading_action(given)


def _canonical(arguments: Any) -> str:
    """Arguments as one text; none at all is the same as an empty object."""
    return canonical({} if arguments in (None, "") else arguments)


def _taken_up(entry: Mapping[str, Any], calls: int) -> Answered:
    try:
        one = msgspec.convert(entry, Answered)
    except (msgspec.ValidationError, TypeError):
        raise BadPlan("The log is none that a stub session wrote.") from None
    matched = one.answer.matched
    if matched is not None and not 0 <= matched < calls:
        raise BadPlan(f"The log uses recording {matched + 1:,}, which the case lacks.")
    return one
