"""The lines of Claude Code and of tools that write like it, collected for one session.

A line is a user, assistant or system record, a side record, or the result of a run.
This module only collects and groups what stands there; `session` makes the
trace. It does not claim that a model call was billed, only that it was written down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from apps.engine.reading.claude_code.events import (
    TOOL_BLOCKS,
    Call,
    Event,
    Given,
    Said,
    Subagent,
    text_of,
)
from apps.engine.reading.claude_code.offer import offer_in
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.json_gate import RefusedRecord
from apps.engine.reading.recorded import kind_of, text_in
from apps.engine.reading.token_counts import whole_number
from apps.engine.trace import StepKind

MAIN: Final = ""
SYNTHETIC: Final = "<synthetic>"
_AGENT_TOOLS: Final = frozenset({"Task", "Agent"})
_CLEAR: Final = "<command-name>/clear</command-name>"
_TITLES: Final = {
    "summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle",
}  # fmt: skip
_ABOUT: Final = {
    "cwd": "cwd", "gitBranch": "git_branch", "version": "version", "slug": "slug",
    "claude_code_version": "version", "permissionMode": "permission_mode",
    "model": "model",
}  # fmt: skip
_SYSTEM_STEPS: Final = frozenset(
    {
        "compact_boundary", "microcompact_boundary", "api_error", "api_retry",
        "informational", "local_command", "hook_response", "task_started",
        "task_notification", "model_refusal_fallback", "permission_denied",
    }
)  # fmt: skip
_RETRIES: Final = frozenset({"api_error", "api_retry"})


_SERVER_RESULTS: Final = "_tool_result"


class SessionLines:
    """Collects the lines of one session as events, in the order of the file."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.subagents: dict[str, Subagent] = {}
        self.tasks: dict[str, dict[str, Any]] = {}
        self.about: dict[str, Any] = {}
        self.results: list[dict[str, Any]] = []
        self.session: Any = None
        self.unread: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self._calls: dict[Any, Call] = {}
        self._offered: list[Any] = []
        self._seen: set[Any] = set()
        self._answers: set[tuple[str, str]] = set()
        self._chain: dict[Any, str] = {}
        self._prompted: set[Any] = set()
        self._reset: set[str] = set()
        self._takers: Final[dict[str, Callable[[dict[str, Any]], None]]] = {
            "user": self._take_message,
            "assistant": self._take_message,
            "system": self._take_system,
            "result": self.results.append,
            "progress": self._take_progress,
            "attachment": self._take_attachment,
        }

    def take(self, line: dict[str, Any]) -> None:
        """Take one line; raise `RefusedRecord` when it cannot be read."""
        kind = line.get("type")
        if not isinstance(kind, str):
            raise RefusedRecord("The line has no type, so it is no session line.", "$")
        for key, word in _ABOUT.items():
            if isinstance(line.get(key), str):
                self.about.setdefault(word, line[key])
        take = self._takers.get(kind)
        if take is not None:
            take(line)
        elif kind in _TITLES:
            self.about["title"] = line.get(_TITLES[kind])
        else:
            self.unread[kind] += 1

    def _take_message(self, line: dict[str, Any]) -> None:
        message = line.get("message")
        if not isinstance(message, dict):
            raise RefusedRecord("The message is not an object.", "$.message")
        if not isinstance(message.get("content"), str | list):
            raise RefusedRecord("The message has no content.", "$.message.content")
        scope = self.scope_of(line)
        uuid = line.get("uuid")
        if isinstance(uuid, str) and uuid:
            if uuid in self._seen:
                self.counts["repeated"] += 1
                return
            self._seen.add(uuid)
        if line["type"] == "assistant":
            self._take_answer(line, message, scope)
        else:
            self._take_user(line, message, scope)

    def scope_of(self, line: dict[str, Any]) -> str:
        """Return the key of the agent that a line belongs to; `MAIN` is the main one."""
        tool = line.get("parent_tool_use_id")
        if isinstance(tool, str) and tool:
            self.subagents.setdefault(tool, Subagent(tool=tool))
            return tool
        if line.get("isSidechain") is not True:
            return MAIN
        return self._sidechain(line)

    def _sidechain(self, line: dict[str, Any]) -> str:
        uuid, parent = (
            key if isinstance(key, str) else None
            for key in (line.get("uuid"), line.get("parentUuid"))
        )
        agent_id = line.get("agentId")
        if isinstance(agent_id, str) and agent_id:
            scope = f"agent {agent_id}"
        elif parent in self._chain:
            scope = self._chain[parent]
        else:
            scope = f"sidechain {uuid or len(self.subagents)}"
        if uuid:
            self._chain[uuid] = scope
        if scope not in self.subagents:
            message = line.get("message")
            content = message.get("content") if isinstance(message, dict) else None
            self.subagents[scope] = Subagent(agent_id=agent_id, prompt=text_of(content))
        return scope

    def _take_answer(
        self, line: dict[str, Any], message: dict[str, Any], scope: str
    ) -> None:
        at = any_time_ns(line.get("timestamp"))
        content = message["content"]
        blocks = content if isinstance(content, list) else [content]
        failed = line.get("isApiErrorMessage") is True or bool(line.get("error"))
        if message.get("model") == SYNTHETIC and not failed:
            self._say(line, scope, StepKind.SYSTEM, content)
            return
        call = self._call(line, message, scope)
        if failed:
            error = line.get("error")
            call.error = error if isinstance(error, str) and error else "api_error"
        call.model = call.model or message.get("model")
        call.stop = message.get("stop_reason") or call.stop
        call.usage = _later(call.usage, message.get("usage"))
        call.end = at if at is not None else call.end
        call.add(blocks)
        for block in blocks:
            self._note_block(block, scope, at)

    def _call(self, line: dict[str, Any], message: dict[str, Any], scope: str) -> Call:
        key = message.get("id") or line.get("requestId")
        known = self._calls.get(key) if isinstance(key, str) else None
        if known is not None:
            return known
        call = Call(
            scope=scope,
            message_id=message.get("id"),
            at=any_time_ns(line.get("timestamp")),
            resets=scope in self._reset,
            # What a subagent may call is a choice of its own that no line tells.
            offered=self._offered if scope == MAIN else [],
        )
        self._reset.discard(scope)
        self.events.append(call)
        if isinstance(key, str):
            self._calls[key] = call
        return call

    def _note_block(self, block: Any, scope: str, at: int | None) -> None:
        kind = kind_of(block)
        if kind in TOOL_BLOCKS and text_in(block, "name") in _AGENT_TOOLS:
            given = block.get("input")
            if isinstance(block.get("id"), str) and isinstance(given, dict):
                self.tasks.setdefault(block["id"], given)
        if isinstance(kind, str) and kind.endswith(_SERVER_RESULTS):
            self._give(block, scope, at, {})

    def _take_user(
        self, line: dict[str, Any], message: dict[str, Any], scope: str
    ) -> None:
        content = message["content"]
        blocks = content if isinstance(content, list) else []
        results = [one for one in blocks if kind_of(one) == "tool_result"]
        at = any_time_ns(line.get("timestamp"))
        facts = line.get("toolUseResult", line.get("tool_use_result"))
        for block in results:
            self._give(block, scope, at, facts if isinstance(facts, dict) else {})
        rest: Any = content
        if results:
            rest = [one for one in blocks if kind_of(one) != "tool_result"]
        if rest or not results:
            self._take_words(line, rest, scope)

    def _take_words(self, line: dict[str, Any], content: Any, scope: str) -> None:
        written_by_tool = any(
            line.get(key) is True
            for key in ("isMeta", "isSynthetic", "isCompactSummary")
        )
        if line.get("isCompactSummary") is True:
            self._forget(scope, "compactions")
        elif text_of(content).lstrip().startswith(_CLEAR):
            self._forget(scope, "clears")
        elif not written_by_tool:
            self._note_rewind(line, scope)
        kind = StepKind.SYSTEM if written_by_tool else StepKind.USER_MESSAGE
        self._say(line, scope, kind, content)

    def _note_rewind(self, line: dict[str, Any], scope: str) -> None:
        """A second prompt after the same line: the conversation was taken back to it."""
        parent = line.get("parentUuid")
        if not isinstance(parent, str):
            return
        if parent in self._prompted:
            self._forget(scope, "rewinds")
        self._prompted.add(parent)

    def _forget(self, scope: str, count: str) -> None:
        # A boundary line and the summary after it stand for the same compaction.
        if scope not in self._reset:
            self.counts[count] += 1
        self._reset.add(scope)

    def _give(
        self, block: dict[str, Any], scope: str, at: int | None, facts: dict[str, Any]
    ) -> None:
        call_id, output = block.get("tool_use_id"), block.get("content")
        if scope != MAIN and self._is_told_again(call_id, output):
            self.counts["repeated"] += 1
            return
        agent_id = facts.get("agentId")
        started = self.subagents.get(f"agent {agent_id}")
        if isinstance(agent_id, str) and isinstance(call_id, str):
            if started is None:
                started = self.subagents[f"agent {agent_id}"] = Subagent(
                    agent_id=agent_id
                )
            started.tool = started.tool or call_id
        self.events.append(
            Given(
                scope=scope,
                call_id=call_id,
                output=output,
                is_error=block.get("is_error"),
                at=at,
                facts=facts,
            )
        )

    def _is_told_again(self, call_id: Any, output: Any) -> bool:
        """A subagent's result may stand in its own file and in the session's."""
        mark = (str(call_id), repr(output)[:2000])
        known = mark in self._answers
        self._answers.add(mark)
        return known

    def _take_system(self, line: dict[str, Any]) -> None:
        subtype = text_in(line, "subtype")
        if subtype == "init":
            self._offered = offer_in(line)
            return
        if subtype not in _SYSTEM_STEPS:
            self.unread[
                f"system/{subtype}" if isinstance(subtype, str) else "system"
            ] += 1
            return
        scope = self.scope_of(line)
        if subtype == "compact_boundary":
            self._forget(scope, "compactions")
        if subtype in _RETRIES:
            self.counts["retries"] += 1
        self._say(line, scope, StepKind.SYSTEM, line.get("content"))

    def _take_progress(self, line: dict[str, Any]) -> None:
        """Take the message of a subagent that is reported while it works."""
        data = line.get("data")
        inner = data.get("message") if isinstance(data, dict) else None
        if not isinstance(inner, dict) or kind_of(inner) not in {"user", "assistant"}:
            self.unread["progress"] += 1
            return
        agent_id = data.get("agentId") if isinstance(data, dict) else None
        told = {**inner, "isSidechain": True, "agentId": agent_id}
        told.setdefault("timestamp", line.get("timestamp"))
        self._take_message(told)
        started = self.subagents.get(f"agent {agent_id}")
        if started is not None:
            started.tool = started.tool or line.get("parentToolUseID")

    def _take_attachment(self, line: dict[str, Any]) -> None:
        attachment = line.get("attachment")
        if not isinstance(attachment, dict):
            raise RefusedRecord("The attachment is not an object.", "$.attachment")
        queued = attachment.get("type") == "queued_command"
        prompt = attachment.get("prompt") if queued else None
        is_prompt = queued and not text_of(prompt).startswith("<task-notification>")
        kind = StepKind.USER_MESSAGE if is_prompt else StepKind.SYSTEM
        self._say(line, self.scope_of(line), kind, prompt or attachment)

    def _say(
        self, line: dict[str, Any], scope: str, kind: StepKind, output: Any
    ) -> None:
        words = [line.get("subtype"), line.get("type")]
        attributes = {
            key: line[key]
            for key in (
                "attempt", "max_retries", "retry_delay_ms", "error_status",
                "retryAttempt", "maxRetries", "retryInMs", "compactMetadata",
                "compact_metadata", "hook_name", "exit_code", "outcome", "summary",
                "description", "status", "level",
            )
            if line.get(key) is not None
        }  # fmt: skip
        error = line.get("error")
        self.events.append(
            Said(
                scope=scope,
                kind=kind,
                native_kind=next(
                    (one for one in words if isinstance(one, str)), "line"
                ),
                output=output,
                at=any_time_ns(line.get("timestamp")),
                native_id=line.get("uuid"),
                error_type=error if isinstance(error, str) else None,
                attributes=attributes,
            )
        )


def _later(known: Any, new: Any) -> Any:
    """The usage with the larger output: the lines of one answer repeat or grow it."""
    if not isinstance(new, dict):
        return known
    if not isinstance(known, dict):
        return new
    one, other = (whole_number(each.get("output_tokens")) or 0 for each in (known, new))
    return new if other >= one else known
