"""A case out of a recorded trace: one agent, what it was given and what its tools said.

Only what the trace holds goes into a case. It is not claimed that this is all that the
agent knew; `not_recorded` says what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from apps.engine.bodies.calls import CalledTool
from apps.engine.bodies.canonical import canonical, opened
from apps.engine.bodies.effects import is_reading_action, is_write
from apps.engine.bodies.offers import plain_name
from apps.engine.conduct import InvocationConduct, conducts_of, whole_conduct
from apps.engine.replay.case import Case, RecordedCall, ToolOffer
from apps.engine.replay.chat_messages import Chat, chat_of, said
from apps.engine.replay.model_settings import model_settings
from apps.engine.replay.tool_offers import offered_tools
from apps.engine.replay.upstream import (
    handed_to,
    later_words,
    said_before,
    stored_before,
)
from apps.engine.trace import ModelCall, Step, StepKind, Trace

_SAYING: Final = {StepKind.SYSTEM: "system", StepKind.USER_MESSAGE: "user"}
_OWN_STORE: Final = frozenset({StepKind.RETRIEVAL, StepKind.MEMORY})
_CLIMB: Final = 8


class NothingToFreeze(ValueError):
    """There is no such agent invocation that did anything; a sentence says so."""


def frozen_case(
    trace: Trace, number: int | None, *, writing_tools: frozenset[str] = frozenset()
) -> Case:
    """The case of one agent invocation, by its number in `trace.invocations`.

    `None` stands for what no invocation owns, and for the whole system where every
    act is owned. `writing_tools` are names of tools that change something, whatever
    they sound like. All values are those of the trace and shared with it. Takes time
    in proportion to the trace. Raises `NothingToFreeze`.
    """
    for conduct in conducts_of(trace):
        for one in conduct.invocations:
            if one.number == number:
                return _frozen(trace, one, writing_tools)
    if number is None:
        return frozen_system(trace, writing_tools=writing_tools)
    known = len(trace.invocations)
    why = "it did nothing that is recorded" if 0 <= number < known else "there is none"
    raise NothingToFreeze(
        f"No case can be made of agent invocation {number + 1:,} of this trace: {why}."
    )


def frozen_system(trace: Trace, *, writing_tools: frozenset[str] = frozenset()) -> Case:
    """The case of the whole system: what it was asked, and the calls of all agents.

    Raises `NothingToFreeze` for a trace without steps.
    """
    if not trace.steps:
        raise NothingToFreeze("No case can be made of this trace: it has no steps.")
    (whole,) = whole_conduct(trace).invocations
    case = _frozen(trace, whole, writing_tools)
    return msgspec.structs.replace(case, name=f"Whole system in {trace.name}")


def _frozen(trace: Trace, one: InvocationConduct, writing: frozenset[str]) -> Case:
    first = _first_call(one)
    calls = tuple(_calls(one, first, writing))
    # A store that an agent reads by itself is no tool that its model was offered.
    tools = _tools(one, first, [call.name for call in one.calls])
    request, chat = _messages(one, first)
    context: dict[str, Any] = {}
    if before := said_before(trace, one):
        context["upstream"] = before
    if given := handed_to(trace, one):
        context["handoff"] = given
    if later := later_words(one, first):
        context["said_later"] = later
    if request is None and chat.messages:
        context["messages_from"] = "steps"
    elif request is not None and (chat.left_out or not chat.messages):
        context["request"] = request
    settings = model_settings(first)
    return Case(
        agent=one.agent,
        name=_name(trace, one),
        input=one.input,
        messages=chat.messages,
        tools=tools,
        calls=tuple(sorted((*calls, *_handoffs(one, tools)), key=_place)),
        state=stored_before(trace, one, first),
        context=context,
        model=_model(first, one),
        parameters=settings,
    )


def _first_call(one: InvocationConduct) -> Step | None:
    """The first model call that was really made and asked; wrappers ask for nothing."""
    models = [step for step in one.steps if step.kind is StepKind.MODEL_CALL]
    asked = [step for step in models if step.seq not in one.not_asked]
    return next(iter(asked or models), None)


def _messages(one: InvocationConduct, first: Step | None) -> tuple[Any, Chat]:
    """The request as it is recorded with its messages; `None` where there is none."""
    body = None if first is None else first.body
    request = None if body is None else body.input
    if request not in (None, "", [], {}):
        return request, chat_of(request, body.attributes if body else None)
    told: list[dict[str, Any]] = []
    for step in one.steps:
        if first is not None and step.seq >= first.seq:
            break
        if step.kind in _SAYING and step.body is not None:
            held = step.body.output if step.body.output is not None else step.body.input
            told += said(_SAYING[step.kind], held)
    if not told and one.input is not None:
        told += said("user", one.input)
    return None, Chat(tuple(told))


def _calls(
    one: InvocationConduct, first: Step | None, writing: frozenset[str]
) -> Iterator[RecordedCall]:
    """Its tool calls, and what it asked stores for while it ran, in order."""
    by_seq = {step.seq: step for step in one.steps}
    called = {call.step: call for call in one.calls}
    for step in one.steps:
        if step.seq in called:
            yield _call(step, called[step.seq], writing)
        elif (
            step.kind in _OWN_STORE
            and step.body is not None
            and (first is None or step.seq > first.seq)
            and not _is_inside_a_tool(step, by_seq)
        ):
            yield _of_a_store(step)


def _is_inside_a_tool(step: Step, by_seq: dict[int, Step]) -> bool:
    above = step.parent
    for _ in range(_CLIMB):
        around = None if above is None else by_seq.get(above)
        if around is None:
            return False
        if around.kind is StepKind.TOOL_CALL:
            return True
        above = around.parent
    return False


def _call(step: Step, called: CalledTool, writing: frozenset[str]) -> RecordedCall:
    body = step.body
    arguments = None if body is None else opened(body.input)
    result = None if body is None else body.output
    return RecordedCall(
        tool=called.name,
        arguments=arguments,
        result=result,
        error=_error(step, result) if called.failed else "",
        writes=is_write(called.name, writing) and not is_reading_action(arguments),
        step=step.seq,
    )


def _error(step: Step, result: Any) -> str:
    """What the agent saw of a failed call: the result's own words first."""
    if isinstance(result, str) and result.strip():
        return result
    if step.error_message:
        return step.error_message
    if result is not None:
        return canonical(result)
    return step.error_type or "The call failed; why is not recorded."


def _of_a_store(step: Step) -> RecordedCall:
    body = step.body
    return RecordedCall(
        tool=step.name or step.kind.value,
        arguments=None if body is None else opened(body.input),
        result=None if body is None else body.output,
        error=step.error_message or "",
        step=step.seq,
    )


def _handoffs(
    one: InvocationConduct, tools: Iterable[ToolOffer]
) -> Iterator[RecordedCall]:
    """Handoffs that were offered as tools: what such a tool answers is who takes over."""
    offered = {plain_name(tool.name).casefold(): tool.name for tool in tools}
    for step in one.steps:
        if step.kind is not StepKind.HANDOFF:
            continue
        receiver = receiver_of(step)
        key = plain_name(f"transfer_to_{receiver}").casefold()
        if receiver and key in offered:
            yield RecordedCall(
                tool=offered[key],
                arguments={},
                result={"assistant": receiver},
                step=step.seq,
            )


def _place(call: RecordedCall) -> int:
    return -1 if call.step is None else call.step


def receiver_of(step: Step) -> str:
    """The agent that a handoff names as the one that takes over; "" for none."""
    body = step.body
    attributes = (body.attributes if body is not None else None) or {}
    output = body.output if body is not None else None
    for found in (attributes.get("to_agent"), output):
        if isinstance(found, str) and found.strip():
            return found
    return (step.name or "").removeprefix("handoff to ").strip()


def _tools(
    one: InvocationConduct, first: Step | None, called: list[str]
) -> tuple[ToolOffer, ...]:
    span = next((step for step in one.steps if step.kind is StepKind.AGENT), None)
    bodies = [step.body for step in (first, span) if step is not None]
    return offered_tools(bodies, called)


def _model(first: Step | None, one: InvocationConduct) -> str:
    call = None if first is None else first.call
    if isinstance(call, ModelCall) and call.model:
        return call.model
    return one.models[0] if one.models else ""


def _name(trace: Trace, one: InvocationConduct) -> str:
    if one.number is None:
        return f"What no agent owns in {trace.name}"
    agent = one.agent or "Agent without a name"
    return f"{agent} in {trace.name}, invocation {one.number + 1}"


def not_recorded(case: Case) -> tuple[str, ...]:
    """What a replay of the case lacks, a sentence each; empty where nothing does."""
    return (*_lacks_of_input(case), *_lacks_of_tools(case), *_lacks_beside(case))


def _lacks_of_input(case: Case) -> Iterator[str]:
    if case.input is None and not case.messages:
        yield "What the agent was asked is not recorded."
    if not case.messages:
        yield "The messages of its first model call are not recorded."
    elif case.context.get("messages_from") == "steps":
        yield (
            "The messages of its first model call are not recorded; they are built from "
            "what users and systems said before it."
        )
    if case.messages and not any(
        one.get("role") in {"system", "developer"} for one in case.messages
    ):
        yield "No system prompt is recorded."
    if "request" in case.context and case.messages:
        yield (
            "Some messages of its first model call could not be told; the request is "
            "kept as it was recorded."
        )
    if later := case.context.get("said_later"):
        often = "once more" if len(later) == 1 else f"{len(later):,} times more"
        yield (
            f"Users said something {often} while it ran; only what was said before is "
            "an input."
        )


def _lacks_of_tools(case: Case) -> Iterator[str]:
    bare = [tool.name for tool in case.tools if not tool.parameters]
    if bare:
        yield f"No schema is recorded of {_listed(bare)}."
    without = [call.tool for call in case.calls if call.arguments is None]
    if without:
        yield (
            f"Arguments are not recorded in {len(without):,} of {len(case.calls):,} "
            "tool calls, which cannot be matched strictly."
        )
    silent = [c.tool for c in case.calls if c.result is None and not c.error]
    if silent:
        yield (
            f"Results are not recorded in {len(silent):,} of {len(case.calls):,} tool "
            "calls."
        )


def _lacks_beside(case: Case) -> Iterator[str]:
    if not case.model:
        yield "The model is not recorded."
    if "temperature" not in case.parameters:
        yield "The temperature is not recorded."
    if case.state is None:
        yield "Nothing is recorded of what it remembered from before."


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:5])
    more = len(names) - 5
    return f"{shown} and {more:,} more" if more > 0 else shown
