"""What stands in a session of Claude Code: answers, tool results, words, subagents."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from apps.engine.reading.recorded import kind_of
from apps.engine.reading.token_counts import whole_number
from apps.engine.trace import StepKind


class Call(msgspec.Struct, kw_only=True):
    """One answer of a model, put together from all lines that carry its id."""

    scope: str
    message_id: Any = None
    model: Any = None
    blocks: list[Any] = []
    usage: Any = None
    stop: Any = None
    at: int | None = None
    end: int | None = None
    resets: bool = False
    error: Any = None
    placeholder: bool = False
    known: set[int] = set()
    offered: list[Any] = []

    def add(self, blocks: list[Any]) -> None:
        """Add the blocks that are not there yet: lines repeat what came before."""
        for block in blocks:
            mark = hash(repr(block))
            if mark not in self.known:
                self.known.add(mark)
                self.blocks.append(block)

    @property
    def is_empty_attempt(self) -> bool:
        """Whether the usage is all zero and no stop reason was recorded."""
        if self.stop is not None or not isinstance(self.usage, dict) or self.error:
            return False
        counts = [
            whole_number(item) for key, item in self.usage.items() if "tokens" in key
        ]
        return bool(counts) and not any(counts)

    def tools(self) -> list[dict[str, Any]]:
        """The blocks that ask for a tool."""
        return [one for one in self.blocks if kind_of(one) in TOOL_BLOCKS]


TOOL_BLOCKS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


class Given(msgspec.Struct, kw_only=True):
    """The result of a tool."""

    scope: str
    call_id: Any
    output: Any
    is_error: Any = None
    at: int | None = None
    facts: dict[str, Any] = {}


class Said(msgspec.Struct, kw_only=True):
    """Anything else that becomes a step: a message, a notice, a retry."""

    scope: str
    kind: StepKind
    native_kind: str
    output: Any
    at: int | None = None
    native_id: Any = None
    error_type: Any = None
    attributes: dict[str, Any] | None = None


class Subagent(msgspec.Struct, kw_only=True):
    """What is known of a subagent; `tool` is the id of the call that started it."""

    agent_id: Any = None
    tool: Any = None
    prompt: Any = None
    agent: Any = None


Event = Call | Given | Said


def text_of(content: Any) -> str:
    """Return the texts of a content, which is a text or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [one.get("text") for one in blocks if isinstance(one, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))
