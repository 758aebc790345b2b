"""Decision points of one trial: what is compared when the trials of a task are.

A decision point is a round of tool calls, a handoff, or an answer that somebody
extracted. Prose is not compared unless asked for: two thoughts in other words are the
same decision. Equal points say that the same was done, not that it was right.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

import msgspec

from apps.engine.bodies.calls import CalledTool, Round, ToolLane, tool_lanes
from apps.engine.bodies.canonical import canonical, opened
from apps.engine.bodies.texts import said_in
from apps.engine.branching.prose import only_explains, without_prose
from apps.engine.sequences import once_per_trace, steps_in_order
from apps.engine.trace import OrderSource, Step, StepKind, Trace, Via

Compare: TypeAlias = Literal["decisions", "text"]

LONGEST_LABEL: Final = 160
_HASH_BYTES: Final = 9
_ROOM: Final = 120
_VALUE_LENGTHS: Final = (120, 90, 70, 50, 35, 25, 15)
_DEEPEST_SHOWN: Final = 4
_SPOKEN: Final = frozenset({StepKind.MODEL_CALL, StepKind.USER_MESSAGE})
_HANDED: Final = ("handoff to ", "handoff_to_", "transfer to ", "transfer_to_")


class PointKind(StrEnum):
    """What a point is."""

    CALLS = "calls"
    HANDOFF = "handoff"
    ANSWER = "answer"
    TEXT = "text"


class Point(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One decision of a trial.

    `key` is what is compared (a hash of 12 characters), `label` what people read, at
    most 160 characters. `step` is the `seq` of its first step, `tool` the tools of a
    round joined by ", ". `is_uncertain` says that a call without known arguments was
    compared by its name alone.
    """

    key: str
    label: str
    kind: PointKind
    step: int
    agent: str = ""
    tool: str = ""
    is_uncertain: bool = False

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools of a round, each once."""
        return tuple(self.tool.split(", ")) if self.tool else ()


def points_of(
    trace: Trace,
    *,
    compare: Compare = "decisions",
    extra: Mapping[int, tuple[str, str]] | None = None,
) -> tuple[Point, ...]:
    """The points of `trace` in the order of its steps, those of all agents together.

    A round of tool calls is one point, with its calls in no order. A call is its tool
    with canonical arguments; arguments that are prose are left out, and so are calls
    that hold nothing else but a thought (`prose.py`). Where `compare` is "text" they
    are not, and every answer of a model and every message of the user is a point too.
    A handoff is the agent it goes to. `extra` gives answers that were extracted: a
    step, and what is compared and shown of it. Steps in any order give the same
    answer. Never raises.
    """
    is_text = compare == "text"
    found = [*_calls(trace, is_text=is_text), *_handoffs(trace)]
    if is_text:
        found += _texts(trace)
    if extra:
        found += _answers(trace, extra)
    found.sort(key=_place)
    return tuple(found)


@once_per_trace
def has_uncertain_order(trace: Trace) -> bool:
    """Whether agents called tools at the same time, so that their order is chance.

    Only times tell; in a trace in the order of its file nothing is known to overlap.
    """
    if trace.order is not OrderSource.TIME:
        return False
    steps = {step.seq: step for step in trace.steps}
    spans = sorted(
        [
            (*_span(one, steps), number)
            for number, lane in enumerate(tool_lanes(trace))
            for one in lane.rounds
        ]
    )
    reach: dict[int, int] = {}
    for start, end, number in spans:
        if any(at > start for other, at in reach.items() if other != number):
            return True
        reach[number] = max(end, reach.get(number, end))
    return False


def _span(one: Round, steps: Mapping[int, Step]) -> tuple[int, int]:
    starts = [steps[seq].start_ns or 0 for seq in one.steps]
    ends = [steps[seq].end_ns or 0 for seq in one.steps]
    return min(starts), max(ends)


def key_of(*parts: object) -> str:
    """The 12 characters that stand for what is compared (72 bits of BLAKE2b)."""
    data = canonical(parts).encode("utf-8", "replace")
    return urlsafe_b64encode(
        hashlib.blake2b(data, digest_size=_HASH_BYTES).digest()
    ).decode()


def clipped(text: str, most: int = LONGEST_LABEL) -> str:
    """A text on one line, cut with an ellipsis to `most` characters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _place(point: Point) -> tuple[int, str, str]:
    return point.step, point.kind, point.key


def _calls(trace: Trace, *, is_text: bool) -> Iterator[Point]:
    for lane in tool_lanes(trace):
        for one in lane.rounds:
            calls = [c for c in one.calls if is_text or not _is_thought(c)]
            if calls:
                yield _round(lane, calls, is_text=is_text)


def _is_thought(call: CalledTool) -> bool:
    return call.arguments is not None and only_explains(opened(call.arguments))


def _round(lane: ToolLane, calls: Sequence[CalledTool], *, is_text: bool) -> Point:
    compared = sorted([_compared(call, is_text=is_text) for call in calls])
    names = dict.fromkeys(sorted([call.name for call in calls]))
    return Point(
        key=key_of(PointKind.CALLS, [key for key, _ in compared]),
        label=clipped(" + ".join([label for _, label in compared])),
        kind=PointKind.CALLS,
        step=min([call.step for call in calls]),
        agent=lane.agent or "",
        tool=", ".join(names),
        is_uncertain=any(call.arguments is None for call in calls),
    )


def _compared(call: CalledTool, *, is_text: bool) -> tuple[list[str], str]:
    """What is compared of a call, and what is shown of it."""
    if call.arguments is None:
        return [call.name], f"{call.name}(?)"
    given: Any = opened(call.arguments)
    compared = given if is_text else without_prose(given)
    label = f"{call.name}({_shown(given, compared)})"
    return [call.name, canonical(compared)], label


def _shown(given: Any, compared: Any) -> str:
    """The arguments in as many characters of each as a label has room for."""
    if not isinstance(given, dict) or not isinstance(compared, dict):
        return _value(compared)
    values = {name: _value(item) for name, item in compared.items()}
    shown = ""
    for most in _VALUE_LENGTHS:
        shown = ", ".join(
            f"{name}={clipped(values[name], most) if name in values else '…'}"
            for name in given
        )
        if len(shown) <= _ROOM:
            break
    return shown


def _value(value: Any) -> str:
    """A value in short: objects by what they hold, without the names of the fields."""
    if isinstance(value, str):
        return clipped(value)
    return clipped(" ".join(_pieces(value, 0)))


def _pieces(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, dict | list) and value and depth < _DEEPEST_SHOWN:
        held = value.values() if isinstance(value, dict) else value
        inner = [" ".join(_pieces(item, depth + 1)) for item in held]
        yield " ".join(inner) if isinstance(value, dict) else f"[{', '.join(inner)}]"
    else:
        yield value if isinstance(value, str) else canonical(value)


def _handoffs(trace: Trace) -> Iterator[Point]:
    """Handoffs by their steps, or by how agents came to act where no step shows it."""
    steps = [step for step in trace.steps if step.kind is StepKind.HANDOFF]
    for step in steps:
        yield _handoff(_target(step), step.seq, _agent(trace, step))
    if steps:
        return
    firsts: dict[int, int] = {}
    for step in steps_in_order(trace):
        if step.invocation is not None:
            firsts.setdefault(step.invocation, step.seq)
    for one in trace.invocations:
        if one.via is Via.HANDOFF and one.number in firsts:
            yield _handoff(one.agent or "?", firsts[one.number], "")


def _handoff(target: str, step: int, agent: str) -> Point:
    return Point(
        key=key_of(PointKind.HANDOFF, target.strip().casefold()),
        label=clipped(f"handoff to {target}"),
        kind=PointKind.HANDOFF,
        step=step,
        agent=agent,
    )


def _target(step: Step) -> str:
    name = step.name or "?"
    for words in _HANDED:
        if name.casefold().startswith(words):
            return name[len(words) :].replace("_", " ")
    return name


def _agent(trace: Trace, step: Step) -> str:
    number = step.invocation
    if number is None or not 0 <= number < len(trace.invocations):
        return ""
    return trace.invocations[number].agent or ""


def _texts(trace: Trace) -> Iterator[Point]:
    for step in trace.steps:
        if step.kind in _SPOKEN and step.body is not None:
            spoken = step.body.output
            if spoken is None and step.kind is StepKind.USER_MESSAGE:
                spoken = step.body.input
            text = said_in(spoken)
            if text:
                yield Point(
                    key=key_of(PointKind.TEXT, step.kind, text),
                    label=clipped(text),
                    kind=PointKind.TEXT,
                    step=step.seq,
                    agent=_agent(trace, step),
                )


def _answers(trace: Trace, extra: Mapping[int, tuple[str, str]]) -> Iterator[Point]:
    steps = steps_in_order(trace)
    for seq, (compared, label) in extra.items():
        at = bisect_left(steps, seq, key=lambda step: step.seq)
        is_there = at < len(steps) and steps[at].seq == seq
        yield Point(
            key=key_of(PointKind.ANSWER, compared),
            label=clipped(label),
            kind=PointKind.ANSWER,
            step=seq,
            agent=_agent(trace, steps[at]) if is_there else "",
        )
