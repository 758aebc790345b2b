"""Two steps side by side: what was thought, said, called and given back, by words.

Only these two steps are loaded, with the model call that asked for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.bodies.canonical import opened
from apps.engine.branching import Difference, side_by_side
from apps.engine.trace import Body, Step, StepKind
from apps.traces.codec import StoredBody
from apps.traces.queries import bodies_between, steps_of
from apps.web.pages.bodies import as_text
from apps.web.pages.spoken import conversation, saying
from apps.web.pages.spoken_parts import EMPTY
from apps.web.pages.steps import KIND_WORDS

SHOWN: Final = 6_000
"""Characters of each text that are compared and shown here."""
_LEAST_ALIKE: Final = 0.2
_MOST_READ: Final = 1_000_000
_LOOK_BACK: Final = 32
_MOST_CALLS: Final = 8
_MOST_SAYINGS: Final = 12

_Texts = dict[str, str]


class PartPair(msgspec.Struct, frozen=True):
    """One kind of text on both sides; `cut` says how much of it is not shown.

    `has_first` and `has_second`: whether there is such a text on that side.
    """

    label: str
    difference: Difference
    has_first: bool
    has_second: bool
    cut: str

    @property
    def is_apart(self) -> bool:
        """Whether so little is the same that marking the rest would say nothing."""
        sides = (self.difference.first, self.difference.second)
        equal = sum(len(one.text.strip()) for one in sides[0] if one.kind == "equal")
        longest = max(sum(len(one.text) for one in side) for side in sides)
        return equal < _LEAST_ALIKE * longest


class StepTexts(msgspec.Struct, frozen=True):
    """The texts of one step by their labels, and what kind of step it is."""

    kind: str
    texts: _Texts
    is_kept: bool


def texts_at(trace_id: int, seq: int) -> StepTexts:
    """The texts of a step, and of the model call that asked for it. Few queries."""
    steps = steps_of(
        trace_id, first=max(0, seq - _LOOK_BACK), last=seq + _MOST_CALLS - 1
    )
    here = next((step for step in steps if step.seq == seq), None)
    if here is None:
        return StepTexts("step", {}, is_kept=False)
    asked = _asked_by(here, steps)
    first = seq if asked is None else asked.seq
    bodies = bodies_between(trace_id, first=first, last=steps[-1].seq)
    calls = _together(here, asked, steps, bodies)
    texts: dict[str, list[str]] = {}
    for step in (*([asked] if asked else []), *calls):
        for label, text in _texts(step, bodies.get(step.seq)):
            if text.strip():
                texts.setdefault(label, []).append(text)
    return StepTexts(
        kind=KIND_WORDS[here.kind],
        texts={label: "\n\n".join(some) for label, some in texts.items()},
        is_kept=any(_has_body(bodies.get(step.seq)) for step in calls),
    )


def pairs_of(first: StepTexts, second: StepTexts) -> list[PartPair]:
    """The texts of both sides by label, in reading order, with their differences."""
    order = ("Thinking", "Says", "Calls", "Result", "Error")
    labels = [one for one in order if one in first.texts or one in second.texts]
    return [
        _pair(label, first.texts.get(label, ""), second.texts.get(label, ""))
        for label in labels
    ]


def _pair(label: str, first: str, second: str) -> PartPair:
    cut = [max(0, len(text) - SHOWN) for text in (first, second)]
    return PartPair(
        label=label,
        difference=side_by_side(first[:SHOWN], second[:SHOWN]),
        has_first=bool(first),
        has_second=bool(second),
        cut=(
            f"Cut after {SHOWN:,} characters: {cut[0]:,} of the left and {cut[1]:,} of "
            "the right are not shown."
            if any(cut)
            else ""
        ),
    )


def _asked_by(here: Step, steps: list[Step]) -> Step | None:
    """The model call before a tool call, of the same invocation."""
    if here.kind is not StepKind.TOOL_CALL:
        return None
    for step in reversed([one for one in steps if one.seq < here.seq]):
        is_same = step.invocation == here.invocation
        if step.kind is StepKind.MODEL_CALL and is_same:
            return step
    return None


def _together(
    here: Step, asked: Step | None, steps: list[Step], bodies: dict[int, StoredBody]
) -> list[Step]:
    """The step, and the calls that the same model call asked for beside it."""
    kept = bodies.get(asked.seq) if asked else None
    count = min(_MOST_CALLS, len(kept.tool_call_ids)) if kept else 1
    found = [here]
    for step in steps:
        if len(found) >= count or step.seq <= here.seq:
            continue
        if step.kind is not StepKind.TOOL_CALL or step.invocation != here.invocation:
            break
        found.append(step)
    return found


def _has_body(kept: StoredBody | None) -> bool:
    return kept is not None and kept.body is not None


def _texts(step: Step, kept: StoredBody | None) -> Iterator[tuple[str, str]]:
    if kept is None:
        return
    if kept.error_message:
        yield "Error", kept.error_message
    body = kept.body or Body()
    if step.kind is StepKind.TOOL_CALL:
        yield from _called(step, body)
    elif step.kind is StepKind.MODEL_CALL:
        yield from _spoken(body.output, body.reasoning)
    else:
        given = [body.input, body.output]
        yield from (("Says", as_text(value)) for value in given if value not in EMPTY)


def _called(step: Step, body: Body) -> Iterator[tuple[str, str]]:
    """What was called with what, and what came back; JSON in texts is written out."""
    name = step.name or "tool"
    given = "" if body.input in EMPTY else as_text(opened(body.input))
    yield "Calls", f"{name}\n{given}" if given else name
    if body.reasoning not in EMPTY:
        yield "Thinking", as_text(body.reasoning)
    if body.output not in EMPTY:
        yield "Result", as_text(opened(body.output))


def _spoken(output: Any, reasoning: Any) -> Iterator[tuple[str, str]]:
    """What a model thought and said."""
    if reasoning not in EMPTY:
        yield "Thinking", as_text(reasoning)
    found = conversation(output)
    if found is None or isinstance(output, str):
        if output not in EMPTY:
            yield "Says", as_text(output)
        return
    for message in found.messages[:_MOST_SAYINGS]:
        one = saying(message, most=_MOST_READ)
        if one.thought:
            yield "Thinking", one.thought
        if one.text:
            yield "Says", one.text
