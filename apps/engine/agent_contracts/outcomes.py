"""What the end-to-end outcome must be: green, red, or unknown, from typed values only.

A label is never parsed: “did not pass”, “FAIL (0 passes)” and “95/100” say nothing here
unless somebody declared that very label. An outcome between nothing and everything is
unknown until an expectation says which score passes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from apps.engine.agent_contracts.plain import refuse_unless_plain
from apps.engine.agent_contracts.unread import Unread
from apps.engine.agent_contracts.wording import shown
from apps.engine.contracts.patterns import LONGEST_PATTERN, Names
from apps.engine.contracts.spec import BadDefinition, in_words
from apps.engine.trace import Outcome, OutcomeKind

MOST_LABELS: Final = 50
LONGEST_LABEL: Final = 200
MOST_POINTS: Final = 10**12
_TOLERANCE: Final = 1e-9


class Expect(StrEnum):
    """Which outcome is green."""

    SUCCESS = "pass"
    SHARE = "share"
    POINTS = "points"
    LABEL = "label"


class TraceColour(StrEnum):
    """What an outcome says; unknown is never green."""

    GREEN = "green"
    RED = "red"
    UNKNOWN = "unknown"


class OutcomeExpectation(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Which outcome of a task is green.

    `pass` asks for a recorded pass or a full score, `share` for a score of at least
    `at_least` of the possible one (above 0, at most 1), `points` for that many points,
    `label` for one of these recorded `labels`, letter by letter.
    """

    expect: Expect
    at_least: int | float | None = None
    labels: tuple[str, ...] = ()


class OutcomeVerdict(msgspec.Struct, frozen=True):
    """The colour of an outcome, and why, as a sentence."""

    colour: TraceColour
    sentence: str


def decoded_expectation(value: Any) -> OutcomeExpectation:
    """The expectation in a JSON value; raises `BadDefinition` with field and sentence."""
    refuse_unless_plain(value)
    try:
        found = msgspec.convert(value, OutcomeExpectation)
    except (msgspec.ValidationError, RecursionError) as error:
        raise in_words(error) from None
    _refuse_bound(found)
    _refuse_labels(found)
    return found


def _refuse_bound(found: OutcomeExpectation) -> None:
    bound = found.at_least
    if found.expect not in {Expect.SHARE, Expect.POINTS}:
        if bound is not None:
            raise BadDefinition(
                f"“{found.expect}” takes no “at_least”.", field="at_least"
            )
        return
    if bound is None:
        raise BadDefinition(f"“{found.expect}” needs “at_least”.", field="at_least")
    if found.expect is Expect.SHARE and not 0 < bound <= 1:
        raise BadDefinition("A share is above 0 and at most 1.", field="at_least")
    if abs(bound) > MOST_POINTS:
        raise BadDefinition(
            f"Points lie between -{MOST_POINTS:,} and {MOST_POINTS:,}.",
            field="at_least",
        )


def _refuse_labels(found: OutcomeExpectation) -> None:
    if found.expect is not Expect.LABEL:
        if found.labels:
            raise BadDefinition(f"“{found.expect}” takes no “labels”.", field="labels")
        return
    if not 1 <= len(found.labels) <= MOST_LABELS:
        raise BadDefinition(f"Declare 1 to {MOST_LABELS} labels.", field="labels")
    if any(not 0 < len(label) <= LONGEST_LABEL for label in found.labels):
        raise BadDefinition(
            f"A label has 1 to {LONGEST_LABEL} characters.", field="labels"
        )


def expectation_for(
    task: str | None, expectations: Mapping[str, OutcomeExpectation | Unread]
) -> OutcomeExpectation | Unread | None:
    """The expectation of a task among names and patterns (`*`, `?`, `|`).

    The exact name comes before patterns, a pattern with more letters of its own before
    one with fewer, then the first of the alphabet. What has no task has the one of "*".
    """
    if task is not None and task in expectations:
        return expectations[task]
    fitting = [
        pattern
        for pattern in expectations
        if len(pattern) <= LONGEST_PATTERN and Names(pattern).take(task or "")
    ]
    if not fitting:
        return None
    return expectations[min(fitting, key=lambda one: (-_letters(one), one))]


def _letters(pattern: str) -> int:
    return sum(char not in "*?|" for char in pattern)


def expectation_sentence(expectation: OutcomeExpectation) -> str:
    """What is expected, as one sentence."""
    if expectation.expect is Expect.SUCCESS:
        return "The outcome must be a pass, or a full score."
    if expectation.expect is Expect.LABEL:
        listed = ", ".join(shown(label) for label in expectation.labels)
        return f"The label of the outcome must be one of {listed}."
    if expectation.expect is Expect.SHARE:
        return (
            f"The score must be at least {expectation.at_least:g} of the possible one."
        )
    return f"The score must be at least {expectation.at_least:,} points."


def outcome_verdict(
    outcome: Outcome, expectation: OutcomeExpectation | Unread | None = None
) -> OutcomeVerdict:
    """Green, red or unknown, with a sentence; unknown where what is expected is unread.

    Without an expectation a pass and a full score are green, a fail and a score of
    nothing (0 or less, where a full score is recorded) are red: whatever share somebody
    asked for, it would come out like that. All else is unknown.
    """
    if isinstance(expectation, Unread):
        return _unknown(expectation.sentence)
    if expectation is None or expectation.expect is Expect.SUCCESS:
        return _as_recorded(outcome, is_asked=expectation is not None)
    if expectation.expect is Expect.LABEL:
        return _by_label(outcome, expectation)
    if expectation.expect is Expect.SHARE:
        return _by_share(outcome, float(expectation.at_least or 0))
    return _by_points(outcome, expectation.at_least or 0)


def _as_recorded(outcome: Outcome, *, is_asked: bool) -> OutcomeVerdict:
    if outcome.kind is OutcomeKind.PASS:
        return _green("The outcome is recorded as passed.")
    if outcome.kind is OutcomeKind.FAIL:
        return _red("The outcome is recorded as failed.")
    if outcome.kind is OutcomeKind.UNKNOWN:
        return _unknown("No outcome is recorded that could be read.")
    share = share_of(outcome)
    score = _score_words(outcome)
    if share is not None and share >= 1:
        return _green(f"The score is full: {score}.")
    if share is not None and share <= 0:
        return _red(f"Nothing was scored: {score}.")
    why = (
        "the expectation asks for a pass and does not say which score is one"
        if is_asked
        else "no expectation says which score passes"
    )
    return _unknown(f"The outcome is a score, {score}, and {why}.")


def _by_label(outcome: Outcome, expectation: OutcomeExpectation) -> OutcomeVerdict:
    if outcome.label is None:
        return _unknown("A label is expected, and none is recorded.")
    if outcome.label in expectation.labels:
        return _green(f"The label is {shown(outcome.label)}, one of those expected.")
    return _red(f"The label is {shown(outcome.label)}, none of those expected.")


def _by_share(outcome: Outcome, least: float) -> OutcomeVerdict:
    share = share_of(outcome)
    if share is None and outcome.kind in {OutcomeKind.PASS, OutcomeKind.FAIL}:
        # A pass without a score is all there was to reach.
        return _as_recorded(outcome, is_asked=True)
    if share is None:
        return _unknown(
            "A share of the possible score is expected, and no score with its possible "
            "one is recorded."
        )
    said = (
        f"The score is {_score_words(outcome)}; at least {least:g} of it is expected."
    )
    return _green(said) if share >= least - _TOLERANCE else _red(said)


def _by_points(outcome: Outcome, least: float) -> OutcomeVerdict:
    score = outcome.score
    if score is None or not math.isfinite(score):
        if outcome.kind is OutcomeKind.FAIL:
            return _red("The outcome is recorded as failed.")
        return _unknown("Points are expected, and no score is recorded.")
    said = f"The score is {_score_words(outcome)}; at least {least:,} are expected."
    return _green(said) if score >= least - _TOLERANCE else _red(said)


def share_of(outcome: Outcome) -> float | None:
    """The score as a share of the possible one; `None` where one of them is missing.

    A possible score of 0 or less, and what is not finite, has no shares.
    """
    score, most = outcome.score, outcome.out_of
    if score is None or most is None or most <= 0:
        return None
    if not math.isfinite(score) or not math.isfinite(most):
        return None
    return score / most


def _score_words(outcome: Outcome) -> str:
    score = f"{outcome.score:g}" if outcome.score is not None else "not recorded"
    return score if outcome.out_of is None else f"{score} of {outcome.out_of:g}"


def _green(sentence: str) -> OutcomeVerdict:
    return OutcomeVerdict(TraceColour.GREEN, sentence)


def _red(sentence: str) -> OutcomeVerdict:
    return OutcomeVerdict(TraceColour.RED, sentence)


def _unknown(sentence: str) -> OutcomeVerdict:
    return OutcomeVerdict(TraceColour.UNKNOWN, sentence)
