"""The pieces of a streamed answer, put together as the API would have answered whole.

Chat completion chunks become a chat completion, the events of Anthropic's stream a
message. Nothing is added that no piece says: usage is there only where a piece had it.
Sources: https://platform.openai.com/docs/api-reference/chat-streaming,
https://docs.anthropic.com/en/api/messages-streaming.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.json_values import embedded
from apps.engine.reading.recorded import listed, mapping, word

Piece = dict[str, Any]

_EVENTS: Final = frozenset(
    {
        "message_start", "content_block_start", "content_block_delta",
        "content_block_stop", "message_delta", "message_stop",
    }
)  # fmt: skip
_GROWS: Final = {
    "text_delta": "text", "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
}  # fmt: skip


def is_chunk(value: Any) -> bool:
    """Whether a value is a chunk of a streamed chat completion."""
    if not isinstance(value, dict):
        return False
    if value.get("object") == "chat.completion.chunk":
        return True
    choices = listed(value.get("choices"))
    return bool(choices) and isinstance(mapping(choices[0]).get("delta"), dict)


def is_message_event(value: Any) -> bool:
    """Whether a value is an event of Anthropic's stream."""
    return (
        isinstance(value, dict)
        and word(value.get("type")) in _EVENTS
        and not value.keys().isdisjoint({"message", "index", "delta", "usage"})
    ) or value in ({"type": "message_stop"}, {"type": "ping"})


class ChunkedCompletion:
    """One chat completion while its chunks are read."""

    def __init__(self) -> None:
        self._whole: Piece = {"object": "chat.completion"}
        self._message: Piece = {"role": "assistant", "content": None}
        self._calls: dict[int, Piece] = {}
        self._finish: Any = None

    def add(self, chunk: Piece) -> None:
        """Add one chunk; the usage that counts is the last one."""
        for key in ("id", "created", "model", "usage"):
            if chunk.get(key) is not None:
                self._whole[key] = chunk[key]
        choices = listed(chunk.get("choices"))
        choice = mapping(choices[0]) if choices else {}
        if choice.get("index") not in (None, 0):
            return
        self._finish = choice.get("finish_reason") or self._finish
        delta = mapping(choice.get("delta"))
        for key in ("content", "reasoning_content", "reasoning", "refusal"):
            if isinstance(delta.get(key), str):
                self._message[key] = (self._message.get(key) or "") + delta[key]
        for call in listed(delta.get("tool_calls")):
            self._call(mapping(call))

    def _call(self, piece: Piece) -> None:
        index = piece.get("index")
        number = index if isinstance(index, int) else len(self._calls)
        held = self._calls.setdefault(number, {"function": {"arguments": ""}})
        held["id"] = held.get("id") or piece.get("id")
        function = mapping(piece.get("function"))
        own = held["function"]
        own["name"] = own.get("name") or function.get("name")
        if isinstance(function.get("arguments"), str):
            own["arguments"] += function["arguments"]

    def whole(self) -> Piece:
        """Return the chat completion that the chunks make."""
        message = self._message
        if self._calls:
            message = message | {"tool_calls": list(self._calls.values())}
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return self._whole | {"choices": [choice]}


def completion_of(chunks: list[Any]) -> Piece:
    """Return the chat completion that a list of chunks makes."""
    made = ChunkedCompletion()
    for chunk in chunks:
        if isinstance(chunk, dict):
            made.add(chunk)
    return made.whole()


class StreamedMessage:
    """One message of Anthropic while the events of its stream are read."""

    def __init__(self, start: Piece) -> None:
        self._message = dict(mapping(start.get("message")))
        self._blocks: dict[Any, Piece] = {}

    def add(self, event: Piece) -> None:
        """Add one event; the usage of a later event replaces what an earlier said."""
        kind = event.get("type")
        delta = mapping(event.get("delta"))
        if kind == "content_block_start":
            block = dict(mapping(event.get("content_block")))
            self._blocks[str(event.get("index"))] = block
        elif kind == "content_block_delta":
            key = _GROWS.get(word(delta.get("type")), "")
            block = self._blocks.setdefault(str(event.get("index")), {"type": "text"})
            if isinstance(delta.get(key), str):
                block[key] = str(block.get(key) or "") + delta[key]
        elif kind == "message_delta":
            self._message["stop_reason"] = delta.get("stop_reason")
            usage = mapping(event.get("usage"))
            known = {key: item for key, item in usage.items() if item is not None}
            if known:
                self._message["usage"] = mapping(self._message.get("usage")) | known

    def whole(self) -> Piece:
        """Return the message that the events make."""
        blocks = []
        for block in self._blocks.values():
            given = block.pop("partial_json", None)
            blocks.append(block | {"input": embedded(given)} if given else block)
        return {"type": "message", "role": "assistant", "stop_reason": None,
                **self._message, "content": blocks}  # fmt: skip


def message_of(events: list[Any]) -> Piece:
    """Return the message that a list of events makes."""
    made = StreamedMessage({})
    for event in events:
        if isinstance(event, dict) and event.get("type") == "message_start":
            made = StreamedMessage(event)
        elif isinstance(event, dict):
            made.add(event)
    return made.whole()
