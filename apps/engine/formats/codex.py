"""Reader of Codex rollouts: the session files under ~/.codex/sessions.

Each line is {timestamp, type, payload}; before 2025-09 the payloads stood bare, and
the first versions wrote one object {session, items}. The total of the session is
compared with the sum of the calls, never added to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from apps.engine.format import Item, Note, Source
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.codex.calls import Calls, codex_usage
from apps.engine.reading.codex.outputs import content_of, ending_of
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.json_values import embedded
from apps.engine.reading.recorded import kind_of, plain_text, remark_unread, text_in
from apps.engine.reading.run_totals import remark_total
from apps.engine.reading.text_limits import IDENTIFIER, Remarks, clip
from apps.engine.reading.transcript import Draft, ToolResult, Transcript
from apps.engine.trace import (
    ModelCall,
    OrderSource,
    StepKind,
    StepStatus,
    Trace,
    Usage,
    Via,
)

_LINES: Final = frozenset(
    {
        "session_meta", "turn_context", "response_item", "event_msg", "compacted",
        "world_state", "token_usage_record", "inter_agent_communication",
    }
)  # fmt: skip
_ITEMS: Final = frozenset(
    {
        "message", "reasoning", "function_call", "function_call_output",
        "local_shell_call", "custom_tool_call", "custom_tool_call_output",
    }
)  # fmt: skip
_CALLS: Final = {
    "function_call": "arguments", "custom_tool_call": "input",
    "local_shell_call": "action", "web_search_call": "action",
    "tool_search_call": "arguments", "image_generation_call": "revised_prompt",
}  # fmt: skip
_OUTPUTS: Final = frozenset(
    {"function_call_output", "custom_tool_call_output", "tool_search_output"}
)
_FORKED: Final = (
    "The file begins with the history of another session, from which it was forked."
)
_ABOUT: Final = ("cwd", "originator", "cli_version", "source", "git", "forked_from_id")


def _is_rollout_line(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and kind_of(value) in _LINES
        and isinstance(value.get("payload"), dict)
    )


def _is_bare_head(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"id", "timestamp"} <= value.keys()
        and ("instructions" in value or "git" in value)
        and value.keys().isdisjoint({"type", "messages", "role"})
    )


def _is_first_form(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("session"), dict)
        and isinstance(value.get("items"), list)
        and "id" in value["session"]
    )


class CodexRollout:
    """The format `codex`."""

    slug = "codex"
    label = "Codex session (rollout)"
    version = 1
    description = (
        "A session file of Codex CLI (rollout-<time>-<id>.jsonl) in its present and "
        "its older forms. Each model call has the usage of its own line; reasoning is "
        "kept where it is not encrypted."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first values are lines of a rollout."""
        values = first_values(source)
        if any(map(_is_rollout_line, values)):
            return True
        return bool(values) and (_is_bare_head(values[0]) or _is_first_form(values[0]))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield the trace of the session; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source), nothing="The file holds no line of a Codex session."
        )


def _items(source: Source) -> Iterator[Item]:
    rollout = _Rollout()
    yield from read_each(source, rollout, unroll=False)
    if rollout.calls.made.drafts:
        yield rollout.trace()


class _Rollout:
    """Collects the lines of one session into a trace."""

    def __init__(self) -> None:
        self.remarks = Remarks()
        self.calls = Calls(Transcript(self.remarks))
        self.about: dict[str, Any] = {}
        self.session: Any = None
        self._total: Any = None
        self._last_total: Any = None
        self._has_events = False
        self._unread: Counter[str] = Counter()
        self._times: list[int] = []
        self._takers: Final[dict[str, Callable[[dict[str, Any], int | None], None]]] = {
            "session_meta": self._take_meta,
            "turn_context": self._take_context,
            "response_item": self._take_item,
            "event_msg": self._take_event,
            "compacted": self._take_compacted,
            "token_usage_record": self._take_usage_record,
        }

    def __call__(self, record: Record) -> Iterator[Note]:
        """Take one record of the file."""
        value = record.value
        if not isinstance(value, dict):
            raise RefusedRecord("A line of a Codex session is an object.", "$")
        if _is_first_form(value):
            self._take_meta(value["session"], None)
            for item in value["items"]:
                if isinstance(item, dict):
                    self._take_item(item, any_time_ns(item.get("timestamp")))
                else:
                    self._unread["item that is no object"] += 1
            yield from ()
            return
        at = any_time_ns(value.get("timestamp"))
        if at is not None:
            self._times.append(at)
        self._take_line(value, at)

    def _take_line(self, value: dict[str, Any], at: int | None) -> None:
        kind, payload = kind_of(value), value.get("payload")
        if isinstance(payload, dict) and kind is not None:
            take = self._takers.get(kind)
            if take is None:
                self._unread[kind] += 1
            else:
                take(payload, at)
        elif _is_bare_head(value):
            self._take_meta(value, at)
        elif kind in _ITEMS or kind in _CALLS:
            self._take_item(value, at)
        elif "record_type" in value or kind is not None:
            self._unread[str(kind or "state")] += 1
        else:
            raise RefusedRecord("This is no line of a Codex session.", "$")

    def _take_meta(self, meta: dict[str, Any], _at: int | None) -> None:
        if self.session is not None:
            # A fork begins with the history of the session that it left.
            if meta.get("id") != self.session:
                self.remarks.add(_FORKED)
            return
        self.session = meta.get("id")
        self.about = {key: meta[key] for key in _ABOUT if meta.get(key) is not None}
        self.calls.turn.provider = meta.get("model_provider")
        root = self.calls.made.invocations[0]
        root.agent = meta.get("agent_nickname") or meta.get("agent_role") or "codex"
        source = meta.get("source")
        if isinstance(source, dict) and "subagent" in source:
            root.via = Via.SUBAGENT

    def _take_context(self, context: dict[str, Any], _at: int | None) -> None:
        self.calls.turn.model = context.get("model") or self.calls.turn.model
        self.calls.close()

    def _take_item(self, item: dict[str, Any], at: int | None) -> None:
        kind = kind_of(item) or ("message" if "role" in item else None)
        if kind == "message":
            self._take_message(item, at)
        elif kind == "reasoning":
            told = item.get("summary") or item.get("content")
            self.calls.think(plain_text(told), at)
        elif kind in _OUTPUTS:
            self._take_output(item, at)
        elif kind in _CALLS:
            name = item.get("name") or kind.removesuffix("_call")
            draft = self.calls.ask(item, name, item.get(_CALLS[kind]), at)
            if kind == "web_search_call" and item.get("status") == "completed":
                draft.status = StepStatus.OK
        else:
            self._unread[f"response_item/{kind}"[:60]] += 1

    def _take_message(self, item: dict[str, Any], at: int | None) -> None:
        role, content = item.get("role"), plain_text(item.get("content"))
        if role == "assistant":
            self.calls.say(content, at)
            return
        self.calls.close()
        self.calls.made.add(
            Draft(
                kind=StepKind.USER_MESSAGE if role == "user" else StepKind.SYSTEM,
                start_ns=at,
                end_ns=at,
                native_id=item.get("id"),
                native_kind=role,
                output=content,
            )
        )

    def _take_output(self, item: dict[str, Any], at: int | None) -> None:
        output = embedded(item.get("output", item.get("tools")))
        status, code = ending_of(output)
        self.calls.give(
            ToolResult(
                output=content_of(output),
                call_id=item.get("call_id"),
                status=status,
                error_message=None if code is None else f"exit code {code}",
                end_ns=at,
                native_kind=item.get("type"),
            )
        )

    def _take_event(self, event: dict[str, Any], at: int | None) -> None:
        kind = kind_of(event)
        if kind == "token_count":
            self._take_count(event)
        elif kind in {"exec_command_end", "patch_apply_end", "mcp_tool_call_end"}:
            self._take_end(event, event.get("call_id"), at)
        elif kind == "item_completed" and isinstance(event.get("item"), dict):
            self._take_end(event["item"], event["item"].get("id"), at)
        elif kind in {"error", "stream_error", "turn_aborted"}:
            self._take_trouble(event, str(kind), at)
        elif kind == "thread_rolled_back":
            self._forget("Times the conversation was taken back: {n}.")
        elif kind not in _SAID_ELSEWHERE:
            self._unread[f"event_msg/{kind}"[:60]] += 1

    def _take_end(self, event: dict[str, Any], call_id: Any, at: int | None) -> None:
        code, status = event.get("exit_code"), text_in(event, "status")
        good = event.get("success")
        if isinstance(code, int) and not isinstance(code, bool):
            good = code == 0
        elif status in {"completed", "failed", "declined"}:
            good = status == "completed"
        if isinstance(event.get("result"), dict) and "Err" in event["result"]:
            good = False
        if isinstance(good, bool):
            words = f"exit code {code}" if isinstance(code, int) else status
            ending = StepStatus.OK if good else StepStatus.ERROR
            self.calls.ended(call_id, ending, None if good else words, at)

    def _take_trouble(self, event: dict[str, Any], kind: str, at: int | None) -> None:
        if kind == "stream_error":
            self.remarks.add("Failed requests to the model that were tried again: {n}.")
        self.calls.close()
        self.calls.made.add(
            Draft(
                kind=StepKind.SYSTEM,
                start_ns=at,
                end_ns=at,
                status=StepStatus.ERROR if kind == "error" else StepStatus.UNSET,
                error_type=text_in(event, "codex_error_info") or kind,
                error_message=event.get("message") or event.get("reason"),
                native_kind=kind,
                output=event.get("message") or event.get("reason"),
            )
        )

    def _take_count(self, event: dict[str, Any]) -> None:
        info = event.get("info")
        if not isinstance(info, dict):
            return
        total = info.get("total_token_usage")
        # The same total again is a new look at the rate limits, not another call.
        if total is not None and _key(total) == self._last_total:
            return
        self._note_total(total)
        usage = codex_usage(info.get("last_token_usage"), "info.last_token_usage")
        self.calls.pay(usage)

    def _take_usage_record(self, payload: dict[str, Any], _at: int | None) -> None:
        self._note_total(payload.get("thread_token_usage"))
        self.calls.pay(
            codex_usage(payload.get("usage"), "usage"), payload.get("response_id")
        )

    def _note_total(self, total: Any) -> None:
        if isinstance(total, dict):
            self._total, self._last_total = total, _key(total)

    def _take_compacted(self, payload: dict[str, Any], at: int | None) -> None:
        self._forget(
            "Times the conversation was compacted, which resets the context: {n}."
        )
        self.calls.made.add(
            Draft(
                kind=StepKind.SYSTEM,
                start_ns=at,
                end_ns=at,
                native_kind="compacted",
                output=payload.get("message"),
            )
        )

    def _forget(self, words: str) -> None:
        self.remarks.add(words)
        self.calls.close()
        self.calls.resets = True

    def trace(self) -> Trace:
        """Return the trace; call it once."""
        remarks = self.remarks
        self.calls.close()
        self._compare()
        remark_unread(remarks, "Lines", self._unread)
        steps, invocations, _ = self.calls.made.finished()
        session = clip(self.session, IDENTIFIER, remarks)
        return Trace(
            name=f"session {session}" if session else "Codex session",
            steps=steps,
            invocations=invocations,
            session=session,
            start_ns=min(self._times, default=None),
            end_ns=max(self._times, default=None),
            order=OrderSource.FILE,
            metadata=self.about,
            notes=remarks.sentences(),
        )

    def _compare(self) -> None:
        told = codex_usage(self._total, "total")
        calls = [one.call for one in self.calls.made.drafts]
        usages = [one.usage for one in calls if isinstance(one, ModelCall)]
        for part in ("input", "output"):
            remark_total(
                self.remarks,
                "session",
                f"{part} tokens",
                told=getattr(told, f"{part}_total"),
                found=_sum(usages, f"{part}_total"),
            )


_SAID_ELSEWHERE: Final = frozenset(
    {
        "user_message", "agent_message", "agent_reasoning", "task_started",
        "task_complete", "turn_started", "turn_complete", "exec_command_begin",
        "mcp_tool_call_begin", "patch_apply_begin", "web_search_begin",
        "web_search_end", "agent_reasoning_section_break", "context_compacted",
    }
)  # fmt: skip


def _key(total: Any) -> Any:
    return sorted(total.items(), key=str) if isinstance(total, dict) else None


def _sum(usages: list[Usage], field: str) -> int:
    return sum(getattr(usage, field) or 0 for usage in usages)
