"""The sentences beside a score: who decided nothing, what the inputs and outcomes say."""

from __future__ import annotations

from typing import Final

from apps.engine.consistency.conducted import TrialState
from apps.engine.consistency.rule import LABELS, REGIME_LABELS, Regime
from apps.engine.consistency.scored import Answer, Consistency, Inputs, Undecided
from apps.engine.consistency.shares import Share, counted

_WHY: Final[dict[TrialState, str]] = {
    TrialState.MISSING: "The decision is missing in {}.",
    TrialState.FAILED: "The run failed before it decided in {}.",
    TrialState.NOT_COMPARED: (
        "Prose is not compared: define what the agent decides. This holds for {}."
    ),
    TrialState.NO_BODIES: "No bodies kept, so no decision can be read, in {}.",
}


_AT: Final[dict[Regime, str]] = {
    Regime.ZERO: "At temperature 0",
    Regime.ABOVE_ZERO: "At a temperature above 0",
    Regime.NOT_RECORDED: "Where no temperature is recorded",
}


def of_undecided(undecided: tuple[Undecided, ...]) -> tuple[str, ...]:
    """One sentence for each reason for which trials decided nothing."""
    return tuple(_WHY[each.state].format(_trials(each.share)) for each in undecided)


def of_inputs(inputs: Inputs, answers: tuple[Answer, ...]) -> tuple[str, ...]:
    """What differing or unknown inputs leave open; nothing where all are the same."""
    said = []
    if inputs.distinct > 1:
        said.append(
            f"The input differs between the trials: {inputs.distinct:,} distinct "
            "inputs, so a difference may come from upstream."
        )
        if len(answers) > 1:
            said.append(_of_divided(inputs.divided))
    if inputs.distinct and inputs.not_recorded:
        said.append(
            f"The input of {counted(inputs.not_recorded, 'trial')} is not recorded."
        )
    return tuple(said)


def of_wrong(outcomes: Share, broken: Share) -> tuple[str, ...]:
    """Why what the trials agree on is wrong, as far as outcomes and contracts know."""
    said = []
    if outcomes.n and not outcomes.k:
        said.append(f"No trial with a known outcome passed: {outcomes.words}.")
    if broken.k:
        said.append(f"A contract broke in {_trials(broken)} of the majority.")
    return tuple(said)


def of_parts(parts: tuple[Consistency, ...], *, differ: bool) -> tuple[str, ...]:
    """What was found in each temperature regime; `differ`: each stable, not alike."""
    listed = "; ".join(
        f"{REGIME_LABELS[part.regime]}: {LABELS[part.verdict]} "
        f"({counted(part.n, 'trial')})"
        for part in parts
    )
    said = [f"Trials of {len(parts)} temperature regimes are scored apart: {listed}."]
    if differ:
        said.append(
            f"Each of the {len(parts)} regimes agrees within itself, but they do not "
            "agree with each other, which is drifting."
        )
    said += [
        f"{_AT[part.regime]}: {reason}" for part in parts for reason in part.reasons
    ]
    return tuple(said)


def _of_divided(divided: Share) -> str:
    if not divided.n:
        return "No two trials with a decision share an input."
    return (
        "Of the inputs that several trials share, those that led to different "
        f"decisions are {divided.words}."
    )


def _trials(found: Share) -> str:
    """The share with its noun: `2 of 5 trials (40 %; 95 % interval ...)`."""
    counts, _, interval = found.words.partition(" (")
    return f"{counts} {'trial' if found.n == 1 else 'trials'} ({interval}"
