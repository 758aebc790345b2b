"""The documented JSON between a replay and an agent that is reached over HTTP.

The request says what the agent is given and where its tools are: every tool has an
address of its own, and all of them are offered together as an MCP server. The answer
says the output, and may say more: state, model, usage, and what happened on the way.
What an agent says of its steps is what it says; what the stubs saw is kept apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote

import msgspec

from apps.engine.bodies.canonical import canonical
from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.json_values import embedded
from apps.engine.reading.recorded import mapping
from apps.engine.reading.token_counts import usage_of
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.replay.answer_gate import BadAnswer
from apps.engine.replay.case import Case
from apps.engine.replay.run import (
    AnswerSource,
    Event,
    Limits,
    Message,
    ModelCalled,
    Regime,
    StateSeen,
    ToolAnswer,
    ToolCalled,
)
from apps.engine.trace import MISSING, Usage, UsageState

MOST_STEPS: Final = 2_000
_LONGEST_NAME: Final = 300
REPORTED: Final = "Reported by the agent; no stub of this run saw the call."


class AgentAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent gave back. `events` are its own account, in order.

    `usage` is that of the whole run as it says it, for the case that its steps say
    none.
    """

    output: Any
    state: Any = None
    usage: Usage = MISSING
    model: str = ""
    events: tuple[Event, ...] = ()


def request_of(
    case: Case, *, run: str, regime: Regime, limits: Limits, stub_base: str
) -> dict[str, Any]:
    """The JSON that is posted to the agent.

    Tools have the address `<stub_base>/tools/<name>`, the MCP server `<stub_base>/mcp`.
    Without a `stub_base` no tool is offered.
    """
    base = stub_base.rstrip("/")
    return {
        "run": run,
        "case": case.name,
        "agent": case.agent,
        "input": case.input,
        "messages": list(case.messages),
        "state": case.state,
        "context": case.context,
        "regime": msgspec.to_builtins(regime),
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
                "url": tool_url(base, tool.name),
            }
            for tool in case.tools
            if base
        ],
        "mcp": {"url": f"{base}/mcp"} if base else None,
        "limits": {
            "seconds": limits.seconds,
            "model_calls": limits.model_calls,
            "tool_calls": limits.tool_calls,
            "output_tokens": limits.output_tokens,
        },
    }


def tool_url(stub_base: str, name: str) -> str:
    """The address of the stub of a tool."""
    return f"{stub_base.rstrip('/')}/tools/{quote(name, safe='')}"


def answer_in(value: Any) -> AgentAnswer:
    """What an agent's JSON says.

    An object with `output` is the documented form; any other JSON is the output itself
    only where it is a text, since an object without `output` is most likely a mistake.
    Raises `BadAnswer`.
    """
    if isinstance(value, str):
        return AgentAnswer(output=value)
    if not isinstance(value, dict) or "output" not in value:
        raise BadAnswer('The answer has no "output".')
    steps = value.get("steps")
    if steps is not None and not isinstance(steps, list):
        raise BadAnswer('"steps" of the answer is no list.')
    if len(steps or []) > MOST_STEPS:
        raise BadAnswer(f"The answer has more than {MOST_STEPS:,} steps.")
    events = [_event(number, step) for number, step in enumerate(steps or [], start=1)]
    model = value.get("model")
    return AgentAnswer(
        output=value["output"],
        state=value.get("state"),
        usage=usage_of(usage_counts(value.get("usage"))),
        model=model[:_LONGEST_NAME] if isinstance(model, str) else "",
        events=tuple(events),
    )


def _event(number: int, step: Any) -> Event:
    kind = mapping(step).get("type")
    if kind == "model":
        return _model(step)
    if kind == "tool":
        return _tool(number, step)
    if kind == "message":
        return Message(role=_name(step.get("role")), content=step.get("content"))
    if kind == "state":
        turn = step.get("turn")
        return StateSeen(
            state=step.get("state"), turn=turn if type(turn) is int else number
        )
    raise BadAnswer(
        f'Step {number:,} of the answer has no type that is known: "model", "tool", '
        '"message" or "state".'
    )


def _model(step: dict[str, Any]) -> ModelCalled:
    finish, finish_raw = finish_of(step.get("finish"))
    return ModelCalled(
        request=step.get("input"),
        output=step.get("output"),
        reasoning=step.get("reasoning"),
        model=_name(step.get("model")),
        provider=_name(step.get("provider")),
        usage=usage_of(usage_counts(step.get("usage"))),
        finish=finish,
        finish_raw=finish_raw,
    )


def _tool(number: int, step: dict[str, Any]) -> ToolCalled:
    name = _name(step.get("name"))
    if not name:
        raise BadAnswer(f"Step {number:,} of the answer is a tool without a name.")
    error = step.get("error")
    return ToolCalled(
        tool=name,
        arguments=embedded(step.get("arguments")),
        answer=ToolAnswer(
            source=AnswerSource.MISS,
            result=step.get("result"),
            error=str(error)[:2_000] if error else "",
            note=REPORTED,
        ),
        call_id=_name(step.get("id")) or None,
    )


def _name(value: Any) -> str:
    return value[:_LONGEST_NAME] if isinstance(value, str) else ""


def together(
    told: Iterable[Event], seen: Iterable[ToolCalled]
) -> tuple[tuple[Event, ...], tuple[ToolCalled, ...]]:
    """The events of a run, and the calls that the agent tells of and no stub saw.

    A call that the agent tells of and that a stub saw (same tool and arguments) is the
    one that was seen, at the place where the agent tells of it. What it does not tell
    of comes before its next seen call, in the order in which the stubs saw it.
    """
    # Arguments may be long: each is made comparable once.
    waiting = [(call, _key(call)) for call in seen]
    made: list[Event] = []
    unseen: list[ToolCalled] = []
    for event in told:
        if not isinstance(event, ToolCalled):
            made.append(event)
            continue
        wanted = _key(event)
        at = next((n for n, (_, key) in enumerate(waiting) if key == wanted), None)
        if at is None:
            made.append(event)
            unseen.append(event)
        else:
            made += [call for call, _ in waiting[: at + 1]]
            del waiting[: at + 1]
    return (*made, *(call for call, _ in waiting)), tuple(unseen)


def _key(call: ToolCalled) -> tuple[str, str]:
    return call.tool, canonical(call.arguments)


def one_call_for_all(answer: AgentAnswer) -> ModelCalled | None:
    """A model call that stands for all that an agent made, where it tells of none.

    `None` where it tells of its calls, or neither of a model nor of usage. The usage
    is that of the run as a whole, and says so.
    """
    if any(isinstance(one, ModelCalled) for one in answer.events):
        return None
    if not answer.model and answer.usage == MISSING:
        return None
    usage = answer.usage
    if usage.state in {UsageState.REPORTED, UsageState.PARTIAL}:
        usage = msgspec.structs.replace(usage, state=UsageState.AGGREGATE_ONLY)
    return ModelCalled(
        request=None, output=answer.output, model=answer.model, usage=usage
    )


def spent_by(answer: AgentAnswer) -> Usage:
    """What the whole run used, as the agent says it; `MISSING` where it does not.

    The sum of its calls where each of them says input and output.
    """
    if answer.usage.state in {UsageState.REPORTED, UsageState.PARTIAL}:
        return answer.usage
    calls = [one.usage for one in answer.events if isinstance(one, ModelCalled)]
    if not calls or any(
        one.input_total is None or one.output_total is None for one in calls
    ):
        return MISSING
    return Usage(
        state=UsageState.REPORTED,
        input_total=sum(one.input_total or 0 for one in calls),
        output_total=sum(one.output_total or 0 for one in calls),
    )
