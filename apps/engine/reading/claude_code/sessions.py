"""Lines of Claude Code sorted into the sessions that a file holds.

A session file may continue an earlier session, whose lines then hang on its chain of
parents; a line without a parent under a new session id begins a session of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Rejected
from apps.engine.reading.claude_code.lines import SessionLines
from apps.engine.reading.claude_code.sdk import as_line
from apps.engine.reading.claude_code.session import trace_of_session
from apps.engine.reading.json_gate import Record, RefusedRecord
from apps.engine.reading.json_words import excerpt
from apps.engine.trace import Trace

# Sessions written one after another are given out as the file goes on.
_MOST_OPEN: Final = 8


class Sessions:
    """Takes the records of one file; `traces` gives what is left at its end."""

    def __init__(self, *, merge_attempts: bool = False) -> None:
        self._merge = merge_attempts
        self._open: dict[str, SessionLines] = {}
        self._aliases: dict[str, str] = {}
        self._current = ""
        self._made = 0

    def __call__(self, record: Record) -> Iterator[Item]:
        """Take one record: a line, or an object that holds a list of lines."""
        value = record.value
        inner = lines_in(value)
        if inner is None:
            yield from self.take(value)
            return
        for index, line in enumerate(inner):
            try:
                yield from self.take(line)
            except RefusedRecord as refusal:
                place = f"{record.place}, $.loglines[{index}]{refusal.path[1:]}"
                yield Rejected(place, refusal.reason, excerpt(str(line)[:300]))

    def take(self, value: Any) -> Iterator[Trace]:
        """Take one line; yield a session that is complete for all that is known."""
        line = as_line(value)
        key = self._session_of(line)
        if key not in self._open and len(self._open) >= _MOST_OPEN:
            yield self._trace(next(iter(self._open)))
        lines = self._open.pop(key, None) or SessionLines()
        self._open[key] = lines
        self._current = key
        if lines.session is None and key:
            lines.session = key
        lines.take(line)

    def traces(self) -> Iterator[Trace]:
        """Yield the traces of the sessions that are still open, in file order."""
        for key in list(self._open):
            trace = self._trace(key)
            if trace.steps:
                yield trace

    def _trace(self, key: str) -> Trace:
        self._made += 1
        return trace_of_session(
            self._open.pop(key),
            name=f"session {self._made}",
            merge_attempts=self._merge,
        )

    def _session_of(self, line: dict[str, Any]) -> str:
        own = line.get("session_id", line.get("sessionId"))
        if not isinstance(own, str) or not own:
            return self._current
        if own in self._open:
            return own
        if own in self._aliases:
            return self._aliases[own]
        if self._begins(line) or not self._open:
            return own
        if self._current == "":
            # The lines before the first that names its session belong to it.
            self._open[own] = self._open.pop("")
            self._current = own
            return own
        self._aliases[own] = self._current
        self._open[self._current].counts["aliases"] += 1
        return self._current

    def _begins(self, line: dict[str, Any]) -> bool:
        if "session_id" in line:
            return self._current != ""
        return (
            "parentUuid" in line and line["parentUuid"] is None and self._current != ""
        )


def lines_in(value: Any) -> list[Any] | None:
    """Return the lines of an object that holds a whole session, else `None`."""
    inner = value.get("loglines") if isinstance(value, dict) else None
    return inner if isinstance(inner, list) else None
