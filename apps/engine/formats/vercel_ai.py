"""Reader of the Vercel AI SDK: results with their steps, and messages.

A step of a result is one model call with its usage; the totals of the result are
compared with the sum of the steps and never added. UI messages and model messages
record no usage; in them a call begins at each step-start, or with each message.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Note, Source
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
from apps.engine.reading.recorded import first_text, listed, mapping, time_range, word
from apps.engine.reading.run_totals import known_outputs, remark_total
from apps.engine.reading.text_limits import IDENTIFIER, LABEL, NAME, Remarks, clip
from apps.engine.reading.token_counts import whole_number
from apps.engine.reading.transcript import Draft, ToolResult, Transcript, with_call
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.reading.vercel_stream import StreamedSteps, begins_stream
from apps.engine.trace import StepKind, StepStatus, Trace

_SESSIONS: Final = ("sessionId", "session_id", "chatId", "threadId", "conversationId")
_RESULTS: Final = frozenset({"tool-result", "tool-error"})
_TOOL_PARTS: Final = frozenset({"tool-call", *_RESULTS})
_UI_DONE: Final = frozenset(
    {"output-available", "result", "output-error", "output-denied"}
)


class VercelAI:
    """The format `vercel-ai`."""

    slug = "vercel-ai"
    label = "Vercel AI SDK"
    version = 1
    description = (
        "Results of generateText and streamText with their steps (one model call each, "
        "with usage), the parts of their streams, and UI or model messages with parts, which record no usage. "
        "Telemetry of the SDK is read as OpenTelemetry."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with a result, UI messages or model messages."""
        values = first_values(source)
        first = values[0] if values else None
        if isinstance(first, list):
            one = first[0] if first else None
            return (
                _are_messages(first)
                or bool(_steps_of(one))
                or _is_step(one)
                or (isinstance(one, dict) and _are_messages(_messages_in(one)))
                or begins_stream(first[:3])
            )
        is_alone = bool(_steps_of(first)) or _is_step(first)
        return is_alone or _are_messages(_messages_in(first)) or begins_stream(values)

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each result or conversation; `UnreadableTrace` without."""
        return demand_a_trace(
            _items(source),
            nothing="The file holds no result and no messages of the AI SDK.",
        )


def _items(source: Source) -> Iterator[Item]:
    values = first_values(source)
    first = values[0] if values else None
    is_one = isinstance(first, list) and _are_messages(first)
    taker = _Taker()
    yield from read_each(source, taker, unroll=not is_one)
    yield from taker.ends()


def _is_step(value: Any) -> bool:
    """Whether a value is a step: what a model said, with why it stopped and usage."""
    held = mapping(value)
    return (
        "finishReason" in held
        and isinstance(held.get("usage"), dict)
        and (isinstance(held.get("content"), list) or "stepType" in held)
    )


def _steps_of(value: Any) -> list[dict[str, Any]]:
    """Return the steps of a result; one of an old version may be its own only step."""
    steps = [step for step in listed(mapping(value).get("steps")) if _is_told(step)]
    if steps:
        return steps
    held = mapping(value)
    is_result = {"finishReason", "usage", "text"} <= held.keys()
    return [held] if is_result and not _is_step(held) else []


def _is_told(step: Any) -> bool:
    return isinstance(step, dict) and "finishReason" in step


def _messages_in(value: Any) -> Any:
    return mapping(value).get("messages", [value] if isinstance(value, dict) else None)


def _are_messages(value: Any) -> bool:
    """Whether a list holds messages with parts that only this SDK writes."""
    return isinstance(value, list) and any(_is_own(message) for message in value)


def _is_own(message: Any) -> bool:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        return False
    if isinstance(message.get("parts"), list):
        return any(
            isinstance(part, dict) and isinstance(part.get("type"), str)
            for part in message["parts"]
        )
    return any(
        isinstance(part, dict) and word(part.get("type")) in _TOOL_PARTS
        and "toolCallId" in part
        for part in listed(message.get("content"))
    ) or isinstance(message.get("toolInvocations"), list)  # fmt: skip


class _Taker:
    """Makes traces of results and conversations, and of steps that stand alone."""

    def __init__(self) -> None:
        self._runs: list[list[dict[str, Any]]] = []
        self._streams = StreamedSteps()

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        steps = _steps_of(value)
        if steps:
            made = _Run()
            made.take_result(value, steps)
            yield made.trace(f"result {record.number}", value)
        elif _is_step(value):
            is_first = (
                value.get("stepNumber") == 0 or value.get("stepType") == "initial"
            )
            if is_first or not self._runs:
                self._runs.append([])
            self._runs[-1].append(value)
        elif not self._streams.take(value):
            yield _conversation(value, record.number)

    def ends(self) -> Iterator[Item]:
        """Yield what needed the whole file: loose steps and the parts of streams."""
        runs = [*self._runs, *self._streams.runs]
        for number, steps in enumerate((run for run in runs if run), 1):
            made = _Run()
            made.take_result({}, steps)
            yield made.trace(f"result {number}", {})
        unread = +self._streams.unread
        if unread:
            kinds = ", ".join(sorted(unread)[:20])
            sentence = f"Parts of the stream of kinds that are not read ({kinds})."
            yield Note("stream_parts_not_read", sentence, unread.total())


def _conversation(value: Any, number: int) -> Trace:
    made = _Run()
    messages = value if isinstance(value, list) else _messages_in(value)
    if not isinstance(messages, list) or not messages:
        raise RefusedRecord("This is no result and no messages of the AI SDK.", "$")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or "role" not in message:
            raise RefusedRecord("This is no message: it has no role.", f"$[{index}]")
        made.take_message(message)
    return made.trace(f"conversation {number}", mapping(value))


class _Run:
    """One result or conversation while it is being read."""

    def __init__(self) -> None:
        self._remarks = Remarks()
        self._transcript = Transcript(self._remarks)
        self._facts: dict[str, Any] = {}

    def take_result(self, result: dict[str, Any], steps: list[dict[str, Any]]) -> None:
        """Add all steps of a result and compare its totals with theirs."""
        self._first_request(steps[0])
        for step in steps:
            self._step(step)
            self._facts |= mapping(step.get("metadata"))
            if step.get("functionId"):
                self._transcript.invocations[0].agent = step["functionId"]
        told = usage_counts(result.get("totalUsage") or result.get("usage"))
        counts = known_outputs(self._transcript.drafts)
        known = [count for count in counts if count is not None]
        is_last_only = "totalUsage" not in result
        expected = known[-1:] if is_last_only else known
        is_whole = told.output_total is not None and len(known) == len(steps)
        if is_whole and told.output_total not in {sum(known), sum(expected)}:
            remark_total(
                self._remarks,
                "result",
                "output tokens",
                told=told.output_total,
                found=sum(known),
            )

    def _first_request(self, step: dict[str, Any]) -> None:
        """Add what the first request said, where it was recorded."""
        request = mapping(step.get("request"))
        body = mapping(embedded(request.get("body")))
        for message in listed(body.get("messages") or body.get("input")):
            role = word(mapping(message).get("role"))
            if role in {"system", "developer", "user"}:
                self._say(role, message.get("content"))

    def _step(self, step: dict[str, Any]) -> None:
        response = mapping(step.get("response"))
        model = mapping(step.get("model"))
        parts = [part for part in listed(step.get("content")) if isinstance(part, dict)]
        answer = Answer(
            text=step.get("text") or _texts(parts, "text"),
            reasoning=step.get("reasoningText") or _texts(parts, "reasoning")
            or (step.get("reasoning") or None),
            asked=_asked(parts) or _asked(listed(step.get("toolCalls"))),
            finish=step.get("rawFinishReason") or step.get("finishReason"),
            model=response.get("modelId") or model.get("modelId"),
            response_id=response.get("id"),
            counts=usage_counts(step.get("usage")),
            role="step",
        )  # fmt: skip
        if step.get("error") is not None:
            error = step["error"]
            answer.error_type = mapping(error).get("name") or "error"
            answer.error_message = mapping(error).get("message") or str(error)
        draft = add_answer(self._transcript, answer)
        draft.end_ns = any_time_ns(response.get("timestamp"))
        provider = clip(model.get("provider"), NAME, self._remarks)
        with_call(draft, provider=provider)
        results = [part for part in parts if word(part.get("type")) in _RESULTS]
        for part in results or listed(step.get("toolResults")):
            if isinstance(part, dict):
                self._transcript.give(_result(part))

    def take_message(self, message: dict[str, Any]) -> None:
        """Add one UI or model message."""
        role = message["role"]
        parts = listed(message.get("parts") or message.get("content"))
        if role == "assistant":
            self._assistant(message, [one for one in parts if isinstance(one, dict)])
        elif role == "tool":
            for part in parts:
                if isinstance(part, dict):
                    self._transcript.give(_result(part))
        else:
            self._say(str(role), parts or message.get("content"))

    def _assistant(self, message: dict[str, Any], parts: list[dict[str, Any]]) -> None:
        # Version 4 repeats the invocations of the parts beside them.
        if not any("toolCallId" in _tool_in(part) for part in parts):
            invoked = listed(message.get("toolInvocations"))
            parts = [*parts, *(part for part in invoked if isinstance(part, dict))]
        calls = _calls_in(parts) or [[]]
        has_texts = any("type" in part for part in parts)
        for call in calls:
            answer = Answer(
                text=_texts(call, "text"),
                reasoning=_texts(call, "reasoning"),
                asked=_asked(call),
                model=mapping(message.get("metadata")).get("model"),
                role="assistant",
            )
            if not has_texts:
                answer.text = message.get("content")
            draft = add_answer(self._transcript, answer)
            draft.native_id = message.get("id")
            for part in call:
                state = word(_tool_in(part).get("state"))
                if word(part.get("type")) in _RESULTS or state in _UI_DONE:
                    self._transcript.give(_result(_tool_in(part)))

    def _say(self, role: str, content: Any) -> None:
        kind = StepKind.USER_MESSAGE if role == "user" else StepKind.SYSTEM
        self._transcript.add(Draft(kind=kind, native_kind=role, output=content))

    def trace(self, name: str, value: dict[str, Any]) -> Trace:
        """Return the trace; `name` is used where nothing names it."""
        remarks = self._remarks
        steps, invocations, order = self._transcript.finished()
        start, end = time_range(steps)
        facts, labels = parted(self._facts | mapping(value.get("metadata")))
        session = first_text(facts, _SESSIONS, IDENTIFIER, remarks)
        return Trace(
            name=first_text(value, ("name", "id"), NAME, remarks) or session or name,
            steps=steps,
            invocations=invocations,
            session=session,
            start_ns=start,
            end_ns=end,
            order=order,
            task=first_text(facts, ("task", "taskId"), LABEL, remarks),
            trial=whole_number(facts.get("trial")),
            metadata=facts,
            labels=labels,
            notes=remarks.sentences(),
        )


def _tool_in(part: dict[str, Any]) -> dict[str, Any]:
    """Return the tool invocation of a UI part, which older versions nest."""
    held = part.get("toolInvocation")
    return held if isinstance(held, dict) else part


def _calls_in(parts: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the parts of each model call of a message: they begin with step-start."""
    calls: list[list[dict[str, Any]]] = [[]]
    for part in parts:
        if part.get("type") == "step-start":
            calls.append([])
        elif not _is_aside(part):
            calls[-1].append(part)
    return [call for call in calls if call]


def _is_aside(part: dict[str, Any]) -> bool:
    """Whether a part is what an application or a search added to an answer."""
    return word(part.get("type")).startswith(("data-", "source"))


def _texts(parts: list[dict[str, Any]], kind: str) -> str | None:
    texts = [
        part.get("text", part.get("reasoning"))
        for part in parts
        if part.get("type") == kind
    ]
    return "\n".join(text for text in texts if isinstance(text, str)) or None


def _asked(parts: list[Any]) -> list[Asked]:
    made = []
    for held in parts:
        if not isinstance(held, dict):
            continue
        part = _tool_in(held)
        kind = str(held.get("type"))
        if "toolCallId" not in part or kind in _RESULTS:
            continue
        name = part.get("toolName") or kind.removeprefix("tool-")
        arguments = part.get("input", part.get("args"))
        made.append(Asked(name, part["toolCallId"], embedded(arguments)))
    return made


def _result(part: dict[str, Any]) -> ToolResult:
    """Return a tool result; it failed where the part holds an error."""
    held = part.get("output", part.get("result"))
    kind = word(mapping(held).get("type"))
    error = part.get("errorText") or part.get("error")
    failed = (
        error is not None
        or part.get("isError") is True
        or part.get("type") == "tool-error"
        or part.get("state") == "output-denied"
        or kind in {"error-text", "error-json", "execution-denied"}
    )
    if kind and "value" in mapping(held):
        held = mapping(held)["value"]
    words = error if isinstance(error, str) else mapping(error).get("message")
    return ToolResult(
        output=held if error is None else (held or error),
        call_id=part.get("toolCallId"),
        status=StepStatus.ERROR if failed else StepStatus.UNSET,
        error_message=(words or (held if isinstance(held, str) else None))
        if failed
        else None,
        native_kind=str(part.get("type") or "tool-result"),
    )
