"""Reader of mini-swe-agent trajectories (.traj.json).

Chat messages, each answer with the raw completion in `extra`, from which its usage,
model and actions are read; with the Responses API the answers are the responses. Files of older versions are plain chat messages and are
read as such.

Version 2 keeps an answer without content as an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.answers import add_answer, answer_of
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.messages import Conversation, is_message
from apps.engine.reading.recorded import first_text, listed, mapping, time_range, word
from apps.engine.reading.run_totals import remark_total
from apps.engine.reading.text_limits import IDENTIFIER, LABEL, NAME, Remarks, clip
from apps.engine.reading.token_counts import usage_of, whole_number
from apps.engine.reading.transcript import Draft, ToolResult, with_call
from apps.engine.trace import StepKind, StepStatus, Trace

_FORMAT: Final = "mini-swe-agent"
_REFUSED: Final = "Answers that were refused for their format, counted as calls: {n}."


class MiniSWEAgent:
    """The format `mini-swe-agent`."""

    slug = "mini-swe-agent"
    label = "mini-swe-agent trajectory"
    version = 2
    description = (
        "A mini-swe-agent .traj.json with trajectory_format, info and messages. Usage "
        "is read from the raw completion that each answer keeps."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file is an object that names this format or has its info."""
        return _is_run(first_record(source))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each run; `UnreadableTrace` without any."""
        return demand_a_trace(
            read_each(source, _traces, unroll=True),
            nothing="The file holds no mini-swe-agent run.",
        )


def _is_run(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        return False
    named = str(value.get("trajectory_format", "")).startswith(_FORMAT)
    info = mapping(value.get("info"))
    return named or ("exit_status" in info and "model_stats" in info)


def _traces(record: Record) -> Iterator[Item]:
    value = record.value
    if not _is_run(value):
        raise RefusedRecord("This is no mini-swe-agent run.", "$")
    remarks = Remarks()
    conversation = Conversation(remarks)
    for index, message in enumerate(value["messages"]):
        if not isinstance(message, dict):
            raise RefusedRecord("This is not a message.", f"$.messages[{index}]")
        _take(conversation, message, remarks)
    steps, invocations, order = conversation.ordered()
    info = mapping(value.get("info"))
    found = sum(step.kind is StepKind.MODEL_CALL for step in steps)
    told = whole_number(mapping(info.get("model_stats")).get("api_calls"))
    # Answers in a wrong format may be missing in the messages.
    remark_total(remarks, "run", "model calls", told=told or None, found=found)
    start, end = time_range(steps)
    yield Trace(
        name=first_text(value, ("instance_id", "name"), NAME, remarks)
        or f"run {record.number}",
        steps=steps,
        invocations=invocations,
        start_ns=start,
        end_ns=end,
        order=order,
        task=first_text(value, ("instance_id",), LABEL, remarks),
        metadata={key: item for key, item in info.items() if key != "submission"},
        notes=remarks.sentences(),
    )


def _take(
    conversation: Conversation, message: dict[str, Any], remarks: Remarks
) -> None:
    extra = mapping(message.get("extra"))
    time = any_time_ns(extra.get("timestamp", message.get("timestamp")))
    refused = answer_of(extra.get("response"))
    answer = answer_of(message)
    if answer is not None and message.get("object") == "response":
        answer.start_ns = time
        add_answer(conversation.transcript, answer)
        return
    if word(message.get("type")).endswith("_call_output"):
        conversation.transcript.give(_observed(message, extra, time))
        return
    if refused is not None and message.get("role") != "assistant":
        # An answer in a wrong format stands only beside the words that refuse it.
        remarks.add(_REFUSED)
        add_answer(conversation.transcript, refused).start_ns = time
    if not is_message(message):
        draft = Draft(
            kind=StepKind.SYSTEM,
            native_kind=str(message.get("role") or message.get("type") or "message"),
            output=message.get("content"),
            attributes=extra,
        )
        conversation.transcript.add(draft)
    else:
        bare = {key: item for key, item in message.items() if key != "extra"}
        draft = conversation.add(bare)
    if draft.kind is StepKind.MODEL_CALL:
        _complete(conversation, draft, extra, remarks)
    if draft.kind is StepKind.TOOL_CALL:
        draft.end_ns = time
    else:
        draft.start_ns = time


def _observed(
    item: dict[str, Any], extra: dict[str, Any], time: int | None
) -> ToolResult:
    """Return what an action gave back where the Responses API is used."""
    error = extra.get("exception_info")
    return ToolResult(
        output=item.get("output"),
        call_id=item.get("call_id"),
        status=StepStatus.ERROR if error else StepStatus.UNSET,
        error_message=error or None,
        end_ns=time,
        native_kind=item["type"],
    )


def _complete(
    conversation: Conversation, draft: Draft, extra: dict[str, Any], remarks: Remarks
) -> None:
    """Add what the raw completion says, and the actions that are no tool calls."""
    answer = answer_of(extra.get("response"))
    if answer is not None:
        finish, finish_raw = finish_of(answer.finish)
        with_call(
            draft,
            usage=usage_of(answer.counts),
            model=clip(answer.model, NAME, remarks),
            response_id=clip(answer.response_id, IDENTIFIER, remarks),
            finish=finish,
            finish_raw=clip(finish_raw, IDENTIFIER, remarks),
        )
    drafts = conversation.transcript.drafts
    number = next(at for at in reversed(range(len(drafts))) if drafts[at] is draft)
    asked = drafts[number + 1 :]
    for action in listed(extra.get("actions")) if not asked else ():
        held = mapping(action)
        one = conversation.transcript.ask(
            name=held.get("tool_name") or "bash",
            call_id=held.get("tool_call_id"),
            arguments=held.get("command", action),
            by=number,
        )
        if "output" in held:
            one.output = held["output"]
