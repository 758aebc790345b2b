"""Steps of events that are neither calls nor tools, for both generations of events."""

from __future__ import annotations

from typing import Any

from apps.engine.reading.local_times import told_ns
from apps.engine.reading.openhands.calls import Calls
from apps.engine.reading.transcript import Draft
from apps.engine.trace import StepKind


class PlainSteps:
    """Adds plain steps to the transcript; `unread` counts kinds that make no step.

    `owners` are the invocations that are open, the innermost last.
    """

    def __init__(self, calls: Calls) -> None:
        self.unread: dict[str, int] = {}
        self.owners = [0]
        self._made = calls.made

    def add(
        self,
        event: dict[str, Any],
        kind: StepKind,
        *,
        name: Any = None,
        output: Any = None,
    ) -> Draft:
        """Add the step of an event and return its draft."""
        draft = Draft(
            kind=kind,
            invocation=self.owners[-1],
            name=name,
            start_ns=self.moment(event),
            native_id=event.get("id"),
            native_kind=event.get("kind")
            or event.get("action")
            or event.get("observation"),
            output=output,
        )
        self._made.add(draft)
        return draft

    def moment(self, event: dict[str, Any]) -> int | None:
        """Return when an event happened."""
        return told_ns(event.get("timestamp"), self._made.remarks)

    def count(self, kind: str) -> None:
        """Count an event that makes no step."""
        self.unread[kind] = self.unread.get(kind, 0) + 1
