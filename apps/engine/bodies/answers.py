"""The last answer of a trace: what was said, and how it ended.

The last model call answers, whichever agent made it. It is not said that the answer
reached anybody.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from apps.engine.bodies.offers import asked_in
from apps.engine.bodies.texts import said_in, texts_of
from apps.engine.sequences import RecordedCall, Removal, once_per_trace, recorded_calls
from apps.engine.trace import FinishReason, Step, StepKind, StepStatus, ToolCall, Trace

NO_ANSWERS: Final = frozenset({Removal.PLACEHOLDER, Removal.WRAPPER})
"""What is recorded as a model call and answers nothing."""

_SHALLOW: Final = 6
_OF_ONE_ANSWER: Final = 8_192


class FinalAnswer(msgspec.Struct, frozen=True):
    """The last answer of a trace.

    `is_recorded` is false where the file keeps no content of it. `refusal` is what a
    field for refusals holds. `asked` are the names of the tools that steps say it asked
    for, and `asks` whether anything says that it asks for one; `is_model_call` is false where only the output of an agent is recorded.
    """

    step: int
    invocation: int | None
    agent: str | None
    text: str
    is_recorded: bool
    finish: FinishReason
    finish_raw: str | None
    status: StepStatus
    refusal: str | None = None
    asked: tuple[str, ...] = ()
    asks: bool = False
    is_model_call: bool = True


@once_per_trace
def final_answer(trace: Trace) -> FinalAnswer | None:
    """The last model call as an answer, else the last output of an agent.

    `None` where the trace has neither. Placeholders and wrapper spans do not answer.
    Steps in any order give the same answer.
    """
    entries = [
        entry
        for owned in recorded_calls(trace).values()
        for entry in owned
        if entry.removed not in NO_ANSWERS
    ]
    if not entries:
        return _of_an_agent(trace)
    last = max(entries, key=_place)
    pieces = _pieces(last, entries)
    contents = [piece.body.output for piece in pieces if piece.body is not None]
    asked = [
        (step.seq, step.call.name)
        for step in trace.steps
        if isinstance(step.call, ToolCall)
        and step.call.requested_by in {piece.seq for piece in pieces}
    ]
    return FinalAnswer(
        step=last.step.seq,
        invocation=last.step.invocation,
        agent=_agent(trace, last.step),
        text="\n".join(said_in(content) for content in contents).strip(),
        is_recorded=any(map(_is_recorded, pieces)),
        finish=last.finish,
        finish_raw=last.call.finish_raw,
        status=last.step.status,
        refusal=next(filter(None, map(_refusal_of, pieces)), None),
        asked=tuple([name for _, name in sorted(asked)]),
        asks=bool(asked or last.call.tool_call_ids)
        or last.finish is FinishReason.TOOL_CALLS
        or any(map(asked_in, contents)),
    )


def _place(entry: RecordedCall) -> int:
    return entry.step.seq


def _pieces(last: RecordedCall, entries: list[RecordedCall]) -> list[Step]:
    """The steps of the last response: one, or all lines that share its id."""
    response = last.call.response_id
    if response is None:
        return [last.step]
    same = [e.step for e in entries if e.call.response_id == response]
    return sorted(same, key=lambda step: step.seq)


def _is_recorded(step: Step) -> bool:
    """Whether content was kept: an output, or reasoning without one."""
    body = step.body
    return body is not None and (body.output is not None or body.reasoning is not None)


def _refusal_of(step: Step) -> str | None:
    if step.body is None:
        return None
    found = _refusal_in(step.body.output, 0)
    return found or _refusal_in(step.body.attributes, 0)


def _refusal_in(value: Any, depth: int) -> str | None:
    """What a field called `refusal` holds, near the top of a value."""
    if depth > _SHALLOW:
        return None
    if isinstance(value, dict):
        own = value.get("refusal")
        if isinstance(own, str) and own.strip():
            return own
        value = [item for item in value.values() if isinstance(item, dict | list)]
    if isinstance(value, list):
        for item in value:
            if found := _refusal_in(item, depth + 1):
                return found
    return None


def _of_an_agent(trace: Trace) -> FinalAnswer | None:
    said = [
        step
        for step in trace.steps
        if step.kind is StepKind.AGENT
        and step.body is not None
        and step.body.output is not None
    ]
    if not said:
        return None
    last = max(said, key=lambda step: step.seq)
    return FinalAnswer(
        step=last.seq,
        invocation=last.invocation,
        agent=_agent(trace, last),
        text=said_in(last.body.output if last.body else None).strip(),
        is_recorded=True,
        finish=FinishReason.UNKNOWN,
        finish_raw=None,
        status=last.status,
        is_model_call=False,
    )


def _agent(trace: Trace, step: Step) -> str | None:
    number = step.invocation
    if number is None or not 0 <= number < len(trace.invocations):
        return None
    return trace.invocations[number].agent


def askers_in(trace: Trace) -> frozenset[int]:
    """The `seq` of the model calls that a tool call names as what asked for it."""
    return frozenset(
        [
            step.call.requested_by
            for step in trace.steps
            if isinstance(step.call, ToolCall) and step.call.requested_by is not None
        ]
    )


def last_said(calls: Iterable[RecordedCall], askers: frozenset[int]) -> Any:
    """What the last response among `calls` holds; `None` where nothing is recorded.

    A response that says nothing because it asks for tools (`askers` are known to), or
    that failed, leaves the word to the one before it. One that says nothing and asks
    for nothing is an answer of nothing: words on the way are not taken for it. Steps
    of one response count as one.
    """
    pieces: list[RecordedCall] = []
    kept = [entry for entry in calls if entry.removed not in NO_ANSWERS]
    for entry in sorted(kept, key=_place, reverse=True):
        if pieces and not _is_one_response(pieces[-1], entry):
            if not any(_goes_on(piece, askers) for piece in pieces):
                break
            pieces = []
        held = _output_of(entry)
        if held is not None and (isinstance(held, bool) or said_in(held)):
            return held
        pieces.append(entry)
    if any(_goes_on(piece, askers) for piece in pieces):
        return None
    return next((_output_of(p) for p in pieces if _output_of(p) is not None), None)


def _output_of(entry: RecordedCall) -> Any:
    return None if entry.step.body is None else entry.step.body.output


def _is_one_response(one: RecordedCall, other: RecordedCall) -> bool:
    response = one.call.response_id
    return response is not None and response == other.call.response_id


def _goes_on(entry: RecordedCall, askers: frozenset[int]) -> bool:
    """Whether the run did not end with a response: it asks for a tool, or it failed."""
    return bool(
        entry.removed in {Removal.FAILED, Removal.RETRIED}
        or entry.step.seq in askers
        or entry.call.tool_call_ids
        or entry.finish is FinishReason.TOOL_CALLS
        or asked_in(_output_of(entry))
    )


class Said(msgspec.Struct, frozen=True):
    """What one model call said and thought, as texts; `None` where nothing is kept."""

    step: int
    text: str | None


@once_per_trace
def said_by_models(trace: Trace) -> tuple[Said, ...]:
    """The words of every model call, answer and reasoning together, in order.

    Each is cut at 8,192 characters.
    """
    found = [
        Said(step.seq, _words_of(step))
        for step in trace.steps
        if step.kind is StepKind.MODEL_CALL
    ]
    return tuple(sorted(found, key=lambda said: said.step))


def _words_of(step: Step) -> str | None:
    body = step.body
    if body is None or (body.output is None and body.reasoning is None):
        return None
    said = said_in(body.output)[:_OF_ONE_ANSWER]
    if body.reasoning is None:
        return said
    return "\n".join([said, *texts_of(body.reasoning, _OF_ONE_ANSWER)])
