"""The trace of a session log out of its transcript, in the order of the file."""

from __future__ import annotations

from typing import Any

from apps.engine.reading.recorded import time_range
from apps.engine.reading.text_limits import IDENTIFIER, clip
from apps.engine.reading.transcript import Transcript
from apps.engine.trace import OrderSource, Trace


def session_trace(
    made: Transcript,
    *,
    session: Any = None,
    otherwise: str,
    metadata: dict[str, Any] | None = None,
) -> Trace:
    """Return the trace of all that was added; call it once, when nothing is to come.

    It is named after the id of its session; `otherwise` names one without an id. It
    lasts from the first to the last recorded time of its steps.
    """
    own_id = clip(session, IDENTIFIER, made.remarks)
    steps, invocations, _ = made.finished()
    start, end = time_range(steps)
    return Trace(
        name=f"session {own_id}" if own_id else otherwise,
        steps=steps,
        invocations=invocations,
        session=own_id,
        start_ns=start,
        end_ns=end,
        order=OrderSource.FILE,
        metadata=metadata or {},
        notes=made.remarks.sentences(),
    )
