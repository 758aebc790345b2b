"""A trace as turns of a conversation: what was asked, and all that was answered.

Turns begin with a message of a user. Where such messages are no steps of their own, a
turn begins with a model call whose last message of a user is another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.bodies.canonical import opened
from apps.engine.bodies.texts import said_in, texts_of
from apps.engine.sequences import once_per_trace, steps_in_order
from apps.engine.trace import Body, Step, StepKind, Trace

_MOST_TEXT: Final = 262_144
_DEEPEST: Final = 6
_TOLD: Final = frozenset({StepKind.USER_MESSAGE, StepKind.SYSTEM})
_USERS: Final = frozenset({"user", "human", "humanmessage"})
_TELLERS: Final = _USERS | {"system", "developer", "systemmessage"}


class Turn(msgspec.Struct):
    """One message of a user and what the system said and did until the next one.

    `told` is all that was told to the system by then in this turn: the message itself
    and what systems messages say. `answers` are the texts of model calls and the
    arguments of tool calls, `steps` the steps that they come from.
    """

    step: int
    asked: str
    told: str
    answers: list[str]
    steps: list[int]
    is_answered: bool = False


@once_per_trace
def turns(trace: Trace) -> tuple[Turn, ...]:
    """The turns of `trace` in order; what was told before the first is one of its own."""
    steps = steps_in_order(trace)
    has_messages = any(
        step.kind is StepKind.USER_MESSAGE and step.body is not None for step in steps
    )
    found: list[Turn] = []
    for step in steps:
        if step.body is not None:
            _take(step, step.body, found, has_messages=has_messages)
    return tuple(found)


def _take(step: Step, body: Body, found: list[Turn], *, has_messages: bool) -> None:
    if step.kind in _TOLD:
        text = _joined(body.output if body.output is not None else body.input)
        is_asked = step.kind is StepKind.USER_MESSAGE
        _begin(found, step, text if is_asked else "", text)
    elif step.kind is StepKind.MODEL_CALL:
        if not has_messages:
            _begin_from_input(step, body, found)
        _answer(found, step, said_in(body.output))
    elif step.kind is StepKind.TOOL_CALL:
        _answer(found, step, _joined(body.input))


def _begin(found: list[Turn], step: Step, asked: str, told: str) -> None:
    found.append(Turn(step.seq, asked, told, [], []))


def _begin_from_input(step: Step, body: Body, found: list[Turn]) -> None:
    spoken = list(_spoken(body.input, 0))
    asked = next((text for role, text in reversed(spoken) if role in _USERS), "")
    if asked and (not found or found[-1].asked != asked):
        _begin(found, step, asked, "\n".join(text for _, text in spoken))


def _answer(found: list[Turn], step: Step, text: str) -> None:
    if not found:
        return
    turn = found[-1]
    if step.kind is StepKind.MODEL_CALL:
        turn.is_answered = turn.is_answered or bool(text)
    if text:
        turn.answers.append(_valid(text))
        turn.steps.append(step.seq)


def _spoken(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    """Role and text of each message to the model that a user or the system wrote."""
    value = opened(value)
    if isinstance(value, str):
        if depth == 0:
            yield "user", _valid(value)
    elif depth <= _DEEPEST and isinstance(value, list | tuple):
        for item in value:
            if not isinstance(item, str):
                yield from _spoken(item, depth + 1)
    elif depth <= _DEEPEST and isinstance(value, dict):
        yield from _spoken_in_object(value, depth)


def _spoken_in_object(value: dict[str, Any], depth: int) -> Iterator[tuple[str, str]]:
    role = str(value.get("role") or value.get("type") or "").lower()
    if role in _TELLERS:
        yield role, _joined(_content_of(value))
    elif not value.get("role"):
        for held in value.values():
            if isinstance(held, dict | list):
                yield from _spoken(held, depth + 1)


def _content_of(message: dict[str, Any]) -> Any:
    for name in ("content", "parts", "text", "data"):
        if message.get(name) is not None:
            return message[name]
    return None


def _joined(value: Any) -> str:
    return _valid("\n".join(texts_of(value, _MOST_TEXT)))


def _valid(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
