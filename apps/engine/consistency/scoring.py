"""Scores the trials of one task, whole and by temperature regime."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from apps.engine.consistency.conducted import (
    TrialConduct,
    TrialState,
    grouped,
    has_decided,
    in_order,
    state_of,
)
from apps.engine.consistency.rule import (
    Regime,
    Stability,
    Tally,
    judged,
    worst_of,
)
from apps.engine.consistency.scored import (
    Answer,
    Consistency,
    Inputs,
    Undecided,
    majority_of,
)
from apps.engine.consistency.shares import Share, share
from apps.engine.consistency.wording import (
    of_inputs,
    of_parts,
    of_undecided,
    of_wrong,
)


def consistency_of(trials: Iterable[TrialConduct]) -> Consistency:
    """The score of all trials of one task, for one agent or end to end.

    Where they ran in several temperature regimes, the verdict is the worst of the
    regimes, judged apart; regimes that are stable each but not alike are drifting.
    The order of the trials does not matter. Raises `ValueError` if there are no
    trials, if one is given twice or if a state is unknown.
    """
    ordered = in_order(trials)
    parts = _parts(ordered)
    if len(parts) == 1:
        return parts[0]
    whole = _scored(ordered, Regime.MIXED)
    verdict = worst_of(part.verdict for part in parts)
    differ = verdict is Stability.STABLE and len(whole.answers) > 1
    return msgspec.structs.replace(
        whole,
        verdict=Stability.DRIFTING if differ else verdict,
        reasons=of_parts(parts, differ=differ),
    )


def by_regime(trials: Iterable[TrialConduct]) -> tuple[Consistency, ...]:
    """The score of each temperature regime, empty unless there are several.

    In the order temperature 0, above 0, not recorded. Raises as `consistency_of`.
    """
    parts = _parts(in_order(trials))
    return parts if len(parts) > 1 else ()


def _parts(ordered: Sequence[TrialConduct]) -> tuple[Consistency, ...]:
    return tuple(_scored(group, regime) for regime, group in grouped(ordered).items())


def _scored(trials: Sequence[TrialConduct], regime: Regime) -> Consistency:
    n = len(trials)
    kept = _unfailed(trials)
    answers = _answers(trials)
    undecided = _undecided(trials)
    without = {each.state: each.share.k for each in undecided}
    majority, no_majority = majority_of(answers)
    inside = frozenset(majority.answer.trials if majority else ())
    tally = Tally(n, tuple(answer.share.k for answer in answers), regime)
    verdict, reason = judged(tally)
    inputs = _inputs(trials)
    outcomes = _outcomes(trials)
    return Consistency(
        regime=regime,
        n=n,
        decided=tally.decided,
        missing=without.get(TrialState.MISSING, 0),
        failed=without.get(TrialState.FAILED, 0),
        not_compared=without.get(TrialState.NOT_COMPARED, 0),
        no_bodies=without.get(TrialState.NO_BODIES, 0),
        answers=answers,
        undecided=undecided,
        exact=_largest((t.exact for t in kept), n, "no outputs were recorded"),
        structural=_largest((t.structure for t in kept), n, "no shapes were recorded"),
        decision=tally.most,
        majority=majority,
        no_majority=no_majority,
        outliers=tuple(t.trial for t in trials if inside and t.trial not in inside),
        inputs=inputs,
        outcomes=outcomes,
        verdict=verdict,
        reasons=(reason, *of_undecided(undecided), *of_inputs(inputs, answers)),
        wrong_reasons=of_wrong(outcomes, _broken(trials, inside)),
    )


def _answers(trials: Sequence[TrialConduct]) -> tuple[Answer, ...]:
    found: defaultdict[str, list[TrialConduct]] = defaultdict(list)
    for trial in trials:
        if has_decided(trial):
            found[trial.decision].append(trial)
    sorted_by_size = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(
        Answer(
            decision=decision,
            shown=min(trial.shown or decision for trial in those),
            share=share(len(those), len(trials)),
            trials=tuple(trial.trial for trial in those),
        )
        for decision, those in sorted_by_size
    )


def _undecided(trials: Sequence[TrialConduct]) -> tuple[Undecided, ...]:
    found: defaultdict[TrialState, list[str]] = defaultdict(list)
    for trial in trials:
        found[state_of(trial)].append(trial.trial)
    return tuple(
        Undecided(state, share(len(found[state]), len(trials)), tuple(found[state]))
        for state in TrialState
        if state is not TrialState.DECIDED and state in found
    )


def _unfailed(trials: Sequence[TrialConduct]) -> list[TrialConduct]:
    """The trials whose output can agree with another: a crash agrees with nothing."""
    return [trial for trial in trials if state_of(trial) is not TrialState.FAILED]


def _largest(hashes: Iterable[str], n: int, nothing: str) -> Share:
    """The largest group of equal hashes of `n`; of nothing where none was recorded."""
    sizes = Counter(each for each in hashes if each)
    if not sizes:
        return share(0, 0, nothing=nothing)
    return share(max(sizes.values()), n)


def _inputs(trials: Sequence[TrialConduct]) -> Inputs:
    decided: defaultdict[str, list[str]] = defaultdict(list)
    for trial in trials:
        if trial.input and has_decided(trial):
            decided[trial.input].append(trial.decision)
    shared = [decisions for decisions in decided.values() if len(decisions) > 1]
    divided = sum(len(set(decisions)) > 1 for decisions in shared)
    return Inputs(
        distinct=len({trial.input for trial in trials if trial.input}),
        not_recorded=sum(not trial.input for trial in trials),
        divided=share(divided, len(shared), nothing="no input is shared"),
    )


def _outcomes(trials: Sequence[TrialConduct]) -> Share:
    known = [trial.passed for trial in trials if trial.passed is not None]
    return share(sum(known), len(known), nothing="no outcome is known")


def _broken(trials: Sequence[TrialConduct], inside: frozenset[str]) -> Share:
    """The trials of the majority in which a contract of the agent broke."""
    broken = sum(t.trial in inside and t.contracts_broken > 0 for t in trials)
    return share(broken, len(inside))
