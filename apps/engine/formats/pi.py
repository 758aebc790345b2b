"""Reader of pi sessions (~/.pi/agent/sessions), and of OpenClaw's, which are alike.

The lines form a tree: a second child of the same line is a branch. Steps keep the
order of the file; a branch and a compaction reset the context.

Version 2 keeps an answer without content as an empty one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_items
from apps.engine.reading.pi_messages import add_pi_message, is_pi_message
from apps.engine.reading.recorded import remark_unread, text_in
from apps.engine.reading.session_traces import session_trace
from apps.engine.reading.text_limits import Remarks
from apps.engine.reading.transcript import Draft, Transcript
from apps.engine.trace import StepKind, Trace

_ROLES: Final = frozenset(
    {"user", "assistant", "toolResult", "bashExecution", "custom"}
)
_NOTICES: Final = {
    "compaction": "Times the conversation was compacted, which resets the context: {n}.",
    "branch_summary": "Branches of the conversation that were left: {n}.",
}


class Pi:
    """The format `pi`."""

    slug = "pi"
    label = "pi session"
    version = 2
    description = (
        "A session file of the pi coding agent or of OpenClaw (JSON lines of type "
        "session and message). Every answer has its usage; branches and compactions "
        "reset the context."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first values are lines of a session."""
        return any(map(_is_line, first_items(source)))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each session; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source), nothing="The file holds no line of a pi session."
        )


def _is_line(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    if value.get("type") == "session":
        return {"id", "timestamp", "cwd"} <= value.keys()
    message = value.get("message")
    return (
        value.get("type") == "message"
        and isinstance(message, dict)
        and text_in(message, "role") in _ROLES
    )


def _items(source: Source) -> Iterator[Item]:
    sessions = _Sessions()
    yield from read_each(source, sessions, unroll=True)
    yield from sessions.finished()


class _Sessions:
    """Begins a new session at each header."""

    def __init__(self) -> None:
        self._open = _Session({})

    def __call__(self, record: Record) -> Iterator[Trace]:
        value = record.value
        kind = value.get("type") if isinstance(value, dict) else None
        if not isinstance(kind, str):
            raise RefusedRecord("A line of a session has a type.", "$")
        if kind == "session":
            yield from self.finished()
            self._open = _Session(value)
        else:
            self._open.take(kind, value)

    def finished(self) -> Iterator[Trace]:
        """Yield the trace of the open session, if it has steps."""
        if self._open.made.drafts:
            yield self._open.trace()


class _Session:
    """Collects the lines of one session."""

    def __init__(self, header: dict[str, Any]) -> None:
        self.made = Transcript(Remarks())
        self._header = header
        self._unread: Counter[str] = Counter()
        self._parents: set[str] = set()
        self._resets = False

    def take(self, kind: str, line: dict[str, Any]) -> None:
        """Take one line after the header."""
        self._note_branch(line)
        if kind == "message":
            self._take_message(line)
        elif kind in _NOTICES:
            self.made.remarks.add(_NOTICES[kind])
            self._resets = True
            self._notice(line, kind, line.get("summary"))
        elif kind == "custom_message":
            self._notice(line, kind, line.get("content"))
        else:
            self._unread[kind[:40]] += 1

    def _note_branch(self, line: dict[str, Any]) -> None:
        parent = line.get("parentId")
        if not isinstance(parent, str):
            return
        if parent in self._parents:
            self._resets = True
        self._parents.add(parent)

    def _take_message(self, line: dict[str, Any]) -> None:
        message = line.get("message")
        role = text_in(message, "role")
        if isinstance(message, dict) and is_pi_message(message):
            add_pi_message(
                self.made, message, at=line.get("timestamp"), resets=self._resets
            )
            if role == "assistant":
                self._resets = False
        elif role in {"bashExecution", "custom", "compactionSummary", "branchSummary"}:
            self._notice(line, str(role), message)
        else:
            raise RefusedRecord("The message has no known role.", "$.message.role")

    def _notice(self, line: dict[str, Any], kind: str, output: Any) -> None:
        time = any_time_ns(line.get("timestamp"))
        self.made.add(
            Draft(
                kind=StepKind.SYSTEM,
                start_ns=time,
                end_ns=time,
                native_id=line.get("id"),
                native_kind=kind,
                output=output,
            )
        )

    def trace(self) -> Trace:
        """Return the trace; call it once."""
        remarks = self.made.remarks
        remark_unread(remarks, "Lines", self._unread)
        return session_trace(
            self.made,
            session=self._header.get("id"),
            otherwise="pi session",
            metadata={
                key: self._header[key]
                for key in ("cwd", "version", "parentSession")
                if key in self._header
            },
        )
