"""Reader of what `codex exec --json` prints: threads, turns and items.

The stream gives one usage a turn, so the usage of each model call is missing; the
turn's counts are shown in a note. A model call is seen only by its text or reasoning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.codex.calls import Calls, codex_usage
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_items
from apps.engine.reading.recorded import kind_of, remark_unread, text_in
from apps.engine.reading.text_limits import IDENTIFIER, Remarks, clip
from apps.engine.reading.transcript import Draft, Transcript
from apps.engine.trace import OrderSource, StepKind, StepStatus, Trace

_EVENTS: Final = frozenset(
    {
        "thread.started", "turn.started", "turn.completed", "turn.failed",
        "item.started", "item.updated", "item.completed",
    }
)  # fmt: skip
_TOOLS: Final = {
    "command_execution": ("command", "aggregated_output"),
    "file_change": ("changes", "changes"),
    "mcp_tool_call": ("arguments", "result"),
    "collab_tool_call": ("prompt", "agents_states"),
    "web_search": ("query", "action"),
}
_UNASKED: Final = (
    "Tool calls of which the model call that asked is not recorded, because it said "
    "nothing: {n}."
)


class CodexExec:
    """The format `codex-exec`."""

    slug = "codex-exec"
    label = "Codex exec stream (--json)"
    version = 1
    description = (
        "What codex exec --json prints, one event a line. The stream gives tokens for "
        "a whole turn only, so the usage of each model call is missing."
    )

    def recognises(self, source: Source) -> bool:
        """Whether one of the first lines is an event of a thread, turn or item."""
        return any(map(_is_event, first_items(source)))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each thread; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source), nothing="The file holds no event of a Codex run."
        )


def _is_event(value: Any) -> bool:
    if not isinstance(value, dict) or kind_of(value) not in _EVENTS:
        return False
    kind = value["type"]
    if kind == "thread.started":
        return "thread_id" in value
    return kind.startswith("turn.") or isinstance(value.get("item"), dict)


def _items(source: Source) -> Iterator[Item]:
    stream = _Stream()
    yield from read_each(source, stream, unroll=True)
    yield from stream.finished()


class _Stream:
    """Makes a trace of each thread."""

    def __init__(self) -> None:
        self._thread = _Thread(None)

    def __call__(self, record: Record) -> Iterator[Trace]:
        value = record.value
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            raise RefusedRecord("An event has a type.", "$")
        if kind == "thread.started":
            yield from self._turn_over(value.get("thread_id"))
        else:
            self._thread.take(kind, value)

    def _turn_over(self, thread_id: Any) -> Iterator[Trace]:
        if self._thread.thread_id == thread_id:
            return
        yield from self.finished()
        self._thread = _Thread(thread_id)

    def finished(self) -> Iterator[Trace]:
        """Yield the trace of the thread that is open, if it has steps."""
        if self._thread.calls.made.drafts:
            yield self._thread.trace()


class _Thread:
    """Collects the items of one thread."""

    def __init__(self, thread_id: Any) -> None:
        self.thread_id = thread_id
        self.remarks = Remarks()
        self.calls = Calls(Transcript(self.remarks))
        self.calls.made.invocations[0].agent = "codex"
        self._unread: Counter[str] = Counter()
        self._started: dict[str, Draft] = {}
        self._spoke = False
        self._can_ask = False

    def take(self, kind: str, event: dict[str, Any]) -> None:
        """Take one event of the thread."""
        item = event.get("item")
        if kind.startswith("item.") and isinstance(item, dict):
            self._take_item(kind, item)
        elif kind == "turn.started":
            self._end_call()
        elif kind in {"turn.completed", "turn.failed"}:
            self._end_turn(kind, event)
        elif kind == "error":
            self._trouble(event.get("message"), "error", StepStatus.UNSET)
        else:
            self._unread[kind[:40]] += 1

    def _take_item(self, kind: str, item: dict[str, Any]) -> None:
        what = kind_of(item) or text_in(item, "item_type")
        if what in {"reasoning", "agent_message", "assistant_message"}:
            if kind == "item.completed":
                self._take_words(what == "reasoning", item.get("text"))
        elif what is not None and what in _TOOLS:
            self._take_tool(kind, what, item)
        elif what == "error":
            self._trouble(item.get("message"), "item error", StepStatus.UNSET)
        elif kind != "item.updated":
            self._unread[f"item {what}"[:40]] += 1

    def _take_words(self, is_thought: bool, text: Any) -> None:  # noqa: FBT001
        if self._spoke or not self._can_ask:
            # An answer is one message after its reasoning, and then its tools; what
            # comes after either is another call.
            self._end_call()
        self._can_ask = True
        if is_thought:
            self.calls.think(text, None)
        else:
            self.calls.say(text, None)
            self._spoke = True

    def _take_tool(self, kind: str, what: str, item: dict[str, Any]) -> None:
        key = str(item.get("id"))
        given, answer = _TOOLS[what]
        if key not in self._started:
            self._started[key] = self._ask(what, item, item.get(given))
        if kind != "item.completed":
            return
        self._can_ask = False
        draft = self._started.pop(key)
        draft.output = item.get(answer)
        if what == "web_search":
            draft.input = item.get(given)
        draft.status, draft.error_message = _ending(item)

    def _ask(self, what: str, item: dict[str, Any], arguments: Any) -> Draft:
        name = item.get("tool") if "tool" in item else what
        if self._can_ask:
            return self.calls.ask(item, name, arguments, None)
        self.remarks.add(_UNASKED)
        self._end_call()
        draft = self.calls.made.ask(
            name=name, call_id=item.get("id"), arguments=arguments, by=None
        )
        draft.native_kind = what
        return draft

    def _end_call(self) -> None:
        self.calls.close()
        self._spoke = self._can_ask = False

    def _end_turn(self, kind: str, event: dict[str, Any]) -> None:
        self._end_call()
        usage = codex_usage(event.get("usage"), "usage")
        if usage.is_known:
            given = (
                "an unknown number of"
                if usage.input_total is None
                else usage.input_total
            )
            self.remarks.add(
                f"A turn took {given} input and {usage.output_total} output tokens by its "
                "own count; how many each model call took is not recorded."
            )
        if kind == "turn.failed":
            error = event.get("error")
            words = error.get("message") if isinstance(error, dict) else error
            self._trouble(words, "turn.failed", StepStatus.ERROR)
            self.calls.made.invocations[0].status = StepStatus.ERROR

    def _trouble(self, words: Any, kind: str, status: StepStatus) -> None:
        failed = status is StepStatus.ERROR
        self.calls.made.add(
            Draft(
                kind=StepKind.SYSTEM,
                status=status,
                error_type=kind if failed else None,
                error_message=words if failed else None,
                native_kind=kind,
                output=words,
            )
        )

    def trace(self) -> Trace:
        """Return the trace; call it once."""
        self.calls.close()
        remarks = self.remarks
        remark_unread(remarks, "Events", self._unread)
        steps, invocations, _ = self.calls.made.finished()
        thread = clip(self.thread_id, IDENTIFIER, remarks)
        return Trace(
            name=f"thread {thread}" if thread else "Codex thread",
            steps=steps,
            invocations=invocations,
            session=thread,
            order=OrderSource.FILE,
            notes=remarks.sentences(),
        )


def _ending(item: dict[str, Any]) -> tuple[StepStatus, str | None]:
    """Return how a tool ended by its exit code, else by its status."""
    code, status = item.get("exit_code"), text_in(item, "status")
    if isinstance(code, int) and not isinstance(code, bool):
        return (
            (StepStatus.ERROR, f"exit code {code}") if code else (StepStatus.OK, None)
        )
    if status in {"failed", "declined"}:
        error = item.get("error")
        words = error.get("message") if isinstance(error, dict) else error
        return StepStatus.ERROR, words if isinstance(words, str) else str(status)
    return (StepStatus.OK if status == "completed" else StepStatus.UNSET), None
