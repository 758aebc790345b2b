"""Which tools a model call was offered, and which it asked for, where recorded.

Offers stand at many places: in the request, in attributes of the span, in the answer
of an API that repeats its request, at the span of the agent. All that are found for
one call are taken together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from apps.engine.bodies.canonical import opened
from apps.engine.bodies.recorded import REDACTED
from apps.engine.trace import Body

_KEYS: Final = (
    "tools", "functions", "gen_ai.tool.definitions", "mlflow.chat.tools",
    "ai.prompt.tools", "llm.invocation_parameters.tools", "toolConfig",
    "model_request_parameters.function_tools", "model_request_parameters.output_tools",
    "model_request_parameters.native_tools", "toolDefinitions",
)  # fmt: skip
_FLAT: Final = re.compile(
    r"(?:llm\.tools\.\d+\.tool\.json_schema|llm\.request\.functions\.\d+\.name)"
)
_INSIDE: Final = (
    "invocation_params", "metadata", "llm.invocation_parameters", "attributes", "request",
    "modelParameters", "invocation_parameters", "config", "kwargs",
)  # fmt: skip
_DEEP: Final = 3
_DEEPEST: Final = 12
_LISTS: Final = ("tools", "functionDeclarations", "function_declarations")
_ONE: Final = ("function", "custom", "toolSpec", "tool")
_ASKED: Final = frozenset(
    {"tool_call", "tool_use", "function_call", "tool-call", "toolCall", "function"}
)
# Lists of names that are known only while the model works.
_SERVERS: Final = frozenset({"mcp", "mcp_toolset", "tool_search", "namespace"})
_PREFIXES: Final = ("functions.", "default_api.")
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
_MANY: Final = 512
UNNAMED_TOOL: Final = "(unnamed tool)"
"""What readers call a tool that was asked for without a name."""


class Offer(msgspec.Struct, frozen=True):
    """The names of the tools that were offered.

    `built_in` are kinds of a provider's own tools, which have no names. `is_open` is
    true where the list cannot be complete: a server of tools, or a definition that
    could not be read.
    """

    names: frozenset[str]
    built_in: frozenset[str]
    is_open: bool

    def holds(self, name: str) -> bool:
        """Whether a tool of this name was offered, as far as providers rename tools."""
        own = plain_name(name)
        if own in self.names:
            return True
        return any(_is_kind(own, kind) for kind in self.built_in)


def plain_name(name: str) -> str:
    """The name without a provider's prefix, other characters as providers send them."""
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return _ODD.sub("_", name)


def _is_kind(name: str, kind: str) -> bool:
    """`web_search` is offered as `web_search_preview` and as `web_search_20250305`."""
    stem = re.sub(r"(_preview|_\d{4,8})+$", "", kind)
    return bool(stem) and (name.startswith(stem) or stem.startswith(name))


def offer_of(body: Body | None) -> Offer | None:
    """The offer that a body records; `None` where it records none, or an empty one."""
    if body is None:
        return None
    found = _Found()
    for value in (body.attributes, body.input, body.output):
        if isinstance(value, dict):
            for definitions in _definitions(value, 0):
                found.add(definitions, 0)
    return found.offer()


def _definitions(value: dict[str, Any], depth: int) -> Iterator[Any]:
    """The values that hold definitions of tools, near the top of a body."""
    for key, item in value.items():
        if key in _KEYS or _FLAT.fullmatch(key):
            yield item
        elif key in _INSIDE and depth < _DEEP:
            inside = opened(item)
            if isinstance(inside, dict):
                yield from _definitions(inside, depth + 1)


class _Found:
    """Collects names while definitions of any shape are walked."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.built_in: set[str] = set()
        self.is_open = False

    def offer(self) -> Offer | None:
        if not self.names and not self.built_in and not self.is_open:
            return None
        return Offer(frozenset(self.names), frozenset(self.built_in), self.is_open)

    def add(self, value: Any, depth: int) -> None:
        value = opened(value)
        if depth > _DEEPEST or len(self.names) > _MANY:
            self.is_open = True
        elif isinstance(value, str):
            self._add_name(value)
        elif isinstance(value, list | tuple):
            for item in value:
                self.add(item, depth + 1)
        elif isinstance(value, dict):
            self._add_object(value, depth)

    def _add_name(self, text: str) -> None:
        # A definition that was cut, or one that is no JSON, is a long text; a name that
        # holds a mark of redaction may be any.
        if len(text) > 128 or text[:1] in "{[" or REDACTED in text:
            self.is_open = True
        elif text:
            self.names.add(plain_name(text))

    def _add_object(self, value: dict[str, Any], depth: int) -> None:
        kind = value.get("type")
        is_server = isinstance(kind, str) and kind in _SERVERS
        if is_server or "server_url" in value or "server_label" in value:
            self.is_open = True
            return
        for key in (*_LISTS, *_ONE):
            if isinstance(value.get(key), list | dict):
                self.add(value[key], depth + 1)
                return
        name = value.get("name") or value.get("toolName")
        if isinstance(name, str):
            self._add_name(name)
        elif isinstance(kind, str) and kind != "function":
            self.built_in.add(plain_name(kind))
        else:
            self._add_keys(value)

    def _add_keys(self, value: dict[str, Any]) -> None:
        """Names as keys: `{"get_weather": {...}}`, or `{"googleSearch": {}}`."""
        if all(isinstance(item, dict | str) for item in value.values()):
            for key in value:
                self._add_name(str(key))
        else:
            self.is_open = True


def asked_in(output: Any) -> tuple[str, ...]:
    """The names of the tools that an answer asks for, in order, as far as it says."""
    return tuple(_asked(output, 0))


def _asked(value: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, list | tuple):
        for item in value:
            yield from _asked(item, depth + 1)
    elif isinstance(value, dict):
        name = _asked_name(value)
        if name is not None:
            yield name
            return
        for key, item in value.items():
            # What was offered is repeated in some answers; it is not asked for.
            if key not in {"tools", "tool_choice", "arguments", "input", "args"}:
                yield from _asked(item, depth + 1)


def _asked_name(value: dict[str, Any]) -> str | None:
    kind = value.get("type")
    function = value.get("function")
    if isinstance(function, dict) and "arguments" in function:
        value = function
    elif not (isinstance(kind, str) and kind in _ASKED) and (
        "toolCallId" not in value and "toolUseId" not in value
    ):
        return None
    name = value.get("name", value.get("toolName"))
    return name if isinstance(name, str) and name else None


def together(offers: Iterable[Offer | None]) -> Offer | None:
    """Several offers as one; `None` where none of them is recorded."""
    found = [offer for offer in offers if offer is not None]
    if not found:
        return None
    return Offer(
        frozenset().union(*[offer.names for offer in found]),
        frozenset().union(*[offer.built_in for offer in found]),
        any(offer.is_open for offer in found),
    )
