"""Scores and feedback that state how a run ended, told from marks of its quality.

A judge's number about an answer is no outcome of the run. Only a score whose name
says so and whose value is a yes or a no is one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from apps.engine.trace import Outcome, OutcomeKind

_LONGEST: Final = 200
_VERDICTS: Final = frozenset(
    {
        "success", "task_success", "passed", "pass", "resolved", "outcome", "verdict",
        "task_completed", "goal_achieved", "end_to_end_success",
    }
)  # fmt: skip
_WORDS: Final = {
    "true": OutcomeKind.PASS, "pass": OutcomeKind.PASS, "passed": OutcomeKind.PASS,
    "success": OutcomeKind.PASS, "resolved": OutcomeKind.PASS, "1": OutcomeKind.PASS,
    "1.0": OutcomeKind.PASS, "yes": OutcomeKind.PASS,
    "false": OutcomeKind.FAIL, "fail": OutcomeKind.FAIL, "failed": OutcomeKind.FAIL,
    "failure": OutcomeKind.FAIL, "unresolved": OutcomeKind.FAIL, "0": OutcomeKind.FAIL,
    "0.0": OutcomeKind.FAIL, "no": OutcomeKind.FAIL,
}  # fmt: skip


def verdict_of(name: Any, value: Any, source: str) -> Outcome | None:
    """Return the outcome that a score states by its name and a yes or no, else `None`.

    A judge's number about a quality of the answer is no outcome of the run.
    """
    if not isinstance(name, str):
        return None
    if name.casefold().replace("-", "_").replace(" ", "_") not in _VERDICTS:
        return None
    kind = _WORDS.get(str(value).casefold())
    return (
        Outcome(kind=kind, label=str(value)[:_LONGEST], source=source) if kind else None
    )


def first_verdict(scores: Iterable[tuple[Any, Any]], field: str) -> Outcome | None:
    """Return the first outcome among scores by name; `field` is where they stand."""
    for name, value in scores:
        told = value[0] if isinstance(value, list) and len(value) == 1 else value
        outcome = verdict_of(name, told, f"{field}.{name}"[:_LONGEST])
        if outcome is not None:
            return outcome
    return None
