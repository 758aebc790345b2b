"""Reader of SWE-agent trajectories (.traj).

Each step of the trajectory is one model call and, where it has an action, one tool
call. Usage is recorded only as a total over all calls, and a replay or demonstration
writes zeros there: then it is missing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.format import Item, Source
from apps.engine.reading.answers import Answer, add_answer
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.messages import Conversation, is_message
from apps.engine.reading.recorded import first_text, listed, mapping
from apps.engine.reading.run_totals import remark_total
from apps.engine.reading.text_limits import LABEL, NAME, Remarks
from apps.engine.reading.token_counts import whole_number
from apps.engine.reading.transcript import Draft, ToolResult, Transcript
from apps.engine.trace import (
    AgentInvocation,
    ModelCall,
    OrderSource,
    Step,
    StepKind,
    Trace,
    Usage,
    UsageState,
)

_STEP: Final = frozenset({"action", "observation", "response", "thought"})
_ONLY_TOTAL: Final = Usage(state=UsageState.AGGREGATE_ONLY, source="info.model_stats")
_TOTAL: Final = (
    "Usage is recorded only as a total: {} tokens sent and {} received in {} calls."
)
_ATTEMPTS: Final = (
    "Attempts in the file, of which the one that was chosen is read: {n}."
)


class SWEAgent:
    """The format `swe-agent`."""

    slug = "swe-agent"
    label = "SWE-agent trajectory"
    version = 1
    description = (
        "A SWE-agent .traj file with its trajectory (action, observation, response, "
        "thought) or its history. Token usage is recorded only as a total of the run."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file is an object with a trajectory or a SWE-agent history."""
        first = first_record(source)
        attempts = listed(mapping(first).get("attempts"))
        return _is_run(first) or bool(attempts and _is_run(attempts[0]))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each run; `UnreadableTrace` without any."""
        return demand_a_trace(
            read_each(source, _traces, unroll=True),
            nothing="The file holds no SWE-agent trajectory.",
        )


def _is_run(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    steps, history = listed(value.get("trajectory")), listed(value.get("history"))
    if steps and isinstance(steps[0], dict):
        return len(_STEP & steps[0].keys()) >= 2
    return any(
        isinstance(one, dict) and ("message_type" in one or "agent" in one)
        and is_message(one)
        for one in history
    )  # fmt: skip


def _traces(record: Record) -> Iterator[Item]:
    value = record.value
    attempts = [one for one in listed(mapping(value).get("attempts")) if _is_run(one)]
    if attempts and not _is_run(value):
        for number, one in enumerate(attempts, 1):
            yield _trace(one, f"attempt {number}", Remarks())
        return
    if not _is_run(value):
        raise RefusedRecord(
            "This is no SWE-agent run: it has no trajectory and no history.", "$"
        )
    remarks = Remarks()
    if len(attempts) > 1:
        remarks.add(_ATTEMPTS, len(attempts))
    yield _trace(value, f"run {record.number}", remarks)


def _trace(value: dict[str, Any], name: str, remarks: Remarks) -> Trace:
    steps, invocations = (
        _from_trajectory(value, remarks)
        if listed(value.get("trajectory"))
        else _from_history(value, remarks)
    )
    info = mapping(value.get("info"))
    steps = _with_total(steps, mapping(info.get("model_stats")), remarks)
    facts = {key: item for key, item in info.items() if key != "submission"}
    named = value | {"instance_id": value.get("instance_id") or info.get("instance_id")}
    return Trace(
        name=first_text(named, ("instance_id", "name"), NAME, remarks) or name,
        steps=steps,
        invocations=invocations,
        order=OrderSource.FILE,
        task=first_text(named, ("instance_id",), LABEL, remarks),
        metadata=_known(facts | {"environment": value.get("environment")}),
        notes=remarks.sentences(),
    )


def _known(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in facts.items() if item is not None}


def _from_trajectory(
    value: dict[str, Any], remarks: Remarks
) -> tuple[tuple[Step, ...], tuple[AgentInvocation, ...]]:
    transcript = Transcript(remarks)
    history = [one for one in listed(value.get("history")) if is_message(one)]
    named = next((one["agent"] for one in history if one.get("agent")), None)
    transcript.invocations[0].agent = named
    for message in history:
        if message["role"] == "assistant":
            break
        is_user = message["role"] == "user"
        transcript.add(
            Draft(
                kind=StepKind.USER_MESSAGE if is_user else StepKind.SYSTEM,
                native_kind=str(message.get("message_type") or message["role"]),
                output=message.get("content"),
            )
        )
    requests = _requests(history)
    for number, step in enumerate(value["trajectory"]):
        if not isinstance(step, dict):
            raise RefusedRecord("This is no step.", f"$.trajectory[{number}]")
        _add_step(transcript, step, requests)
    steps, invocations, _ = transcript.finished()
    return steps, invocations


def _requests(history: list[dict[str, Any]]) -> dict[str, deque[dict[str, Any]]]:
    """Return the tool calls of the history by the action that they stand for."""
    found: dict[str, deque[dict[str, Any]]] = {}
    for message in history:
        calls = listed(message.get("tool_calls"))
        if calls and isinstance(message.get("action"), str):
            asked = found.setdefault(message["action"], deque())
            asked.append(mapping(calls[0]))
    return found


def _add_step(
    transcript: Transcript,
    step: dict[str, Any],
    requests: dict[str, deque[dict[str, Any]]],
) -> None:
    answer = Answer(
        text=step.get("response"), reasoning=step.get("thought"), role="step"
    )
    if answer.reasoning == answer.text:
        answer.reasoning = None
    add_answer(transcript, answer)
    by = len(transcript.drafts) - 1
    action = step.get("action")
    if not isinstance(action, str) or not action.strip():
        if step.get("observation"):
            transcript.give(ToolResult(output=step["observation"], call_id="no action"))
        return
    waiting = requests.get(action)
    call = waiting.popleft() if waiting else {}
    asked = transcript.ask(
        name=mapping(call.get("function")).get("name") or _command(action),
        call_id=call.get("id"),
        arguments=action,
        by=by,
    )
    asked.output = step.get("observation")
    asked.attributes = _known({"execution_time": step.get("execution_time")})


def _command(action: str) -> str:
    """Return the command of an action: its first word, without the path."""
    return action.split(None, 1)[0].rsplit("/", 1)[-1] or action.strip()


def _from_history(
    value: dict[str, Any], remarks: Remarks
) -> tuple[tuple[Step, ...], tuple[AgentInvocation, ...]]:
    conversation = Conversation(remarks)
    agents = []
    for index, message in enumerate(value["history"]):
        if not is_message(message):
            raise RefusedRecord("This is not a message.", f"$.history[{index}]")
        agents.append(message.get("agent"))
        conversation.add(message)
    named = {agent for agent in agents if isinstance(agent, str)}
    if len(named) == 1:
        conversation.transcript.invocations[0].agent = named.pop()
    return conversation.finished()


def _with_total(
    steps: tuple[Step, ...], total: dict[str, Any], remarks: Remarks
) -> tuple[Step, ...]:
    """Mark the calls whose usage is known only as a total; remark on the total."""
    sent, received, calls = (
        whole_number(total.get(key))
        for key in ("tokens_sent", "tokens_received", "api_calls")
    )
    if not (sent or received):
        return steps
    told = (
        "an unknown number of" if one is None else one
        for one in (sent, received, calls)
    )
    remarks.add(_TOTAL.format(*told))
    found = sum(step.kind is StepKind.MODEL_CALL for step in steps)
    # Attempts that were thrown away may be among those that the file counts.
    remark_total(remarks, "run", "model calls", told=calls or None, found=found)
    return tuple(_marked(step) for step in steps)


def _marked(step: Step) -> Step:
    call = step.call
    if not isinstance(call, ModelCall):
        return step
    marked = msgspec.structs.replace(call, usage=_ONLY_TOTAL)
    return msgspec.structs.replace(step, call=marked)
