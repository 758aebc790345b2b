"""One trial of a task as consistency sees it: what was decided, and what was seen of it.

Plain values, so that they come from traces, from rows of a database or from replays
alike. Nothing here reads a text: whether prose is compared was settled before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Final

import msgspec

from apps.engine.consistency.rule import Regime


class TrialState(StrEnum):
    """Whether a trial decided, and if not, why there is nothing to compare."""

    DECIDED = "decided"
    MISSING = "missing"
    FAILED = "failed"
    NOT_COMPARED = "not_compared"
    NO_BODIES = "no_bodies"


class TrialConduct(msgspec.Struct, frozen=True, kw_only=True):
    """What one agent (or the whole pipeline) did in one trial of a task.

    `decision` is canonical text and the only thing that is compared as a decision;
    `shown` is its text for people. A trial with a blank decision counts as missing.
    `exact` and `structure` are hashes of the whole output and of its shape, `input`
    of the input; "" is not recorded. `passed` is the known outcome of the trial and
    `temperature` the recorded one, `None` where unknown or mixed. `contracts_broken`
    counts contracts of the agent that broke in this trial.
    """

    trial: str
    state: str
    decision: str = ""
    shown: str = ""
    exact: str = ""
    structure: str = ""
    passed: bool | None = None
    temperature: float | None = None
    input: str = ""
    contracts_broken: int = 0


_STATES: Final = frozenset(TrialState)
_REGIMES: Final = (Regime.ZERO, Regime.ABOVE_ZERO, Regime.NOT_RECORDED)


def in_order(trials: Iterable[TrialConduct]) -> tuple[TrialConduct, ...]:
    """The trials sorted by id, so that their order of arrival decides nothing.

    Raises `ValueError` if there are none, if one is given twice or if a state is
    unknown.
    """
    found = tuple(sorted(trials, key=lambda trial: trial.trial))
    if not found:
        raise ValueError("There are no trials to score.")
    for one, other in pairwise(found):
        if one.trial == other.trial:
            raise ValueError(f"The trial {one.trial} is given twice.")
    for trial in found:
        if trial.state not in _STATES:
            raise ValueError(f"The state {trial.state!r} of {trial.trial} is unknown.")
    return found


def state_of(trial: TrialConduct) -> TrialState:
    """The state, with a decision of nothing but white space as a missing one."""
    state = TrialState(trial.state)
    if state is TrialState.DECIDED and not trial.decision.strip():
        return TrialState.MISSING
    return state


def has_decided(trial: TrialConduct) -> bool:
    """Whether there is a decision to compare."""
    return state_of(trial) is TrialState.DECIDED


def regime_of(temperature: float | None) -> Regime:
    """The regime of a recorded temperature; below 0 or not a number is not recorded."""
    if temperature is None:
        return Regime.NOT_RECORDED
    if temperature > 0:
        return Regime.ABOVE_ZERO
    return Regime.ZERO if temperature == 0 else Regime.NOT_RECORDED


def grouped(
    trials: Sequence[TrialConduct],
) -> Mapping[Regime, tuple[TrialConduct, ...]]:
    """The trials by temperature regime, in a fixed order, only those that occur.

    A trial that crashed before its first model call has no temperature. Where all
    trials that decided share one regime it counts there, so that crashes do not leave
    the denominator; elsewhere it is among those not recorded.
    """
    decided = {regime_of(trial.temperature) for trial in trials if has_decided(trial)}
    home = next(iter(decided)) if len(decided) == 1 else Regime.NOT_RECORDED
    groups: defaultdict[Regime, list[TrialConduct]] = defaultdict(list)
    for trial in trials:
        regime = regime_of(trial.temperature)
        if regime is Regime.NOT_RECORDED and not has_decided(trial):
            regime = home
        groups[regime].append(trial)
    return {regime: tuple(groups[regime]) for regime in _REGIMES if regime in groups}
