"""Scores of a Langfuse trace: labels for people, and rarely the outcome of the run."""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.platform_rows import Row, opened, opened_list
from apps.engine.reading.recorded import first_of
from apps.engine.reading.recorded_verdicts import first_verdict
from apps.engine.trace import Outcome

_KEPT: Final = ("name", "value", "stringValue", "dataType", "source", "comment")


def scores_of(trace: Row) -> tuple[dict[str, Any], Outcome | None]:
    """Return the labels that the scores of a trace make, and its outcome if one is."""
    told = opened(trace.get("scores"))
    if isinstance(told, dict):
        return ({"scores": told} if told else {}), first_verdict(told.items(), "scores")
    whole = [one for one in opened_list(told) if isinstance(one, dict)]
    labels = [
        {key: one[key] for key in _KEPT if one.get(key) not in (None, "")}
        for one in whole
    ]
    own = {
        str(one.get("name")): first_of(one, ("stringValue", "value"))
        for one in whole
        if one.get("observationId") is None
    }
    return ({"scores": labels} if labels else {}), first_verdict(own.items(), "scores")
