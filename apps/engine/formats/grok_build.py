"""Reader of Grok Build chat histories (chat_history.jsonl): one entry a line.

Neither usage nor times are recorded in the history. Reasoning and tools that ran on
the server come on lines of their own before the answer that they belong to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.json_values import embedded
from apps.engine.reading.recorded import kind_of, plain_text, remark_unread, text_in
from apps.engine.reading.session_traces import session_trace
from apps.engine.reading.text_limits import NAME, Remarks, clip
from apps.engine.reading.transcript import Draft, ToolResult, Transcript
from apps.engine.trace import ModelCall, StepKind, StepStatus, Trace

_MARKS: Final = frozenset(
    {"model_id", "synthetic_reason", "prompt_index", "tool_call_id"}
)
_TYPES: Final = frozenset(
    {"system", "user", "assistant", "reasoning", "backend_tool_call", "tool_result"}
)


class GrokBuild:
    """The format `grok-build`."""

    slug = "grok-build"
    label = "Grok Build chat history"
    version = 1
    description = (
        "A chat_history.jsonl of Grok Build, one entry a line, the whole file one "
        "session. Token usage and times are not recorded in it."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first values are entries with a mark that Grok Build writes."""
        values = first_values(source)
        return (
            bool(values) and all(map(_is_entry, values)) and any(map(_is_own, values))
        )

    def read(self, source: Source) -> Iterator[Item]:
        """Yield the trace of the session; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source), nothing="The file holds no entry of a chat history."
        )


def _is_entry(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and kind_of(value) in _TYPES
        and "message" not in value
        and not {"content", "kind", "summary"}.isdisjoint(value)
    )


def _is_own(value: dict[str, Any]) -> bool:
    return not _MARKS.isdisjoint(value) or value["type"] == "backend_tool_call"


def _items(source: Source) -> Iterator[Item]:
    history = _History()
    yield from read_each(source, history, unroll=False)
    if history.made.drafts:
        yield history.trace()


class _History:
    """Collects the entries of one session."""

    def __init__(self) -> None:
        self.made = Transcript(Remarks())
        self._open: int | None = None
        self._unread: Counter[str] = Counter()

    def __call__(self, record: Record) -> Iterator[Trace]:
        entry = record.value
        kind = entry.get("type") if isinstance(entry, dict) else None
        if not isinstance(kind, str):
            raise RefusedRecord("An entry has a type.", "$")
        if kind in {"reasoning", "backend_tool_call"}:
            self._take_part(kind, entry)
        elif kind == "assistant":
            self._take_answer(entry)
        elif kind == "tool_result":
            self._open = None
            self.made.give(
                ToolResult(
                    output=plain_text(entry.get("content")),
                    call_id=entry.get("tool_call_id"),
                    native_kind=kind,
                )
            )
        elif kind in {"user", "system"}:
            self._take_words(kind, entry)
        else:
            self._unread[kind[:40]] += 1
        yield from ()

    def _take_words(self, kind: str, entry: dict[str, Any]) -> None:
        self._open = None
        reason = text_in(entry, "synthetic_reason")
        by_user = kind == "user" and reason in {None, "interjection"}
        self.made.add(
            Draft(
                kind=StepKind.USER_MESSAGE if by_user else StepKind.SYSTEM,
                native_kind=reason or kind,
                output=plain_text(entry.get("content")),
            )
        )

    def _call(self) -> Draft:
        if self._open is None:
            self._open = self.made.add(
                Draft(
                    kind=StepKind.MODEL_CALL, native_kind="assistant", call=ModelCall()
                )
            )
        return self.made.drafts[self._open]

    def _take_part(self, kind: str, entry: dict[str, Any]) -> None:
        draft = self._call()
        if kind == "reasoning":
            draft.reasoning = plain_text(entry.get("summary"))
            return
        tool = entry.get("kind")
        tool = tool if isinstance(tool, dict) else {}
        asked = self.made.ask(
            name=tool.get("tool_type"),
            call_id=tool.get("id"),
            arguments=tool.get("action"),
            by=self._open,
        )
        asked.native_kind = kind
        done = tool.get("status") == "completed"
        asked.status = StepStatus.OK if done else StepStatus.UNSET

    def _take_answer(self, entry: dict[str, Any]) -> None:
        draft = self._call()
        model = clip(entry.get("model_id"), NAME, self.made.remarks)
        draft.name, draft.output = model, plain_text(entry.get("content"))
        draft.call = ModelCall(model=model)
        calls = entry.get("tool_calls")
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, dict):
                self.made.ask(
                    name=call.get("name"),
                    call_id=call.get("id"),
                    arguments=embedded(call.get("arguments")),
                    by=self._open,
                )
        self._open = None

    def trace(self) -> Trace:
        """Return the trace; call it once."""
        remarks = self.made.remarks
        remark_unread(remarks, "Entries", self._unread)
        return session_trace(self.made, otherwise="Grok Build session")
