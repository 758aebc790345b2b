"""Messages of any recorded request as those of chat completions, which all targets take.

What a request means is kept: who said what, which tools were asked for and what they
answered. Reasoning is left out, because it is not sent again; a message that cannot be
told is counted, so that its request can be kept as it was recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from apps.engine.bodies.canonical import opened

_ROLES: Final = {
    "system": "system", "SystemMessage": "system", "developer": "developer",
    "user": "user", "human": "user", "HumanMessage": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant",
    "AIMessage": "assistant", "AIMessageChunk": "assistant", "tool-call": "assistant",
    "tool": "tool", "function": "tool", "ToolMessage": "tool", "tool-response": "tool",
    "FunctionMessage": "tool",
}  # fmt: skip
_LISTS: Final = ("messages", "input", "contents", "prompt", "input_messages")
_SYSTEMS: Final = (
    "system", "instructions", "system_instruction", "systemInstruction", "system_prompt",
    "gen_ai.system_instructions", "llm.invocation_parameters.instructions",
)  # fmt: skip
_HOLDERS: Final = ("llm.invocation_parameters", "invocation_params", "config")
_TEXTS: Final = frozenset({"text", "input_text", "output_text", ""})
_ASKS: Final = frozenset(
    {"tool_call", "tool_use", "function_call", "toolCall", "tool-call"}
)
_ANSWERS: Final = frozenset(
    {"tool_result", "tool_call_response", "tool-result", "function_call_output"}
)
_THOUGHTS: Final = frozenset({"thinking", "reasoning", "redacted_thinking", "thought"})
_IDS: Final = ("tool_call_id", "call_id", "tool_use_id", "toolCallId", "id")
_DEEPEST: Final = 8


class Chat(msgspec.Struct, frozen=True):
    """Messages as `role`, `content` and what belongs to calls of tools.

    `left_out` counts what stands among the messages and is none that can be told.
    """

    messages: tuple[dict[str, Any], ...]
    left_out: int = 0


def chat_of(request: Any, attributes: dict[str, Any] | None = None) -> Chat:
    """The messages of a recorded request, with the system's own in front.

    `request` is a text, a message, a list of them or an object that holds one;
    `attributes` are those of the model call, where some record the instructions.
    Empty where nothing is recorded. Never raises for a JSON value.
    """
    taken = _Taken()
    request = opened(request)
    taken.add_request(request, 0)
    if not any(one["role"] in {"system", "developer"} for one in taken.messages):
        own = _instructions(request) or _instructions(attributes)
        if own:
            taken.messages.insert(0, {"role": "system", "content": own})
    return Chat(tuple(taken.messages), taken.left_out)


def said(role: str, content: Any) -> Iterator[dict[str, Any]]:
    """What a user or a system said as messages; none where it is empty."""
    taken = _Taken()
    taken.add_message({"role": role, "content": opened(content)}, 0)
    yield from taken.messages


def is_definition(value: Any) -> bool:
    """Whether a message is none but the definition of a tool, as Langfuse has them."""
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, dict) or content.get("type") != "function":
        return False
    return isinstance(content.get("function"), dict)


def _instructions(holder: Any) -> str:
    """The instructions that stand beside the messages of a request."""
    if not isinstance(holder, dict):
        return ""
    for key in _SYSTEMS:
        if text := _plain(_parts_of(opened(holder.get(key)))):
            return text
    for key in _HOLDERS:
        inside = opened(holder.get(key))
        if isinstance(inside, dict) and (text := _instructions(inside)):
            return text
    return ""


class _Taken:
    """Collects messages; gives calls of tools ids where none are recorded."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.left_out = 0
        self._waiting: list[str] = []
        self._numbered = 0

    def add_request(self, value: Any, depth: int) -> None:
        if value is None or depth > _DEEPEST:
            return
        if isinstance(value, str):
            self._say("user", [value])
        elif isinstance(value, list | tuple):
            for item in value:
                if isinstance(item, list | tuple):
                    self.add_request(item, depth + 1)
                else:
                    self.add_message(item, depth)
        elif isinstance(value, dict):
            held = next((value[key] for key in _LISTS if value.get(key)), None)
            if held is not None and not _role_of(value):
                self.add_request(opened(held), depth + 1)
            else:
                self.add_message(value, depth)

    def add_message(self, value: Any, depth: int) -> None:
        """Take one message in, as one or several of chat completions."""
        if isinstance(value, str):
            self._say("user", [value])
        elif not isinstance(value, dict):
            self.left_out += 1
        elif not is_definition(value) and _kind(value) not in _THOUGHTS:
            self._add_object(value, depth)

    def _add_object(self, value: dict[str, Any], depth: int) -> None:
        inside = next(
            (value[k] for k in ("kwargs", "data") if isinstance(value.get(k), dict)),
            None,
        )
        role = _role_of(value)
        if inside is not None and depth <= _DEEPEST:
            self.add_message({**inside, "role": role}, depth + 1)
        elif role == "tool":
            held = [_answered(one) for one in _parts_of(_content(value))]
            for one in [one for one in held if one is not None] or [value]:
                self._answer(one)
        elif role:
            self._say_all(role, value)
        elif _kind(value) in _ASKS | _ANSWERS:
            self._say_all("assistant", {"content": [value]})
        else:
            self.left_out += 1

    def _say_all(self, role: str, value: dict[str, Any]) -> None:
        """The words of a message, the tools it asks for and the answers it holds."""
        parts: list[Any] = []
        asked: list[tuple[str, Any, Any] | None] = []
        answers: list[dict[str, Any]] = []
        for part in _parts_of(_content(value)):
            if not isinstance(part, dict) or _is_text(part):
                parts.append(part)
            elif _kind(part) in _THOUGHTS or part.get("thought") is True:
                continue
            elif (call := _asked(part)) is not None:
                asked.append(call)
            elif (answer := _answered(part)) is not None:
                answers.append(answer)
            else:
                parts.append(part)
        more = opened(value.get("tool_calls"))
        asked += [_call_in(one) for one in (more if isinstance(more, list) else [])]
        self._say(role, parts, [call for call in asked if call is not None])
        for answer in answers:
            self._answer(answer)

    def _say(
        self,
        role: str,
        parts: list[Any],
        asked: Iterable[tuple[str, Any, Any]] = (),
    ) -> None:
        content = _joined(parts)
        calls = [self._numbered_call(*call) for call in asked]
        if not content and not calls:
            return
        if not calls:
            self.messages.append({"role": role, "content": content})
            return
        self._waiting += [call["id"] for call in calls]
        before = self.messages[-1] if self.messages else {}
        # One answer that asks for several tools comes in several items of some APIs,
        # and an answer to each of its calls has to follow it at once.
        if not content and before.get("role") == "assistant":
            before["tool_calls"] = [*before.get("tool_calls", []), *calls]
        else:
            self.messages.append(
                {"role": "assistant", "content": content or None, "tool_calls": calls}
            )

    def _numbered_call(self, name: str, arguments: Any, own: Any) -> dict[str, Any]:
        self._numbered += 1
        return {
            "id": own if isinstance(own, str) and own else f"call_{self._numbered}",
            "type": "function",
            "function": {"name": name, "arguments": _as_text(arguments, "{}")},
        }

    def _answer(self, value: dict[str, Any]) -> None:
        """What a tool answered; it goes to the call waiting longest without an id."""
        own = next((value[k] for k in _IDS if isinstance(value.get(k), str)), "")
        if own not in self._waiting and self._waiting and not own:
            own = self._waiting[0]
        if own in self._waiting:
            self._waiting.remove(own)
        keys = ("content", "output", "result", "response", "parts", "contents")
        held = next((value[key] for key in keys if value.get(key) is not None), "")
        parts = _parts_of(held) if isinstance(held, list) else [held]
        texts = [_text_in(part) for part in parts]
        content = "\n".join(one for one in texts if one)
        self.messages.append(
            {"role": "tool", "tool_call_id": own or "call_0", "content": content}
        )


def _role_of(value: dict[str, Any]) -> str:
    """The role of a message; "" where it has none that is known."""
    path = value.get("id")
    last = path[-1] if isinstance(path, list) and path else None
    for name in (value.get("role"), value.get("type"), last):
        if isinstance(name, str) and name in _ROLES:
            is_item = name == "function" and isinstance(value.get("function"), dict)
            return "" if is_item else _ROLES[name]
    return ""


def _kind(value: dict[str, Any]) -> str:
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def _content(value: dict[str, Any]) -> Any:
    keys = ("content", "parts", "contents", "text")
    return next((value[key] for key in keys if value.get(key) is not None), None)


def _parts_of(content: Any) -> list[Any]:
    if content is None:
        return []
    if isinstance(content, dict):
        inside = content.get("parts")
        return list(inside) if isinstance(inside, list) else [content]
    return list(content) if isinstance(content, list | tuple) else [content]


def _is_text(part: dict[str, Any]) -> bool:
    if _kind(part) not in _TEXTS or part.get("thought") is True:
        return False
    return any(isinstance(part.get(key), str) for key in ("text", "content"))


def _asked(part: dict[str, Any]) -> tuple[str, Any, Any] | None:
    """A tool that a part asks for: its name, the arguments, the id of the call."""
    for key in ("functionCall", "function_call"):
        if isinstance(part.get(key), dict):
            return _call_in(part[key])
    return _call_in(part) if _kind(part) in _ASKS else None


def _call_in(value: Any) -> tuple[str, Any, Any] | None:
    if not isinstance(value, dict):
        return None
    function = value.get("function")
    held = function if isinstance(function, dict) else value
    name = held.get("name", held.get("toolName"))
    if not isinstance(name, str) or not name:
        return None
    keys = ("arguments", "input", "args")
    arguments = next((held[key] for key in keys if held.get(key) is not None), None)
    own = next(
        (value[key] for key in ("call_id", "id", "toolCallId") if value.get(key)), None
    )
    return name, arguments, own


def _answered(part: Any) -> dict[str, Any] | None:
    if not isinstance(part, dict):
        return None
    for key in ("functionResponse", "function_response"):
        if isinstance(part.get(key), dict):
            return {**part[key], "id": part[key].get("id") or ""}
    return part if _kind(part) in _ANSWERS else None


def _joined(parts: list[Any]) -> Any:
    """Texts as one text; a list of parts where others stand among them."""
    if all(not isinstance(part, dict) or _is_text(part) for part in parts):
        return _plain(parts)
    return [
        {"type": "text", "text": _text_in(part)}
        if not isinstance(part, dict) or _is_text(part)
        else part
        for part in parts
    ]


def _plain(parts: list[Any]) -> str:
    return "\n".join(text for text in map(_text_in, parts) if text)


def _text_in(part: Any) -> str:
    if isinstance(part, dict) and _is_text(part):
        text = part.get("text")
        return text if isinstance(text, str) else str(part["content"])
    return _as_text(part, "")


def _as_text(value: Any, nothing: str) -> str:
    """A value as a text: a text as it is, anything else as JSON."""
    if value is None or value == "":
        return nothing
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
