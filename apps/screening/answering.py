"""What a check says of a trace, and how a key is called, where nothing may stop the work.

A check that breaks on a stored trace is our fault and no reason to leave all others
unanswered: it is written down as an answer that says so.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from apps.engine.check import (
    Answer,
    Check,
    Evidence,
    Judgement,
    Parameter,
    Screening,
    hash_of_inputs,
)
from apps.engine.trace import Trace

logger = logging.getLogger(__name__)

BROKE = "check_broke"
LONGEST_SCOPE = 80
LONGEST_REASON_CODE = 40


class CannotBeStored(ValueError):
    """The answers of a check are not what a check may answer."""


def scope_of(answer: Screening) -> str:
    """The scope of an answer as it is stored."""
    return answer.evidence.scope[:LONGEST_SCOPE]


def answers_of(check: Check, trace: Trace) -> list[Screening]:
    """Every answer of `check` about `trace`; one not applicable if the check breaks.

    It has broken too where its answers could not be stored: none at all, two about one
    scope, or a probability that is none.
    """
    try:
        answers = list(check.run(trace))
        _check_storable(answers)
    except Exception as error:
        logger.exception("The check %s broke on the trace %s", check.slug, trace.name)
        return [broken_answer(check, error)]
    return answers


def _check_storable(answers: Sequence[Screening]) -> None:
    if not answers:
        raise CannotBeStored("There is no answer.")
    if len({scope_of(answer) for answer in answers}) != len(answers):
        raise CannotBeStored("There are two answers about one scope.")
    for answer in answers:
        if not _has_probabilities(answer.evidence):
            raise CannotBeStored("A probability is not between 0 and 1.")
        if len(answer.reason_code) > LONGEST_REASON_CODE:
            raise CannotBeStored(f"A reason code is too long: {answer.reason_code}")


def _has_probabilities(evidence: Evidence) -> bool:
    chance = evidence.chance.value if evidence.chance else 0.0
    # A sum of floats of a null model may end a rounding beyond 1.
    of_signal = evidence.chance_of_signal or 0.0
    return 0 <= chance <= 1 and 0 <= of_signal <= 1 + 1e-9


def broken_answer(check: Check, error: Exception) -> Screening:
    """What is stored where `check` could not answer about a trace, and why."""
    said = Judgement(
        answer=Answer.NOT_APPLICABLE,
        reason_code=BROKE,
        headline=f"{check.label} broke on this trace.",
        reason=(
            f"Evalsite's check broke on this trace ({type(error).__name__}). That is "
            "our fault, and nothing is known about the trace from it."
        ),
    )
    return said.with_evidence(Evidence(scope="trace"), hash_of_inputs(BROKE))


def parameters_in_words(check: Check) -> str:
    """`fewest calls: 5, largest share: 60 %`; empty for a check without parameters."""
    values = check.parameters
    return ", ".join(
        f"{limit.label[:1].lower()}{limit.label[1:]}: "
        f"{value_in_words(limit, values[limit.name])}"
        for limit in check.limits
    )


def value_in_words(limit: Parameter, value: object) -> str:
    """One value of a parameter with its unit, unless its label names that already."""
    if isinstance(value, tuple | list):
        return ", ".join(str(one) for one in value) or "none"
    unit = "" if not limit.unit or limit.unit in limit.label.lower() else limit.unit
    number = f"{value:,g}" if isinstance(value, float) else f"{value}"
    return f"{number} {unit}".strip()


def key_in_words(check: Check) -> str:
    """`Output-length decay v1 (fewest calls 5, ...)`, for a line of history."""
    parameters = parameters_in_words(check)
    return f"{check.label} v{check.version}" + (
        f" ({parameters})" if parameters else ""
    )
