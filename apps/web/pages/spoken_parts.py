"""What the content of one message says: texts, thoughts, tool calls, marks for files.

Parts are told by their shape, whoever wrote them. A part of an unknown shape stays
JSON, so nothing is lost; whether a text is true or complete is not claimed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

DEEPEST: Final = 12
EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
_MEDIA: Final = {
    "image": "image", "image_url": "image", "input_image": "image",
    "audio": "audio", "input_audio": "audio", "audio_url": "audio",
    "video": "video", "video_url": "video", "file": "file", "input_file": "file",
    "document": "file", "document_url": "file", "binary": "file", "media": "file",
    "blob": "file", "uri": "file",
}  # fmt: skip
# A list of files of a folder has such types too; a part also says where its bytes are.
_MEDIA_KEYS: Final = frozenset(
    {
        "source", "image", "image_url", "input_audio", "audio", "audio_url", "video",
        "video_url", "file", "file_id", "file_data", "file_url", "url", "data", "uri",
        "mediaType", "media_type", "mimeType", "mime_type", "document_url", "modality",
    }
)  # fmt: skip
_BARE_TEXT: Final = frozenset(
    {"text", "thought", "thoughtSignature", "thought_signature"}
)
# Fields that only a tool call has.
_MARKS: Final = frozenset({"tool.name", "toolCallId"})
_NAMES: Final = ("name", "toolName", "tool_name", "tool.name")
_ARGUMENTS: Final = ("arguments", "args", "input", "tool.args", "tool_args")
_RESULTS: Final = ("content", "output", "result", "response", "model_response")
_CALL_IDS: Final = ("call_id", "tool_call_id", "toolCallId", "toolUseId", "id")
_THOUGHTS: Final = (
    "thinking",
    "reasoning",
    "text",
    "reasoningText",
    "summary",
    "content",
)
_SHOWN: Final = frozenset(
    {
        "type", "part_kind", "role", "content", "contents", "parts", "text", "refusal",
        "tool_calls", "function_call", "function", "reasoning", "reasoning_content",
        "thinking", "summary", "message", "kwargs", "data", "lc", "toolInvocation",
        "arguments", *_NAMES, *_ARGUMENTS, *_RESULTS,
    }
)  # fmt: skip


class Heard:
    """Collects what a message says until `most` characters are reached.

    `said` and `thought` hold the pieces in their order, `beside` the names of fields
    that are in no piece, and `is_cut` whether pieces were left out.
    """

    def __init__(self, *, most: int) -> None:
        self.said: list[str] = []
        self.thought: list[str] = []
        self.calls: set[str] = set()
        self.beside: set[str] = set()
        self.is_cut = False
        self.left = most

    def say(self, text: str) -> None:
        """Add a piece that was said."""
        self._add(self.said, text)

    def think(self, text: str) -> None:
        """Add a piece that was only thought."""
        self._add(self.thought, text)

    def note_rest(self, value: dict[str, Any]) -> None:
        """Remember the names of the fields that no piece shows."""
        self.beside |= {
            key
            for key, held in value.items()
            if key not in _SHOWN and held not in EMPTY
        }

    def _add(self, pieces: list[str], text: str) -> None:
        if not text.strip():
            return
        if self.left <= 0 or len(text) > self.left:
            self.is_cut = True
        if self.left > 0:
            pieces.append(text[: self.left])
            # One more for the line break, so that empty pieces come to an end as well.
            self.left -= len(text) + 1


def one_line(value: Any) -> str:
    """A JSON value as compact JSON; a string as it is, nothing for None."""
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


def first_of(value: dict[str, Any], keys: tuple[str, ...]) -> Any:
    """The first of these fields that was recorded."""
    return next((value[key] for key in keys if value.get(key) is not None), None)


def hear_content(content: Any, heard: Heard, depth: int = 0) -> None:
    """Hear a text, a part, or a list of them."""
    if heard.left <= 0:
        heard.is_cut = heard.is_cut or content not in EMPTY
    elif isinstance(content, str):
        heard.say(content)
    elif isinstance(content, list) and depth < DEEPEST:
        for part in content:
            hear_content(part, heard, depth + 1)
    elif isinstance(content, dict) and depth < DEEPEST:
        _hear_part(content, heard, depth + 1)
    elif content is not None:
        heard.say(one_line(content))


def is_part(value: Any) -> bool:
    """Whether a value is a part of a message: a text, a thought, a call, a file."""
    if not isinstance(value, dict):
        return False
    kind = _kind_of(value)
    if kind in _MEDIA:
        return any(value.get(key) is not None for key in _MEDIA_KEYS)
    if kind in _KINDS:
        return True
    if _shape_of(value) or _is_function(value) or not _MARKS.isdisjoint(value):
        return True
    recorded = {key for key, held in value.items() if held is not None}
    return (
        bool(recorded) and recorded <= _BARE_TEXT and isinstance(value.get("text"), str)
    )


def hear_call(part: dict[str, Any], heard: Heard, depth: int = 0) -> None:
    """Hear a tool call as `name(arguments)`, and its result where it is beside it."""
    inner = part.get("toolInvocation")
    call = inner if isinstance(inner, dict) else part
    function = call.get("function")
    source = function if isinstance(function, dict) else call
    name = function if isinstance(function, str) else first_of(source, _NAMES)
    line = f"{one_line(name)}({one_line(first_of(source, _ARGUMENTS))})"
    heard.calls.add(call_key(part, line))
    heard.say(line)
    heard.note_rest(part)
    if call is not part or _kind_of(part).startswith("tool_"):
        result = first_of(call, ("result", "output"))
        if result is not None:
            _hear_result({"content": result}, heard, depth)


def call_key(call: dict[str, Any], line: str = "") -> str:
    """What tells one call from another: its id, or what it asks for."""
    return one_line(first_of(call, _CALL_IDS)) or line


def hear_thought(part: Any, heard: Heard) -> None:
    """Hear a thought, a summary of thoughts, or that it is not readable."""
    texts = _texts(part, 0)
    for text in texts:
        heard.think(text)
    if not texts and part not in EMPTY:
        heard.think("[thinking that is encrypted or left out]")


def _texts(value: Any, depth: int) -> list[str]:
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, list) and depth < DEEPEST:
        return [text for one in value for text in _texts(one, depth + 1)]
    if isinstance(value, dict) and depth < DEEPEST:
        found = (_texts(value[key], depth + 1) for key in _THOUGHTS if key in value)
        return next((texts for texts in found if texts), [])
    return []


def _kind_of(part: dict[str, Any]) -> str:
    kind = part.get("type") or part.get("part_kind")
    return kind.replace("-", "_") if isinstance(kind, str) else ""


def _is_function(part: dict[str, Any]) -> bool:
    """A call by a function's name; the definition of a tool has `parameters`."""
    function = part.get("function")
    if not isinstance(function, dict) or "parameters" in function:
        return False
    return "name" in function and ("arguments" in function or "id" in part)


def _shape_of(part: dict[str, Any]) -> str:
    return next((key for key in _SHAPES if isinstance(part.get(key), dict)), "")


def _hear_part(part: dict[str, Any], heard: Heard, depth: int) -> None:
    kind, shape = _kind_of(part), _shape_of(part)
    if kind in _KINDS:
        _KINDS[kind](part, heard, depth)
    elif kind in _MEDIA:
        _hear_media(part, heard, depth)
    elif shape:
        _SHAPES[shape](part[shape], heard, depth)
        heard.note_rest({key: held for key, held in part.items() if key != shape})
    elif _is_function(part) or not _MARKS.isdisjoint(part):
        hear_call(part, heard, depth)
    elif "parts" in part:
        hear_content(part["parts"], heard, depth)
        heard.note_rest(part)
    elif isinstance(part.get("text"), str):
        _hear_text(part, heard, depth)
    else:
        heard.say(one_line(part))


def _hear_text(part: dict[str, Any], heard: Heard, depth: int) -> None:
    text = first_of(part, ("text", "content", "refusal", "value"))
    if isinstance(text, dict):
        heard.note_rest(text)
        text = first_of(text, ("value", "text")) or one_line(text)
    if text is None:
        heard.say(one_line(part))
    elif part.get("thought") is True:
        hear_thought(text, heard)
    else:
        hear_content(text, heard, depth)
    heard.note_rest(part)


def _hear_thinking(part: dict[str, Any], heard: Heard, _depth: int) -> None:
    hear_thought(part, heard)
    heard.note_rest(part)


def _hear_result(part: dict[str, Any], heard: Heard, depth: int) -> None:
    inner = Heard(most=heard.left)
    hear_content(first_of(part, _RESULTS), inner, depth)
    name = first_of(part, _NAMES)
    words = f"result of {name}" if isinstance(name, str) else "result"
    heard.say(f"{words}: {chr(10).join(inner.said)}")
    heard.is_cut = heard.is_cut or inner.is_cut
    heard.beside |= inner.beside
    heard.note_rest(part)


def _hear_media(part: dict[str, Any], heard: Heard, _depth: int) -> None:
    modality = part.get("modality")
    word = modality if isinstance(modality, str) else _MEDIA.get(_kind_of(part), "file")
    file = part.get("file")
    named = file if isinstance(file, dict) else part
    name = first_of(named, ("filename", "file_name", "title", "name"))
    heard.say(f"[{word} {name}]" if isinstance(name, str) else f"[{word}]")
    heard.note_rest(part)


def _hear_code(part: dict[str, Any], heard: Heard, _depth: int) -> None:
    heard.say(one_line(first_of(part, ("code", "output")) or part))


def _hear_image(_part: dict[str, Any], heard: Heard, _depth: int) -> None:
    heard.say("[image]")


def _hear_nothing(part: dict[str, Any], heard: Heard, _depth: int) -> None:
    heard.note_rest(part)


def _hear_mime(part: dict[str, Any], heard: Heard, _depth: int) -> None:
    mime = one_line(first_of(part, ("mimeType", "mime_type")))
    word = mime.partition("/")[0]
    heard.say(f"[{word if word in {'image', 'audio', 'video'} else 'file'}]")


_Hear = Callable[[dict[str, Any], Heard, int], None]

_KINDS: Final[dict[str, _Hear]] = {
    "text": _hear_text, "input_text": _hear_text, "output_text": _hear_text,
    "summary_text": _hear_text, "refusal": _hear_text, "user_prompt": _hear_text,
    "system_prompt": _hear_text, "retry_prompt": _hear_text,
    "thinking": _hear_thinking, "reasoning": _hear_thinking,
    "redacted_thinking": _hear_thinking, "reasoning_text": _hear_thinking,
    "tool_use": hear_call, "server_tool_use": hear_call, "mcp_tool_use": hear_call,
    "tool_call": hear_call, "function_call": hear_call, "tool_invocation": hear_call,
    "dynamic_tool": hear_call, "custom_tool_call": hear_call, "mcp_call": hear_call,
    "tool_result": _hear_result, "tool_call_response": _hear_result,
    "tool_return": _hear_result, "function_call_output": _hear_result,
    "custom_tool_call_output": _hear_result, "web_search_tool_result": _hear_result,
    "mcp_tool_result": _hear_result, "step_start": _hear_nothing,
}  # fmt: skip

_SHAPES: Final[dict[str, _Hear]] = {
    "functionCall": hear_call, "function_call": hear_call, "toolUse": hear_call,
    "functionResponse": _hear_result, "function_response": _hear_result,
    "toolResult": _hear_result, "reasoningContent": _hear_thinking,
    "inlineData": _hear_mime, "inline_data": _hear_mime, "fileData": _hear_mime,
    "file_data": _hear_mime, "executableCode": _hear_code, "image": _hear_image,
    "executable_code": _hear_code, "codeExecutionResult": _hear_code,
    "code_execution_result": _hear_code,
}  # fmt: skip
