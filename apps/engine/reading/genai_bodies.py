"""What a person reads of a span: input, output, reasoning and all other attributes.

Texts that hold JSON are opened; lists that were flattened into attributes
(`gen_ai.prompt.0.role`) are put together again. Nothing is dropped but the second
copy of messages that are recorded twice in one span.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.genai_names import LABELS
from apps.engine.reading.json_values import embedded
from apps.engine.reading.recorded import body_with
from apps.engine.reading.spans import Event, Span
from apps.engine.trace import Body, StepKind

_INPUT_KEYS: Final = (
    "gen_ai.input.messages", "gen_ai.tool.call.arguments", "ai.toolCall.args",
    "ai.prompt.messages", "tool_arguments", "gen_ai.prompt", "ai.prompt",
    "input.value", "traceloop.entity.input", "mlflow.spanInputs",
    "langfuse.observation.input", "gcp.vertex.agent.llm_request",
    "gcp.vertex.agent.tool_call_args", "gen_ai.tool.args", "gen_ai.tool.input",
    "ai.toolCall.input", "request_data", "ai.observability.record_root.input",
)  # fmt: skip
_OUTPUT_KEYS: Final = (
    "gen_ai.output.messages", "gen_ai.tool.call.result", "ai.toolCall.result",
    "tool_response", "gen_ai.completion", "output.value", "traceloop.entity.output",
    "ai.response.object", "mlflow.spanOutputs", "langfuse.observation.output",
    "gcp.vertex.agent.llm_response", "gcp.vertex.agent.tool_response",
    "gen_ai.output", "gen_ai.tool.output", "ai.toolCall.output", "response_data",
    "ai.observability.record_root.output", "ai.observability.call.return",
)  # fmt: skip
_INPUT_LISTS: Final = ("llm.input_messages.", "gen_ai.prompt.")
_OUTPUT_LISTS: Final = ("llm.output_messages.", "gen_ai.completion.")
_VERCEL_OUTPUT: Final = ("ai.response.text", "ai.response.toolCalls")
_INPUT_EVENTS: Final = (
    "gen_ai.system.message", "gen_ai.user.message", "gen_ai.assistant.message",
    "gen_ai.tool.message", "gen_ai.content.prompt",
)  # fmt: skip
_OUTPUT_EVENTS: Final = ("gen_ai.choice", "gen_ai.content.completion")
_REASONING: Final = "ai.response.reasoning"
_TWICE: Final = ("input.value", "input.mime_type", "output.value", "output.mime_type")
_DEEPEST: Final = 12
_CALL_IDS: Final = ("id", "toolCallId", "tool_call_id", "toolUseId")
_DETAILS: Final = "gen_ai.client.inference.operation.details"


def body_of(span: Span, kind: StepKind) -> Body | None:
    """Return the body of a span, or `None` where it holds nothing to read."""
    if span.facts is not None:
        facts = span.facts
        return body_with(
            input=facts.input,
            output=facts.output,
            reasoning=facts.reasoning,
            attributes=facts.attributes,
        )
    left = _attributes_of(span)
    given = _taken(left, _INPUT_LISTS, _INPUT_KEYS)
    answer = _taken(left, _OUTPUT_LISTS, _OUTPUT_KEYS)
    if answer is None:
        answer = _vercel_answer(left)
    if given is None and answer is None:
        given, answer = _logged_messages(left)
    reasoning = left.pop(_REASONING, None)
    if kind is StepKind.MODEL_CALL:
        for key in _TWICE:
            left.pop(key, None)
    given, answer, events = _with_events(span.events, given, answer)
    if events:
        left["events"] = events
    return body_with(input=given, output=answer, reasoning=reasoning, attributes=left)


def _attributes_of(span: Span) -> dict[str, Any]:
    """Return the attributes without labels, with those of the event of its messages."""
    left = dict(span.attributes)
    if not LABELS.isdisjoint(left):
        left = {key: item for key, item in left.items() if key not in LABELS}
    for event in span.events:
        if event.name == _DETAILS:
            left.update(event.attributes)
    return left


def _logged_messages(left: dict[str, Any]) -> tuple[Any, Any]:
    """Take messages that were logged into one attribute, `events`; return both sides."""
    events = embedded(left.get("events"))
    if not isinstance(events, list) or not events:
        return None, None
    if not all(isinstance(one, dict) and "event.name" in one for one in events):
        return None, None
    del left["events"]
    told = [one for one in events if one["event.name"] in _OUTPUT_EVENTS]
    asked = [one for one in events if one["event.name"] not in _OUTPUT_EVENTS]
    return asked or None, told or None


def requested_ids(output: Any) -> tuple[str, ...]:
    """Return the ids of the tool calls that an answer asks for, in order."""
    found: dict[str, None] = {}
    _collect_ids(output, found, 0)
    return tuple(found)


def _collect_ids(value: Any, found: dict[str, None], depth: int) -> None:
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        if _is_tool_call(value):
            own = next((value[key] for key in _CALL_IDS if key in value), None)
            if isinstance(own, str) and own:
                found.setdefault(own)
        value = [item for key, item in value.items() if key != "arguments"]
    if isinstance(value, list):
        for item in value:
            _collect_ids(item, found, depth + 1)


def _is_tool_call(value: dict[str, Any]) -> bool:
    return (
        value.get("type") in ("tool_call", "tool_use", "function_call", "tool-call")
        or "toolCallId" in value
        or "toolUseId" in value
        or "function" in value
        or ("arguments" in value and "name" in value)
    )


def _taken(left: dict[str, Any], lists: tuple[str, ...], keys: tuple[str, ...]) -> Any:
    """Take the first recorded form out of `left` and return it."""
    for prefix in lists:
        whole = _put_together(left, prefix)
        if whole is not None:
            return whole
    for key in keys:
        if left.get(key) is not None:
            return embedded(left.pop(key))
    return None


def _put_together(left: dict[str, Any], prefix: str) -> Any:
    """Take all attributes under `prefix` out of `left`, as one list of objects."""
    names = [key for key in left if key.startswith(prefix)]
    if not names:
        return None
    tree: dict[str, Any] = {}
    for name in names:
        parts = name[len(prefix) :].split(".", _DEEPEST)
        _plant(tree, parts, embedded(left.pop(name)))
    return _with_lists(tree)


def _plant(tree: dict[str, Any], parts: list[str], value: Any) -> None:
    node = tree
    for part in parts[:-1]:
        inner = node.setdefault(part, {})
        if not isinstance(inner, dict):
            inner = node[part] = {"": inner}
        node = inner
    last = parts[-1]
    if isinstance(node.get(last), dict) and not isinstance(value, dict):
        node[last][""] = value
    else:
        node[last] = value


def _with_lists(node: Any) -> Any:
    """Turn objects whose keys are all numbers into lists, and drop vendor wrapping."""
    if not isinstance(node, dict):
        return node
    if len(node) == 1:
        [(key, inner)] = node.items()
        if key in {"message", "tool_call", "message_content"}:
            return _with_lists(inner)
    if node and all(key.isascii() and key.isdigit() for key in node):
        ordered = sorted(node.items(), key=lambda pair: (len(pair[0]), pair[0]))
        return [_with_lists(item) for _, item in ordered]
    return {key: _with_lists(item) for key, item in node.items()}


def _vercel_answer(left: dict[str, Any]) -> Any:
    text, calls = (left.pop(key, None) for key in _VERCEL_OUTPUT)
    if calls is None:
        return text
    answer = {"text": text, "toolCalls": embedded(calls)}
    return {key: item for key, item in answer.items() if item is not None}


def _with_events(
    events: list[Event], given: Any, answer: Any
) -> tuple[Any, Any, list[dict[str, Any]]]:
    """Use message events where the attributes hold none; return the other events."""
    asked = [_message(event) for event in events if event.name in _INPUT_EVENTS]
    told = [_message(event) for event in events if event.name in _OUTPUT_EVENTS]
    kept = [
        {"name": event.name, "time_ns": event.time_ns, **_opened(event.attributes)}
        for event in events
        if event.attributes
        and event.name != _DETAILS
        and event.name not in _INPUT_EVENTS
        and event.name not in _OUTPUT_EVENTS
    ]
    return (
        asked if given is None and asked else given,
        told if answer is None and told else answer,
        kept,
    )


def _message(event: Event) -> dict[str, Any]:
    role = event.name.split(".")[1]
    known = {"role": role} if role in {"system", "user", "assistant", "tool"} else {}
    return known | _opened(event.attributes)


def _opened(attributes: dict[str, Any]) -> dict[str, Any]:
    return {key: embedded(value) for key, value in attributes.items()}
