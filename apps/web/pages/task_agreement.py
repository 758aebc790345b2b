"""How far trials agree, as pages show it: shares, distinct decisions with their trials.

Everything comes from what was stored when the task was scored; no trace is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from apps.engine.consistency import LABELS, REGIME_LABELS, Regime, Stability
from apps.scoring.models import AgentTaskScore, TaskScore
from apps.web.words import WITHOUT_DECISION

MOST_ANSWERS: Final = 12
MOST_TRIALS: Final = 12
_TONES: Final = {
    Stability.STABLE: "plain",
    Stability.DRIFTING: "amber",
    Stability.NON_DETERMINISTIC: "amber",
    Stability.INSUFFICIENT: "",
}


class TrialRef(msgspec.Struct, frozen=True):
    """A trial to link: the id of its trace, its name for people, how it ended."""

    pk: int
    label: str
    outcome: str


class ShareLine(msgspec.Struct, frozen=True):
    """A kind of agreement: `k` of `n` trials, and what it means."""

    label: str
    k: int
    n: int
    meaning: str


class AnswerLine(msgspec.Struct, frozen=True):
    """One distinct decision, or one reason for none, with the trials that have it.

    `more` trials are not listed.
    """

    decision: str
    k: int
    n: int
    trials: list[TrialRef]
    more: int
    is_majority: bool = False
    is_outlier: bool = False
    is_without: bool = False


class StabilityWord(msgspec.Struct, frozen=True):
    """The word for a verdict of stability, the class of its pill, and k of n."""

    label: str
    tone: str
    k: int
    n: int


class Agreement(msgspec.Struct, frozen=True):
    """What is said of the agreement of trials: end to end, of an agent, or of a regime."""

    word: StabilityWord
    regime: str
    shares: list[ShareLine]
    answers: list[AnswerLine]
    more_answers: int
    majority: str
    contradictions: int
    inputs: int
    inputs_unknown: int
    reasons: list[str]


def stability_word(
    consistency: str, *, is_wrong: bool, majority: int, trials: int
) -> StabilityWord:
    """The word for people; stable but wrong is said as that."""
    verdict = Stability(consistency)
    return StabilityWord(
        label="stable but wrong" if is_wrong else LABELS[verdict],
        tone="red" if is_wrong else _TONES[verdict],
        k=majority,
        n=trials,
    )


def word_of(score: TaskScore | AgentTaskScore) -> StabilityWord:
    """The word for a stored score: of a whole task, or of one agent in it."""
    return stability_word(
        score.consistency,
        is_wrong=score.is_stable_but_wrong,
        majority=score.majority,
        trials=score.trials,
    )


def agreement_of(found: Mapping[str, Any], trials: Mapping[str, TrialRef]) -> Agreement:
    """The stored agreement as a page shows it; `trials` by the ids that it names."""
    agreed = found["agreement"]
    return Agreement(
        word=stability_word(
            found["verdict"],
            is_wrong=found["is_stable_but_wrong"],
            majority=agreed["k"],
            trials=agreed["n"],
        ),
        regime=REGIME_LABELS[Regime(found["regime"])],
        shares=_shares(found),
        answers=[*_answers(found, trials), *_without(found, trials)],
        more_answers=max(0, found["distinct"] - MOST_ANSWERS),
        majority=_majority(found),
        contradictions=found["contradictions"],
        inputs=found["inputs"]["distinct"],
        inputs_unknown=found["inputs"]["not_recorded"],
        reasons=list(found["reasons"]),
    )


def trial_refs(
    ids: Sequence[str], trials: Mapping[str, TrialRef]
) -> tuple[list[TrialRef], int]:
    """The trials to list of `ids`, and how many more there are."""
    known = [trials[one] for one in ids if one in trials]
    shown = known[:MOST_TRIALS]
    return shown, len(ids) - len(shown)


def _shares(found: Mapping[str, Any]) -> list[ShareLine]:
    kinds = (
        ("Same decision", "agreement", "the same decision was taken"),
        ("Same shape", "structural", "the outputs have the same shape"),
        ("Same output", "exact", "the whole outputs are equal"),
    )
    return [
        ShareLine(label, found[name]["k"], found[name]["n"], meaning)
        for label, name, meaning in kinds
    ]


def _answers(
    found: Mapping[str, Any], trials: Mapping[str, TrialRef]
) -> list[AnswerLine]:
    has_majority = found["majority"] is not None
    lines = []
    for place, one in enumerate(found["answers"][:MOST_ANSWERS]):
        listed, more = trial_refs(one["trials"], trials)
        lines.append(
            AnswerLine(
                decision=one["decision"],
                k=one["agreement"]["k"],
                n=one["agreement"]["n"],
                trials=listed,
                more=more,
                is_majority=has_majority and place == 0,
                is_outlier=has_majority and place > 0,
            )
        )
    return lines


def _without(
    found: Mapping[str, Any], trials: Mapping[str, TrialRef]
) -> list[AnswerLine]:
    lines = []
    for one in found["without"]:
        listed, more = trial_refs(one["trials"], trials)
        lines.append(
            AnswerLine(
                decision=WITHOUT_DECISION[one["state"]],
                k=one["agreement"]["k"],
                n=one["agreement"]["n"],
                trials=listed,
                more=more,
                is_outlier=found["majority"] is not None,
                is_without=True,
            )
        )
    return lines


def _majority(found: Mapping[str, Any]) -> str:
    majority = found["majority"]
    if majority is None:
        return str(found["no_majority"])
    said = "is" if majority["is_established"] else "is not"
    return f"The majority {said} established by its interval."
