"""Where a value stands in what the steps of a trace were given and gave."""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import Any, Final

import msgspec

from apps.engine.bodies.recorded import REDACTED
from apps.engine.bodies.texts import texts_of
from apps.engine.contracts.mentions import Normaliser, mentions
from apps.engine.memory.layers import LayerNames, LayerStep, layer_steps
from apps.engine.memory.recall import valid_text
from apps.engine.sequences import steps_in_order
from apps.engine.trace import ModelCall, Step, StepKind, ToolCall, Trace

_MOST_OF_ONE: Final = 262_144
_MOST_TEXT: Final = 16_777_216
_MOST_CALLS: Final = 200


class Telling(msgspec.Struct, frozen=True):
    """A value that was told in step `told` (`seq`).

    `told_until` is the first step of the turn after the one that tells it.
    """

    value: str
    how: Normaliser
    told: int
    told_until: int


class Passages:
    """Looks a value up in the bodies of one trace, each text once.

    Every question has three answers: it stands there, it does not, and `None` where
    that is not recorded, redacted, or longer than what is read (262,144 characters of
    one body, 16,777,216 of all).
    """

    def __init__(self, trace: Trace, telling: Telling, names: LayerNames) -> None:
        self.trace = trace
        self._names = names
        self._at = {step.seq: step for step in steps_in_order(trace)}
        self._telling = telling
        self._left = _MOST_TEXT
        self._known: dict[tuple[int, str], bool | None] = {}
        self._given: dict[int | None, list[int]] = {}
        self._calls: list[int] = []
        owners = set()
        for step in steps_in_order(trace):
            if step.kind in _ACTS:
                owners.add(step.invocation)
            if step.kind is StepKind.MODEL_CALL:
                self._calls.append(step.seq)
                if _has_input(step):
                    self._given.setdefault(step.invocation, []).append(step.seq)
        self._is_one_context = len(owners) <= 1

    @cached_property
    def layers(self) -> tuple[LayerStep, ...]:
        """The steps of memory layers since the value was told, in order."""
        found = layer_steps(self.trace, self._names)
        return tuple([each for each in found if each.step.seq >= self._telling.told])

    def step(self, seq: int | None) -> Step | None:
        """The step at a place; `None` where there is none."""
        return None if seq is None else self._at.get(seq)

    def asked_from(self, seq: int) -> int:
        """The step after which a turn looks things up.

        A message of a user comes before that. Where the turn is only known from what a
        model call was given, it is the model call before that one.
        """
        step = self._at.get(seq)
        if step is None or step.kind is not StepKind.MODEL_CALL:
            return seq
        place = bisect_left(self._calls, seq)
        return self._calls[place - 1] if place else -1

    def kept(self, one: LayerStep) -> bool | None:
        """Whether what a layer keeps or gives holds the value."""
        return self._of(one.step, "kept", one.kept)

    def taken(self, one: LayerStep) -> bool | None:
        """Whether what a layer was given holds the value.

        Without an input of its own, that is what the model call that asked for it (else
        the last one of the same agent invocation) was given; and where the agent that
        was told the fact acts in the very turn that tells it, it was given the fact.
        """
        if one.taken is not None:
            return self._of(one.step, "taken", one.taken)
        asking = self._asking(one.step)
        given = None if asking is None else self.given_to(asking)
        if given is not None:
            return given
        return True if self._is_in_telling_turn(one.step) else None

    def given_to(self, call: Step) -> bool | None:
        """Whether the recorded input of a model call holds the value.

        `None` too where it does not but the provider keeps the conversation, because
        what was sent is then a part of what the model saw.
        """
        if call.body is None or call.kind is StepKind.TOOL_CALL:
            return None
        stands = self._of(call, "input", call.body.input)
        is_kept = isinstance(call.call, ModelCall) and call.call.conversation
        return None if stands is False and is_kept else stands

    def said_by(self, call: Step) -> bool | None:
        """Whether what a model call or an agent gave holds the value."""
        return self._of(call, "output", None if call.body is None else call.body.output)

    def last_given(self, before: int) -> Step | None:
        """The last model call before a step whose input holds the value."""
        calls = sorted(
            [
                seq
                for owned in self._given.values()
                for seq in owned
                if self._telling.told <= seq < before
            ]
        )
        for seq in reversed(calls[-_MOST_CALLS:]):
            step = self._at[seq]
            if self.given_to(step):
                return step
        return None

    def _asking(self, step: Step) -> Step | None:
        """The model call that led to a step: named by it, else the last with an input."""
        by = step.call.requested_by if isinstance(step.call, ToolCall) else None
        asked = self.step(by)
        if asked is not None and asked.kind is StepKind.MODEL_CALL:
            return asked
        owned = self._given.get(step.invocation, [])
        place = bisect_left(owned, step.seq)
        return self._at[owned[place - 1]] if place else None

    def _is_in_telling_turn(self, step: Step) -> bool:
        if not self._telling.told < step.seq < self._telling.told_until:
            return False
        told = self.step(self._telling.told)
        return told is not None and (
            self._is_one_context
            or (step.invocation is not None and step.invocation == told.invocation)
        )

    def _of(self, step: Step, side: str, value: Any) -> bool | None:
        key = (step.seq, side)
        if key not in self._known:
            self._known[key] = self._stands(value)
        return self._known[key]

    def _stands(self, value: Any) -> bool | None:
        if _is_nothing(value):
            return None
        most = min(self._left, _MOST_OF_ONE)
        text = "\n".join(texts_of(value, most))
        self._left -= len(text)
        found = mentions(valid_text(text), self._telling.value, self._telling.how)
        if any(not mention.is_denied for mention in found):
            return True
        return None if len(text) >= most or REDACTED in text else False


_ACTS: Final = frozenset({StepKind.MODEL_CALL, StepKind.TOOL_CALL})


def _has_input(step: Step) -> bool:
    return step.body is not None and not _is_nothing(step.body.input)


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)
