"""Readers of Claude Code: session files, output streams, and folders of sessions.

Both shapes hold the same records. A session file has times, a chain of parents and
subagents beside it; a stream (`--output-format stream-json`, the Agent SDK) begins
with an `init` line and ends with a result. Version 2 keeps the names of the tools that
an `init` line offers the main agent, and an answer without content as an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from apps.engine.format import Folder, Item, Source
from apps.engine.reading.claude_code.folder import groups_of, items_of_group
from apps.engine.reading.claude_code.sdk import sdk_kind
from apps.engine.reading.claude_code.sessions import Sessions, lines_in
from apps.engine.reading.json_gate import demand_a_trace, read_each
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.recorded import kind_of

_SIDE_LINES: Final = {
    "summary": "leafUuid",
    "file-history-snapshot": "snapshot",
    "queue-operation": "operation",
    "attachment": "attachment",
    "progress": "parentToolUseID",
    "custom-title": "customTitle",
    "ai-title": "aiTitle",
    "permission-mode": "permissionMode",
    "last-prompt": "lastPrompt",
}
_NOTHING: Final = "The file holds no line of a Claude Code session."


def _first_lines(source: Source) -> list[Any]:
    values = first_values(source)
    first = values[0] if values else None
    if isinstance(first, list):
        return first[:3]
    return (lines_in(first) or values)[:3]


def _is_message_line(value: Any) -> bool:
    if kind_of(value) not in {"user", "assistant"}:
        return False
    message = value.get("message")
    return isinstance(message, dict) and isinstance(message.get("content"), str | list)


def _is_session_line(value: Any) -> bool:
    kind = kind_of(value)
    if _is_message_line(value):
        return True
    if kind == "system":
        return "sessionId" in value and "uuid" in value
    return isinstance(kind, str) and _SIDE_LINES.get(kind, "type of") in value


def _is_stream_line(value: Any) -> bool:
    if sdk_kind(value) is not None:
        return True
    kind = kind_of(value)
    if not isinstance(value, dict) or "session_id" not in value:
        return _is_message_line(value) and "parent_tool_use_id" in value
    if kind in {"system", "result"}:
        return isinstance(value.get("subtype"), str)
    return _is_message_line(value)


def _items(source: Source) -> Iterator[Item]:
    sessions = Sessions()
    yield from read_each(source, sessions, unroll=True)
    yield from sessions.traces()


class ClaudeStream:
    """The format `claude-code-stream`."""

    slug = "claude-code-stream"
    label = "Claude Code stream (stream-json)"
    version = 2
    description = (
        "What Claude Code prints with --output-format stream-json, as lines or as a "
        "list, and messages of the Claude Agent SDK. Its model calls have no times; "
        "the totals of its result line are compared with their sum."
    )

    def recognises(self, source: Source) -> bool:
        """Whether one of the first lines is of a stream."""
        return any(map(_is_stream_line, _first_lines(source)))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each session; `UnreadableTrace` when there is none."""
        return demand_a_trace(_items(source), nothing=_NOTHING)


class ClaudeCode:
    """The format `claude-code`."""

    slug = "claude-code"
    label = "Claude Code session"
    version = 2
    description = (
        "A session file of Claude Code (~/.claude/projects/<project>/<session>.jsonl). "
        "Lines of one answer are one model call; compaction, /clear and rewinding "
        "reset the context."
    )

    def recognises(self, source: Source) -> bool:
        """Whether one of the first lines is of a session file."""
        return any(map(_is_session_line, _first_lines(source)))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each session; `UnreadableTrace` when there is none."""
        return demand_a_trace(_items(source), nothing=_NOTHING)


class ClaudeCodeFolder:
    """The format `claude-code-folder`."""

    slug = "claude-code-folder"
    label = "Claude Code session with subagents"
    version = 2
    description = (
        "A session file of Claude Code in an archive, with the agent-<id>.jsonl files "
        "of its subagents. All are one trace, each subagent under the tool call that "
        "started it."
    )

    def groups(self, folder: Folder) -> Iterator[tuple[str, ...]]:
        """Yield each session file with the files of its subagents, if it has any."""
        return groups_of(folder)

    def read_group(self, folder: Folder, names: tuple[str, ...]) -> Iterator[Item]:
        """Yield the trace of a session with its subagents."""
        nothing = f"{PurePosixPath(names[0]).name} holds no session."
        return demand_a_trace(items_of_group(folder, names), nothing=nothing)
