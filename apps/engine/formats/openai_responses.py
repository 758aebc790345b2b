"""Reader of OpenAI's Responses API: response objects, input items, stream events.

A response object is one model call with its usage. In a list of items a model call is
what the model wrote between two things that it did not write; such lists record no
usage. Version 2 keeps the names of the tools that a response repeats from its request,
or that stand beside the items, as what was offered, and an answer without content as
an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.answers import (
    Answer,
    add_answer,
    answer_of,
    is_response,
    take_output_item,
)
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.json_values import embedded
from apps.engine.reading.offered import beside, offered_tools
from apps.engine.reading.recorded import mapping, time_range, word
from apps.engine.reading.text_limits import Remarks
from apps.engine.reading.transcript import Draft, ToolResult, Transcript
from apps.engine.trace import StepKind, StepStatus, Trace

_TERMINAL: Final = frozenset(
    {"response.completed", "response.incomplete", "response.failed", "response.done"}
)
_RESULTS: Final = "_call_output"
_CALLS: Final = frozenset(
    {
        "function_call", "custom_tool_call", "web_search_call", "file_search_call",
        "computer_call", "code_interpreter_call", "image_generation_call",
        "local_shell_call", "shell_call", "apply_patch_call", "mcp_call",
        "tool_search_call",
    }
)  # fmt: skip
_OWN_PARTS: Final = frozenset({"input_text", "output_text", "input_image", "refusal"})
_RESULT_KINDS: Final = frozenset(
    {kind + "_output" for kind in _CALLS} | {"function_call_output"}
)
_TOGETHER: Final = (
    "The responses do not say which conversation they belong to, so they are one trace "
    "in the order of the file."
)
_WRITTEN: Final = frozenset({"reasoning", "message", ""})
_OUTPUTS: Final = ("output", "outputs", "results", "result", "tools")
_NOT_READ: Final = "Items of kinds that are not read: {n}."
_REVERSED: Final = "The items were listed newest first and were read from the last one."
_STREAM: Final = "Stream events other than the last of a response, not read: {n}."


class OpenAIResponses:
    """The format `openai-responses`."""

    slug = "openai-responses"
    label = "OpenAI Responses"
    version = 2
    description = (
        "Response objects of the Responses API as JSON or JSON lines (one model call "
        "each, joined by previous_response_id or conversation), the events of a stream, "
        "or a list of items (message, reasoning, function_call, function_call_output). "
        "Items record no token usage."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with a response, a stream event or items."""
        first = _first(source)
        if isinstance(first, list):
            return _are_items(first) or (bool(first) and is_response(first[0]))
        return (
            is_response(first)
            or _is_event(first)
            or _are_items(_items_in(first))
            or _are_items(first_values(source))
        )

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each conversation; `UnreadableTrace` without any."""
        return demand_a_trace(
            _items(source), nothing="The file holds no response and no items."
        )


def _first(source: Source) -> Any:
    values = first_values(source)
    return values[0] if values else None


def _items(source: Source) -> Iterator[Item]:
    first = _first(source)
    is_one = isinstance(first, list) and _are_items(first)
    taker = _Taker()
    yield from read_each(source, taker, unroll=not is_one)
    yield from taker.traces()


def _items_in(value: Any) -> Any:
    """Return the items of {data: [...]}, {input: [...]} or {items: [...]}."""
    if not isinstance(value, dict):
        return None
    return next(
        (
            value[key]
            for key in ("items", "data", "input")
            if _are_items(value.get(key))
        ),
        None,
    )


def _are_items(value: Any) -> bool:
    """Whether a list holds items of the API: one of the first has a type of its own."""
    if not isinstance(value, list) or not value:
        return False
    return isinstance(value[0], dict) and any(_is_own(item) for item in value[:20])


def _is_own(item: Any) -> bool:
    """Whether an item has a type or parts that only this API writes."""
    if not isinstance(item, dict):
        return False
    kind = word(item.get("type"))
    if kind in _CALLS or kind in _RESULT_KINDS:
        return "call_id" in item or "id" in item
    if kind == "reasoning":
        return "summary" in item or "encrypted_content" in item
    content = item.get("content")
    return (
        kind in {"message", ""}
        and "role" in item
        and isinstance(content, list)
        and any(
            isinstance(part, dict) and word(part.get("type")) in _OWN_PARTS
            for part in content
        )
    )


def _is_event(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and str(value.get("type")).startswith("response.")
        and ("response" in value or "sequence_number" in value)
    )


class _Conversation:
    """One conversation while it is being read."""

    def __init__(self, offered: list[Any] | None = None) -> None:
        self._offered = offered or []
        self.remarks = Remarks()
        self.transcript = Transcript(self.remarks)
        self._open: Answer | None = None
        self._built_in: list[dict[str, Any]] = []

    def take(self, item: dict[str, Any]) -> None:
        """Add one item: what the model wrote is gathered until it did not write."""
        kind = word(item.get("type"))
        if kind in _RESULT_KINDS or kind.endswith(_RESULTS):
            self.close()
            self.transcript.give(_result(item))
        elif kind in {"message", ""} and item.get("role") != "assistant":
            self.close()
            self._say(item)
        elif kind in _WRITTEN or kind in _CALLS or kind.endswith("_call"):
            self._gather(item)
        else:
            self.remarks.add(_NOT_READ)

    def close(self) -> None:
        """End the model call that is open."""
        if self._open is not None:
            draft = add_answer(self.transcript, self._open)
            draft.attributes = beside(draft.attributes, self._offered)
            give_built_in(self.transcript, self._built_in)
        self._open, self._built_in = None, []

    def _gather(self, item: dict[str, Any]) -> None:
        begins = item.get("type") == "reasoning"
        held = self._open
        if begins and held is not None and (held.text is not None or held.asked):
            self.close()
        if self._open is None:
            self._open = Answer()
        take_output_item(self._open, item)
        self._built_in.append(item)

    def _say(self, item: dict[str, Any]) -> None:
        role = item.get("role")
        is_user = role == "user"
        self.transcript.add(
            Draft(
                kind=StepKind.USER_MESSAGE if is_user else StepKind.SYSTEM,
                native_kind=str(role or "message"),
                output=item.get("content"),
            )
        )

    def trace(self, name: str) -> Trace:
        """Return the trace of what was taken."""
        self.close()
        steps, invocations, order = self.transcript.finished()
        start, end = time_range(steps)
        return Trace(
            name=name,
            steps=steps,
            invocations=invocations,
            start_ns=start,
            end_ns=end,
            order=order,
            notes=self.remarks.sentences(),
        )


def _result(item: dict[str, Any]) -> ToolResult:
    failed = word(item.get("status")) in {"failed", "incomplete"} or bool(
        item.get("error")
    )
    return ToolResult(
        output=embedded(item.get("output")),
        call_id=item.get("call_id") or item.get("id"),
        status=StepStatus.ERROR if failed else StepStatus.UNSET,
        native_kind=str(item.get("type")),
    )


class _Taker:
    """Takes records apart into conversations."""

    def __init__(self) -> None:
        self._responses: list[dict[str, Any]] = []
        self._loose = _Conversation()
        self._stream_events = 0
        self._begun: dict[str, Any] | None = None

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        items = value if isinstance(value, list) else _items_in(value)
        if items is not None and _are_items(items):
            made = _Conversation(offered_tools(value))
            _take_all(made, items, "$")
            yield made.trace(f"conversation {record.number}")
        elif is_response(value):
            self._responses.append(value)
        elif _is_event(value):
            self._take_event(value)
        elif isinstance(value, dict) and ("type" in value or "role" in value):
            self._loose.take(value)
        else:
            raise RefusedRecord("This is neither a response nor an item.", "$")

    def _take_event(self, event: dict[str, Any]) -> None:
        response = event.get("response")
        if word(event["type"]) in _TERMINAL and is_response(response):
            self._responses.append(mapping(response))
            self._begun = None
            return
        self._stream_events += 1
        if event["type"] == "response.created" and is_response(response):
            self._end_cut_stream()
            self._begun = mapping(response) | {"output": []}
        elif event["type"] == "response.output_item.done" and self._begun is not None:
            self._begun["output"].append(event.get("item"))

    def _end_cut_stream(self) -> None:
        """Keep a response whose stream broke off, with the items that were whole."""
        if self._begun is not None:
            self._responses.append(self._begun)
        self._begun = None

    def traces(self) -> Iterator[Trace]:
        """Yield what needed the whole file: items a line, and responses."""
        self._end_cut_stream()
        self._loose.close()
        if self._loose.transcript.drafts:
            yield self._loose.trace("conversation")
        for name, group in self._conversations().items():
            made = _Conversation()
            if self._stream_events:
                made.remarks.add(_STREAM, self._stream_events)
            if name == "responses" and len(group) > 1:
                made.remarks.add(_TOGETHER)
            for response in group:
                _take_response(made, response)
            yield made.trace(name)

    def _conversations(self) -> dict[str, list[dict[str, Any]]]:
        """Return the responses by conversation, each response once."""
        once: dict[str, dict[str, Any]] = {}
        for number, response in enumerate(self._responses):
            once[str(response.get("id") or number)] = response
        chained = any(_link(response) for response in once.values())
        keys: dict[str, str] = {}
        groups: dict[str, list[dict[str, Any]]] = {}
        for own, response in once.items():
            link = _link(response)
            alone = f"conversation {own}" if chained else "responses"
            key = keys.get(link, f"conversation {link}") if link else alone
            keys[own] = key
            groups.setdefault(key, []).append(response)
        return groups


def _link(response: dict[str, Any]) -> str | None:
    """Return what joins a response to others: its conversation or its predecessor."""
    conversation = response.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    link = conversation or response.get("previous_response_id")
    return link if isinstance(link, str) else None


def _take_response(made: _Conversation, response: dict[str, Any]) -> None:
    answer = answer_of(response)
    if answer is None:
        return
    given = response.get("input")
    if isinstance(given, list):
        for item in given:
            if isinstance(item, dict) and str(item.get("type")).endswith(_RESULTS):
                made.transcript.give(_result(item))
    draft = add_answer(made.transcript, answer)
    draft.input = given
    draft.attributes = beside(draft.attributes, offered_tools(response))
    give_built_in(made.transcript, response["output"])


def give_built_in(transcript: Transcript, items: list[Any]) -> None:
    """Join the results of tools that ran at the provider, within the answer."""
    for item in items:
        held = mapping(item)
        if word(held.get("type")) not in _CALLS:
            continue
        output = next(
            (held[key] for key in _OUTPUTS if held.get(key) is not None), None
        )
        error = held.get("error")
        failed = word(held.get("status")) == "failed" or bool(error)
        if output is not None or failed:
            transcript.give(
                ToolResult(
                    output=output,
                    call_id=held.get("call_id") or held.get("id"),
                    status=StepStatus.ERROR if failed else StepStatus.UNSET,
                    error_message=error if isinstance(error, str) else None,
                )
            )


def _take_all(made: _Conversation, items: list[Any], path: str) -> None:
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise RefusedRecord("This is not an item.", f"{path}[{index}]")
    is_reversed = _is_newest_first(items)
    if is_reversed:
        made.remarks.add(_REVERSED)
    for item in reversed(items) if is_reversed else items:
        made.take(item)


def _is_newest_first(items: list[dict[str, Any]]) -> bool:
    """Whether a result stands before its call, as the API lists items by default."""
    results: set[str] = set()
    for item in items:
        kind, call_id = word(item.get("type")), item.get("call_id")
        if not isinstance(call_id, str):
            continue
        if kind in _RESULT_KINDS:
            results.add(call_id)
        elif call_id in results:
            return True
    return False
