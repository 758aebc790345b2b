"""The names of the tools that a request offers to its model, without what they do.

Lists of definitions are long and repeat with every request, so the names alone are
kept. A provider's own tool without a name is kept by its kind. Where the list cannot be
whole (a server of tools, a definition that cannot be read, more than 512 tools) its
last entry says so, and nobody can say that a tool is missing from it.
Sources: https://platform.openai.com/docs/api-reference/responses/create,
https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/overview,
https://ai.google.dev/api/caching#Tool,
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolConfiguration.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.reading.json_values import embedded
from apps.engine.reading.recorded import mapping, word

KEY: Final = "tools"
_KEYS: Final = ("tools", "functions", "toolConfig", "tool_config")
_SERVERS: Final = ("mcp_servers", "mcpServers")
_LISTS: Final = ("tools", "functionDeclarations", "function_declarations")
_ONE: Final = ("function", "custom", "toolSpec")
_OPEN_KINDS: Final = frozenset({"mcp", "mcp_toolset", "tool_search", "namespace"})
_MOST: Final = 512
_LONGEST: Final = 128
_DEEPEST: Final = 4
# These of Anthropic's tools run code, and the calls of that code have other names.
_RUN_CODE: Final = ("code_execution_", "web_search_20", "web_fetch_20")
_OF_CODE: Final = (
    "code_execution",
    "bash_code_execution",
    "text_editor_code_execution",
)
_MORE: Final = {"more": 1}


def offered_tools(*holders: Any) -> list[Any]:
    """The tools that the first of `holders` with any offers; empty where none does.

    A holder is a request or an object with its fields. The entries are names,
    `{"type": kind}` for a provider's tool without a name, and `{"more": 1}` at the end
    of a list that cannot be whole.
    """
    for holder in holders:
        fields = mapping(holder)
        found: dict[str, Any] = {}
        for key in _KEYS:
            for entry in _entries(embedded(fields.get(key)), 0):
                found.setdefault(repr(entry), entry)
        entries = list(found.values())
        if entries:
            return _bounded(entries, is_open=any(map(fields.get, _SERVERS)))
    return []


def open_ended(offered: list[Any]) -> list[Any]:
    """The same list, marked as one that may lack tools; an empty one stays empty."""
    return _bounded(offered, is_open=True)


def beside(attributes: dict[str, Any] | None, offered: list[Any]) -> Any:
    """Attributes of a model call with what it was offered, where that is recorded."""
    return attributes if not offered else {**(attributes or {}), KEY: offered}


def _bounded(entries: list[Any], *, is_open: bool) -> list[Any]:
    whole = [one for one in entries if one != _MORE]
    is_open = is_open or len(whole) < len(entries) or len(whole) > _MOST
    return [*whole[:_MOST], *([_MORE] if is_open and entries else [])]


def _entries(value: Any, depth: int) -> Iterator[Any]:
    """Yield what a list of definitions of any shape offers."""
    if isinstance(value, str):
        value = embedded(value)
    if isinstance(value, str):
        yield value if 0 < len(value) <= _LONGEST else _MORE
    elif isinstance(value, list) and depth <= _DEEPEST:
        for item in value:
            yield from _entries(item, depth + 1)
    elif isinstance(value, dict) and depth <= _DEEPEST:
        yield from _of_object(value, depth)
    elif value is not None:
        yield _MORE


def _of_object(value: dict[str, Any], depth: int) -> Iterator[Any]:
    kind = word(value.get("type"))
    if kind in _OPEN_KINDS or "server_url" in value or "server_label" in value:
        yield _MORE
        return
    for key in (*_LISTS, *_ONE):
        if isinstance(value.get(key), list | dict):
            yield from _entries(value[key], depth + 1)
            return
    if kind.startswith(_RUN_CODE):
        yield from _OF_CODE
    name = word(value.get("name"))
    if name:
        yield name if len(name) <= _LONGEST else _MORE
    elif kind and kind != "function":
        yield {"type": kind[:_LONGEST]}
    else:
        yield from _of_keys(value)


def _of_keys(value: dict[str, Any]) -> Iterator[Any]:
    """Tools whose names are keys: `{"googleSearch": {}}`."""
    is_named = value and all(isinstance(item, dict) for item in value.values())
    if not is_named:
        yield _MORE
        return
    for key in value:
        yield key[:_LONGEST]
