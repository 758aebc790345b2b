"""One reading of a trace for exact reuse: what was told, and which arguments hold it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.bodies.calls import called
from apps.engine.bodies.canonical import opened
from apps.engine.bodies.recorded import REDACTED
from apps.engine.bodies.texts import texts_of
from apps.engine.contracts.conversation import Turn, turns
from apps.engine.memory.recall import cut
from apps.engine.memory.values import slots_of, tokens_in
from apps.engine.sequences import once_per_trace, steps_in_order
from apps.engine.trace import Step, StepKind, Trace

_MOST_TEXT: Final = 4_194_304
_OF_ONE: Final = 65_536
_MOST_USES: Final = 50_000
_DEEPEST: Final = 8
_SOURCES: Final = frozenset({StepKind.TOOL_CALL, StepKind.RETRIEVAL})
_SYSTEMS: Final = frozenset({"system", "developer"})
_FIXED: Final = ("system", "instructions", "system_instruction", "tools", "functions")


class Use(msgspec.Struct, frozen=True):
    """An argument that is exactly one value, and when the value was last told before.

    `told` is the step that told it last, `None` where nothing recorded did. `turn` and
    `told_turn` count the messages of users up to then.
    """

    step: Step
    name: str
    value: str
    turn: int
    told: int | None = None
    told_turn: int = 0
    failed: bool = False


class Reading(msgspec.Struct, frozen=True):
    """All uses of values in order. `is_whole` is false where some text was not read."""

    uses: tuple[Use, ...]
    turns: tuple[Turn, ...]
    is_whole: bool


@once_per_trace
def reading_of(trace: Trace) -> Reading:
    """The exact uses of values that users and tools told, in order. Never raises.

    Values that stand in system prompts or definitions of tools are left out. Up to
    4,194,304 characters are read of one trace, and 65,536 of one text.
    """
    return _Reader(trace).read()


class _Reader:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._turns = tuple([turn for turn in turns(trace) if turn.asked])
        self._starts = [turn.step for turn in self._turns]
        self._left = _MOST_TEXT
        self._is_whole = True
        self._told: dict[str, tuple[int, int]] = {}
        self._uses: list[Use] = []

    def read(self) -> Reading:
        fixed = self._fixed()
        asked = {turn.step: turn.asked for turn in self._turns}
        for step in steps_in_order(self._trace):
            turn = bisect_right(self._starts, step.seq)
            if step.seq in asked:
                self._tell_asked(asked[step.seq], step.seq, turn)
            if step.body is None:
                continue
            if step.kind is StepKind.TOOL_CALL:
                self._use(step, turn)
            if step.kind in _SOURCES:
                for text in self._texts(step.body.output):
                    self._tell(text, step.seq, turn)
        uses = tuple([use for use in self._uses if use.value not in fixed])
        return Reading(uses, self._turns, self._is_whole)

    def _tell_asked(self, text: str, step: int, turn: int) -> None:
        most = min(self._left, _OF_ONE)
        self._is_whole = self._is_whole and len(text) <= most
        self._left -= min(len(text), most)
        self._tell(text[:most], step, turn)

    def _tell(self, text: str, step: int, turn: int) -> None:
        for token in tokens_in(text):
            self._told[token] = (step, turn)

    def _use(self, step: Step, turn: int) -> None:
        if step.body is None or step.body.input is None:
            return
        failed: bool | None = None
        for name, value in slots_of(step.body.input):
            if failed is None:
                failed = called(step).failed
            if not name or len(self._uses) >= _MOST_USES:
                continue
            told, told_turn = self._told.get(value, (None, 0))
            self._uses.append(
                Use(step, cut(name), value, turn, told, told_turn, failed)
            )

    def _texts(self, value: Any) -> Iterator[str]:
        most = min(self._left, _OF_ONE)
        size = 0
        for text in texts_of(value, most):
            size += len(text)
            self._is_whole = self._is_whole and REDACTED not in text
            yield text
        self._left -= size
        if value is not None and size >= most:
            self._is_whole = False

    def _fixed(self) -> frozenset[str]:
        """The values of system prompts and tools, of the first call of each agent."""
        found: set[str] = set()
        seen: set[int | None] = set()
        for step in steps_in_order(self._trace):
            if step.body is None:
                continue
            if step.kind is StepKind.SYSTEM:
                self._take((step.body.input, step.body.output), found)
            elif step.kind is StepKind.MODEL_CALL and step.invocation not in seen:
                seen.add(step.invocation)
                self._take(tuple(_fixed_in(opened(step.body.input), 0)), found)
                self._take(step.body.attributes, found)
        return frozenset(found)

    def _take(self, value: Any, found: set[str]) -> None:
        for text in texts_of(value, _OF_ONE):
            found.update(tokens_in(text))


def _fixed_in(value: Any, depth: int) -> Iterator[Any]:
    """Yield what a request holds that is the same for every task."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        role = value.get("role", value.get("type"))
        if isinstance(role, str) and role in _SYSTEMS:
            yield value
            return
        yield from (value[key] for key in _FIXED if key in value)
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, dict | list):
                yield from _fixed_in(item, depth + 1)
