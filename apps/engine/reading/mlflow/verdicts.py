"""Feedback and expectations of MLflow traces: labels, and rarely an outcome.

A judge's opinion of one quality (relevance, tone) is no verdict of the run. Only
feedback about the whole trace, under a name that means the result, with a plain yes
or no, is one; where such verdicts disagree there is none.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.trace import Outcome, OutcomeKind

_NAMES: Final = frozenset(
    {
        "outcome", "success", "successful", "pass", "passed", "task_success", "correct",
        "correctness", "is_correct", "resolved", "goal_achieved", "task_completion",
    }
)  # fmt: skip
_YES: Final = frozenset({"yes", "true", "pass", "passed", "correct", "success"})
_NO: Final = frozenset({"no", "false", "fail", "failed", "incorrect", "failure"})
_RANKS: Final = ("HUMAN", "CODE", "LLM_JUDGE", "AI_JUDGE")


def labels_of(assessments: Any) -> dict[str, Any]:
    """Return all assessments as labels, by what they are; empty without any."""
    found: dict[str, list[Any]] = {}
    for one in _objects(assessments):
        kind = next((key for key in ("expectation", "feedback") if one.get(key)), None)
        found.setdefault(f"{kind}s" if kind else "assessments", []).append(one)
    return dict(found)


def outcome_of(assessments: Any) -> tuple[Outcome | None, tuple[str, ...]]:
    """Return the recorded verdict of the whole trace, and a note where there are two.

    People come before code, and code before judges; the first rank that has a verdict
    decides.
    """
    verdicts = [one for one in map(_verdict, _objects(assessments)) if one]
    for rank in (*_RANKS, None):
        ranked = [verdict for verdict in verdicts if _rank(verdict[0]) == rank]
        if not ranked:
            continue
        kinds = {kind for _, kind in ranked}
        if len(kinds) > 1:
            return None, (
                "Feedback on the whole trace disagrees (pass and fail), so the outcome "
                "is unknown.",
            )
        return _outcome(*ranked[0]), ()
    return None, ()


def _objects(assessments: Any) -> list[dict[str, Any]]:
    if not isinstance(assessments, list):
        return []
    return [one for one in assessments if isinstance(one, dict)]


def _name(one: dict[str, Any]) -> str:
    name = one.get("assessment_name") or one.get("name")
    return name if isinstance(name, str) else ""


def _rank(one: dict[str, Any]) -> str | None:
    source = one.get("source")
    kind = source.get("source_type") if isinstance(source, dict) else None
    return kind if kind in _RANKS else None


def _verdict(one: dict[str, Any]) -> tuple[dict[str, Any], OutcomeKind] | None:
    feedback = one.get("feedback")
    if not isinstance(feedback, dict) or feedback.get("error"):
        return None
    if one.get("span_id") or one.get("valid") is False:
        return None
    if _name(one).casefold() not in _NAMES:
        return None
    word = str(feedback.get("value")).casefold()
    if word in _YES:
        return one, OutcomeKind.PASS
    return (one, OutcomeKind.FAIL) if word in _NO else None


def _outcome(one: dict[str, Any], kind: OutcomeKind) -> Outcome:
    return Outcome(
        kind=kind,
        label=str(one["feedback"]["value"])[:200],
        source=f"assessments.{_name(one)[:80]}",
    )
