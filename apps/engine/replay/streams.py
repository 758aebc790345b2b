"""Answers that come as a stream of server-sent events, put together as one answer.

Nothing is added that no event says. A stream that stops before the answer ended is not
an answer. Sources: https://html.spec.whatwg.org/multipage/server-sent-events.html,
https://platform.openai.com/docs/api-reference/chat-streaming and /responses-streaming.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.reading.recorded import listed, mapping
from apps.engine.replay.answer_gate import AnswerGate, BadAnswer
from apps.engine.replay.turns import Api

_LINE_ENDS: Final = re.compile(r"\r\n|\n|\r")
_GROWING: Final = ("content", "reasoning_content", "reasoning", "refusal")
_MOST_CALLS: Final = 1_000
_DONE: Final = "[DONE]"
_LAST: Final = frozenset(
    {"response.completed", "response.incomplete", "response.failed"}
)


class CutOff(Exception):
    """The stream ended before its answer did; the message is a sentence."""


class EventLines:
    """Takes bytes and gives the data of each event as it becomes complete."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest: list[str] = []
        self._data: list[str] = []

    def feed(self, raw: bytes, *, is_last: bool = False) -> Iterator[str]:
        """Yield the data of events that end in these bytes; raises `BadAnswer`.

        With `is_last` an event that was not closed by a blank line ends as well.
        """
        try:
            text = self._decoder.decode(raw, final=is_last)
        except UnicodeDecodeError:
            raise BadAnswer("The stream is not UTF-8.") from None
        self._rest.append(text)
        if is_last or "\n" in text or "\r" in text:
            yield from self._events("".join(self._rest), is_last=is_last)

    def _events(self, text: str, *, is_last: bool) -> Iterator[str]:
        # A carriage return at the very end may be half of a line break.
        held = "\r" if text.endswith("\r") and not is_last else ""
        lines = _LINE_ENDS.split(text[: len(text) - len(held)])
        self._rest = [lines.pop() + held]
        if is_last:
            lines += [self._rest.pop(), ""]
        for line in lines:
            if line:
                self._line(line)
            elif self._data:
                yield "\n".join(self._data)
                self._data = []

    def _line(self, line: str) -> None:
        name, _, value = line.removeprefix("\ufeff").partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))


class AnswerStream:
    """One streamed answer while its bytes arrive."""

    def __init__(self, api: Api) -> None:
        self._lines = EventLines()
        self._gate = AnswerGate()
        is_chat = api is Api.CHAT_COMPLETIONS
        self._made: _Chunks | _Events = _Chunks() if is_chat else _Events()

    def feed(self, raw: bytes) -> bool:
        """Take bytes; whether the answer is whole now. Raises `BadAnswer`."""
        for data in self._lines.feed(raw):
            self._event(data)
        return self._made.is_whole

    def _event(self, data: str) -> None:
        if self._made.is_whole:
            return
        if data.strip() == _DONE:
            self._made.is_whole = True
        elif data.strip():
            self._made.add(mapping(self._gate.value(data)))

    def whole(self) -> dict[str, Any]:
        """The answer as it would have come in one piece.

        An error that came as an event is `{"error": ...}`. Raises `CutOff` or
        `BadAnswer`.
        """
        for data in self._lines.feed(b"", is_last=True):
            self._event(data)
        made = self._made.whole()
        if made is None:
            raise CutOff("The stream ended before the answer did.")
        return made

    def notes(self) -> tuple[str, ...]:
        """What had to be replaced in its JSON, a sentence each."""
        return self._gate.notes()


class _Chunks:
    """A chat completion out of its chunks. Pieces of texts are joined only once."""

    def __init__(self) -> None:
        self.is_whole = False
        self._head: dict[str, Any] = {"object": "chat.completion"}
        self._texts: dict[str, list[str]] = {}
        self._calls: dict[int, dict[str, Any]] = {}
        self._finish: Any = None
        self._error: Any = None
        self._has_chunks = False

    def add(self, chunk: dict[str, Any]) -> None:
        """Take one chunk; the usage that counts is the last one."""
        if chunk.get("error"):
            self._error, self.is_whole = chunk["error"], True
            return
        for key in ("id", "created", "model", "usage"):
            if chunk.get(key) is not None:
                self._head[key] = chunk[key]
        for choice in map(mapping, listed(chunk.get("choices"))):
            if choice.get("index") in (None, 0):
                self._choice(choice)

    def _choice(self, choice: dict[str, Any]) -> None:
        self._has_chunks = True
        self._finish = choice.get("finish_reason") or self._finish
        delta = mapping(choice.get("delta"))
        for key in _GROWING:
            if isinstance(delta.get(key), str):
                self._texts.setdefault(key, []).append(delta[key])
        for call in map(mapping, listed(delta.get("tool_calls"))):
            self._call(call)

    def _call(self, piece: dict[str, Any]) -> None:
        index = piece.get("index")
        number = index if type(index) is int else len(self._calls)
        if number not in self._calls and len(self._calls) >= _MOST_CALLS:
            raise BadAnswer(f"The answer asks for more than {_MOST_CALLS:,} tools.")
        held = self._calls.setdefault(number, {"id": None, "name": None, "pieces": []})
        function = mapping(piece.get("function"))
        held["id"] = held["id"] or piece.get("id")
        held["name"] = held["name"] or function.get("name")
        if isinstance(function.get("arguments"), str):
            held["pieces"].append(function["arguments"])

    def whole(self) -> dict[str, Any] | None:
        """The chat completion; `None` where it did not come to its end."""
        if self._error is not None:
            return {"error": self._error}
        if self._finish is None and not (self.is_whole and self._has_chunks):
            return None
        message: dict[str, Any] = {"role": "assistant", "content": None}
        message |= {key: "".join(pieces) for key, pieces in self._texts.items()}
        if self._calls:
            message["tool_calls"] = [_whole_call(one) for one in self._calls.values()]
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return self._head | {"choices": [choice]}


def _whole_call(held: dict[str, Any]) -> dict[str, Any]:
    function = {"name": held["name"], "arguments": "".join(held["pieces"])}
    return {"id": held["id"], "type": "function", "function": function}


class _Events:
    """A Response out of its events: the last one holds it whole."""

    def __init__(self) -> None:
        self.is_whole = False
        self._response: dict[str, Any] | None = None
        self._items: list[Any] = []
        self._error: Any = None

    def add(self, event: dict[str, Any]) -> None:
        """Take one event."""
        kind = event.get("type")
        if kind == "error" or ("error" in event and not isinstance(kind, str)):
            self._error, self.is_whole = event.get("error") or event, True
        elif kind == "response.output_item.done":
            self._items.append(event.get("item"))
        elif kind in _LAST:
            self._response, self.is_whole = mapping(event.get("response")), True

    def whole(self) -> dict[str, Any] | None:
        """The Response; items that came before stand in where the last has none."""
        if self._error is not None:
            return {"error": self._error}
        if self._response is None:
            return None
        own = listed(self._response.get("output"))
        return self._response | {"output": own or self._items}
