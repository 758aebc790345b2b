"""What a run was told: tool results, users and systems, and never its own answers.

Where a request is recorded with its messages, those of the assistant are left out; a
text that holds the final answer itself is left out too, because it cannot support it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.bodies.answers import FinalAnswer
from apps.engine.bodies.canonical import canonical, opened
from apps.engine.bodies.texts import holds_images
from apps.engine.sequences import steps_in_order
from apps.engine.trace import Step, StepKind, StepStatus, Trace

MOST_HEARD: Final = 524_288
_DEEPEST: Final = 40
_OWN: Final = frozenset({"assistant", "ai", "model", "AIMessage", "AIMessageChunk"})
_RESULTS: Final = frozenset(
    {StepKind.TOOL_CALL, StepKind.RETRIEVAL, StepKind.MEMORY, StepKind.OTHER}
)
_TOLD: Final = _RESULTS | {StepKind.USER_MESSAGE, StepKind.SYSTEM, StepKind.GUARDRAIL}
_GIVEN: Final = frozenset({StepKind.MODEL_CALL, StepKind.AGENT, StepKind.OTHER})
_PLAINLY: Final = frozenset(
    {StepKind.USER_MESSAGE, StepKind.SYSTEM, StepKind.TOOL_CALL, StepKind.RETRIEVAL}
)
_SOURCES: Final = frozenset({StepKind.TOOL_CALL, StepKind.RETRIEVAL})
_BEGINNING: Final = 200
_SENTENCE: Final = 20


class Heard(msgspec.Struct):
    """The texts a run was told, sizes of its lists, and what cannot be read of it.

    `numbers` are the values that JSON holds as numbers, which are among the texts too,
    and the totals of its lists.
    `sources` are the results of tools and searches, `missing` of which are not
    recorded. `is_cut` is true beyond 524,288 characters.
    """

    texts: list[str]
    sizes: list[int]
    numbers: list[float]
    sources: int = 0
    missing: int = 0
    has_images: bool = False
    is_cut: bool = False


def told_to(trace: Trace, answer: FinalAnswer) -> str:
    """What users, systems and tools said before the answer, as it was recorded.

    A part of what `heard_before` gives, found quickly: JSON stays JSON. Up to 524,288
    characters.
    """
    texts: list[str] = []
    left = MOST_HEARD
    for step in steps_in_order(trace):
        if step.body is None or step.seq > answer.step or step.kind not in _PLAINLY:
            continue
        output = step.body.output
        if output is None:
            continue
        text = output if isinstance(output, str) else canonical(output)
        if _repeats(text, answer):
            continue
        texts.append(text[:left])
        left -= len(text)
        if left <= 0:
            break
    return "\n".join(texts)


def heard_before(trace: Trace, answer: FinalAnswer) -> Heard:
    """What was told up to the final answer, in order of the steps."""
    heard = Heard([], [], [])
    left = MOST_HEARD
    for step in steps_in_order(trace):
        _count(heard, step, answer)
        # What follows an answer cannot support it; a span that encloses it can.
        if step.seq > answer.step and step.kind in _SOURCES:
            continue
        for value in _told_by(step):
            heard.has_images = heard.has_images or holds_images(value)
            for text in _texts(value, heard, 0):
                if _repeats(text, answer):
                    continue
                if left <= 0:
                    heard.is_cut = True
                    return heard
                heard.texts.append(text[:left])
                left -= len(text)
                heard.is_cut = heard.is_cut or left < 0
    return heard


def _count(heard: Heard, step: Step, answer: FinalAnswer) -> None:
    if step.kind not in _SOURCES or step.seq > answer.step:
        return
    heard.sources += 1
    is_told = step.body is not None and step.body.output is not None
    if not is_told and step.status is not StepStatus.ERROR:
        heard.missing += 1


def _told_by(step: Step) -> Iterator[Any]:
    body = step.body
    if step.error_message is not None:
        yield step.error_message
    if body is None:
        return
    if step.kind in _TOLD and body.output is not None:
        yield body.output
    if step.kind in _GIVEN and body.input is not None:
        yield body.input


def _texts(value: Any, heard: Heard, depth: int) -> Iterator[str]:
    """Yield the texts of a value without messages of an assistant; note numbers."""
    if isinstance(value, str):
        value = opened(value)
        if isinstance(value, str):
            yield value
            return
    if isinstance(value, int | float) and not isinstance(value, bool):
        heard.numbers.append(_as_float(value))
        yield repr(value)
    elif isinstance(value, dict | list | tuple) and depth <= _DEEPEST:
        for item in _inside(value, heard):
            yield from _texts(item, heard, depth + 1)


def _as_float(value: float) -> float:
    """A number as a float, 0 where it is too large or none."""
    try:
        return float(value) if abs(value) < math.inf else 0.0
    except OverflowError:
        return 0.0


def _inside(
    value: dict[str, Any] | list[Any] | tuple[Any, ...], heard: Heard
) -> Iterator[Any]:
    if not isinstance(value, dict):
        heard.sizes.append(len(value))
        heard.numbers.extend(_totals(value))
        yield from value
    elif not _is_own(value):
        heard.sizes.append(len(value))
        # Names of fields can be data: {"4567": {...}}.
        yield from (key for key in value if key[:1].isdigit())
        yield from value.values()


def _totals(items: list[Any] | tuple[Any, ...]) -> Iterator[float]:
    """Yield the totals of a list: of its numbers, and of each field of its objects."""
    sums: dict[str, float] = {}
    for item in items:
        for key, value in (item if isinstance(item, dict) else {"": item}).items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                sums[key] = sums.get(key, 0.0) + _as_float(value)
    yield from sums.values()


def _repeats(text: str, answer: FinalAnswer) -> bool:
    """Whether a text holds the answer itself: a span around it, or a log of it.

    An answer of a word or a number is no sentence: a source may well hold it.
    """
    beginning = answer.text[:_BEGINNING]
    return len(beginning) >= _SENTENCE and " " in beginning and beginning in text


def _is_own(value: dict[str, Any]) -> bool:
    """Whether an object is a message that a model wrote."""
    role, kind = value.get("role"), value.get("type")
    if (isinstance(role, str) and role in _OWN) or (
        isinstance(kind, str) and kind in _OWN
    ):
        return True
    path = value.get("id")
    last = path[-1] if isinstance(path, list) and path else None
    return isinstance(last, str) and last in _OWN
