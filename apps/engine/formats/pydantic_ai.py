"""Reader of Pydantic-AI message histories (`all_messages_json`).

A message of kind "response" is one model call. A history writes zeros where the
provider told no usage, which is a suspect, not a count. A retry prompt is the answer
to a call whose arguments or output did not validate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.answers import Answer, Asked, add_answer
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.ground_truth import parted
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.json_values import embedded
from apps.engine.reading.recorded import (
    first_text,
    listed,
    mapping,
    remark_unread,
    time_range,
    word,
)
from apps.engine.reading.text_limits import IDENTIFIER, LABEL, NAME, Remarks, clip
from apps.engine.reading.token_counts import whole_number
from apps.engine.reading.transcript import (
    Draft,
    Invoked,
    ToolResult,
    Transcript,
    with_call,
)
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import StepKind, StepStatus, Trace, Via

_SAID: Final = {
    "user-prompt": StepKind.USER_MESSAGE,
    "system-prompt": StepKind.SYSTEM,
}
_OUTCOMES: Final = {
    "success": StepStatus.OK, "failed": StepStatus.ERROR, "denied": StepStatus.ERROR,
    "retried": StepStatus.ERROR, "interrupted": StepStatus.UNFINISHED,
}  # fmt: skip
_HOLDERS: Final = ("messages", "all_messages", "message_history")


class PydanticAI:
    """The format `pydantic-ai-messages`."""

    slug = "pydantic-ai-messages"
    label = "Pydantic-AI messages"
    version = 1
    description = (
        "The message history of a Pydantic-AI run (all_messages_json): requests and "
        "responses with parts. Each response is one model call; the history names no "
        "agent."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with a request or response with parts."""
        values = first_values(source)
        first = values[0] if values else None
        for _ in range(2):
            if isinstance(first, list) and first:
                first = first[0]
        held = _history_in(first)
        return _is_message(first) or bool(held and _is_message(held[0]))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each history; `UnreadableTrace` without any."""
        return demand_a_trace(
            _items(source), nothing="The file holds no Pydantic-AI messages."
        )


def _items(source: Source) -> Iterator[Item]:
    values = first_values(source)
    first = values[0] if values else None
    is_one = isinstance(first, list) and bool(first) and _is_message(first[0])
    loose: list[dict[str, Any]] = []

    def make(record: Record) -> Iterator[Item]:
        value = record.value
        if _is_message(value):
            loose.append(value)
            return
        messages = value if isinstance(value, list) else _history_in(value)
        if not messages:
            raise RefusedRecord("This is no message history of Pydantic-AI.", "$")
        facts = value if isinstance(value, dict) else {}
        yield _trace(messages, facts, f"run {record.number}")

    yield from read_each(source, make, unroll=not is_one)
    if loose:
        yield _trace(loose, {}, "run 1")


def _is_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and word(value.get("kind")) in {"request", "response"}
        and isinstance(value.get("parts"), list)
    )


def _history_in(value: Any) -> list[Any] | None:
    for holder in (mapping(value), mapping(mapping(value).get("_state"))):
        for key in _HOLDERS:
            held = holder.get(key)
            if isinstance(held, list) and held:
                return held
    return None


def _trace(messages: list[Any], facts: dict[str, Any], name: str) -> Trace:
    history = _History()
    for index, message in enumerate(messages):
        if not _is_message(message):
            raise RefusedRecord(
                "This is no message of Pydantic-AI: it needs a kind (request, response) "
                "and parts.",
                f"$[{index}]",
            )
        history.take(message)
    return history.trace(facts, name)


class _History:
    """One message history while it is being read."""

    def __init__(self) -> None:
        self._remarks = Remarks()
        self._transcript = Transcript(self._remarks)
        self._runs: dict[str, int] = {}
        self._session: Any = None
        self._metadata: dict[str, Any] = {}
        self._unread: Counter[str] = Counter()

    def take(self, message: dict[str, Any]) -> None:
        """Add one message with all its parts."""
        self._session = self._session or message.get("conversation_id")
        self._metadata |= mapping(message.get("metadata"))
        invocation = self._run(message.get("run_id"))
        if message["kind"] == "response":
            self._answer(message, invocation)
            return
        for part in message["parts"]:
            if isinstance(part, dict):
                self._part(part, message, invocation)

    def _run(self, run_id: Any) -> int:
        """Return the invocation of a run; the second run of a history is its own."""
        if not isinstance(run_id, str):
            return 0
        if run_id not in self._runs:
            if not self._runs:
                self._transcript.invocations[0].native_id = run_id
                self._runs[run_id] = 0
            else:
                self._runs[run_id] = self._transcript.invoke(
                    Invoked(parent=0, via=Via.ROOT, native_id=run_id)
                )
        return self._runs[run_id]

    def _part(
        self, part: dict[str, Any], message: dict[str, Any], invocation: int
    ) -> None:
        kind = str(part.get("part_kind"))
        time = any_time_ns(part.get("timestamp") or message.get("timestamp"))
        if kind == "tool-return":
            self._transcript.give(_returned(part, time))
        elif (
            kind == "retry-prompt"
            and part.get("tool_call_id")
            and part.get("tool_name")
        ):
            self._transcript.give(_retried(part, time))
        else:
            self._transcript.add(
                Draft(
                    kind=_SAID.get(kind, StepKind.SYSTEM),
                    invocation=invocation,
                    start_ns=time,
                    native_kind=kind,
                    output=part.get("content"),
                )
            )

    def _answer(self, message: dict[str, Any], invocation: int) -> None:
        answer = Answer(
            finish=message.get("finish_reason")
            or mapping(
                message.get("provider_details") or message.get("vendor_details")
            ).get("finish_reason"),
            model=message.get("model_name"),
            response_id=message.get("provider_response_id") or message.get("vendor_id"),
            counts=usage_counts(message.get("usage")),
            start_ns=any_time_ns(message.get("timestamp")),
            role="response",
        )
        texts: dict[str, list[str]] = {"text": [], "thinking": []}
        results = []
        for part in message["parts"]:
            kind = word(mapping(part).get("part_kind"))
            if kind in texts and isinstance(part.get("content"), str):
                texts[kind].append(part["content"])
            elif kind in {"tool-call", "builtin-tool-call"}:
                answer.asked.append(
                    Asked(
                        part.get("tool_name"),
                        part.get("tool_call_id"),
                        _arguments(part.get("args")),
                    )
                )
            elif kind == "builtin-tool-return":
                results.append(part)
            elif kind not in texts or mapping(part).get("content"):
                self._unread[kind or "part without a kind"] += 1
        answer.text = "\n".join(texts["text"]) or None
        answer.reasoning = "\n".join(texts["thinking"]) or None
        failed = self._failed_attempts(message, invocation)
        draft = add_answer(self._transcript, answer, invocation)
        with_call(draft, retry_of=failed)
        provider = clip(message.get("provider_name"), NAME, self._remarks)
        with_call(draft, provider=provider)
        for part in results:
            self._transcript.give(_returned(part, any_time_ns(part.get("timestamp"))))

    def _failed_attempts(self, message: dict[str, Any], invocation: int) -> int | None:
        """Add the calls of the models that failed before; return the last of them."""
        number = None
        for held in listed(message.get("failed_attempts")):
            attempt = mapping(held)
            number = len(self._transcript.drafts)
            failed = Answer(
                model=attempt.get("model_name"),
                counts=usage_counts(attempt.get("usage")),
                error_type=attempt.get("outcome") or "error",
                error_message=attempt.get("error"),
                role="failed attempt",
            )
            add_answer(self._transcript, failed, invocation)
        return number

    def trace(self, facts: dict[str, Any], name: str) -> Trace:
        """Return the trace; `name` is used where nothing names it."""
        remarks = self._remarks
        remark_unread(remarks, "Parts", self._unread)
        steps, invocations, order = self._transcript.finished()
        start, end = time_range(steps)
        metadata = self._metadata | mapping(facts.get("metadata"))
        metadata, labels = parted(metadata)
        return Trace(
            name=first_text(facts, ("name", "id"), NAME, remarks) or name,
            steps=steps,
            invocations=invocations,
            session=clip(self._session, IDENTIFIER, remarks),
            start_ns=start,
            end_ns=end,
            order=order,
            task=first_text(metadata, ("task", "task_id"), LABEL, remarks),
            trial=whole_number(metadata.get("trial")),
            metadata=metadata,
            labels=labels,
            notes=remarks.sentences(),
        )


def _arguments(args: Any) -> Any:
    """Return the arguments of a call; the first versions named their encoding."""
    held = mapping(args)
    for key in ("args_json", "args_dict"):
        if held.keys() == {key}:
            return embedded(held[key])
    return embedded(args)


def _returned(part: dict[str, Any], time: int | None) -> ToolResult:
    status = _OUTCOMES.get(str(part.get("outcome")), StepStatus.UNSET)
    content = part.get("content")
    failed = status is StepStatus.ERROR
    return ToolResult(
        output=content,
        call_id=part.get("tool_call_id"),
        status=status,
        error_type=str(part["outcome"]) if failed else None,
        error_message=content if failed and isinstance(content, str) else None,
        end_ns=time,
        native_kind="tool-return",
    )


def _retried(part: dict[str, Any], time: int | None) -> ToolResult:
    content = part.get("content")
    return ToolResult(
        output=content,
        call_id=part.get("tool_call_id"),
        status=StepStatus.ERROR,
        error_type="retry-prompt",
        error_message=content if isinstance(content, str) else str(listed(content)[:3]),
        end_ns=time,
        native_kind="retry-prompt",
    )
