"""The score of one task: how far its trials agree, where they fork, who is masked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from apps.engine.branching import (
    Branching,
    TrialPath,
    branching_of,
    decisive_chance,
    unpacked,
)
from apps.engine.consistency import (
    Consistency,
    Stability,
    TrialConduct,
    by_regime,
    consistency_of,
)
from apps.engine.masking import (
    AgentEvidence,
    Extent,
    Verdict,
    is_unseen_failure,
    masked,
    outcome_of_trials,
    verdict_of,
)
from apps.engine.trials.plain import (
    forks_in_order,
    plain_consistency,
    plain_forks,
)
from apps.engine.trials.scores import (
    AgentTaskScore,
    ConductScore,
    Decided,
    TaskScore,
    Trial,
)

MOST_LISTED: Final = 500
_PASSED: Final = {"green": True, "red": False}


def score_task(trials: Sequence[Trial]) -> TaskScore:
    """Score the trials of one task, at least one. Their order is no matter.

    Raises `ValueError` if a trial is given twice.
    """
    whole = consistency_of([_of_whole(trial) for trial in trials])
    scored = {key: _of_agent(key, trials) for key in _agents_in(trials)}
    colours = {key: verdict.colour for key, (_, verdict) in scored.items()}
    outcome = outcome_of_trials([_passed(trial) for trial in trials])
    hidden = {name for name, _ in masked(colours, outcome)}
    hidden |= {key for trial in trials for key in trial.score.masked}
    branching = branching_of_trials(trials)
    decisive = branching.decisive_fork
    by_chance = decisive_chance(branching)
    return TaskScore(
        trials=len(trials),
        passed=sum(_passed(trial) is True for trial in trials),
        failed=sum(_passed(trial) is False for trial in trials),
        outcome=outcome.value,
        consistency=whole.verdict.value,
        decided=whole.decided,
        distinct=len(whole.answers),
        majority=whole.decision.k,
        is_stable_but_wrong=whole.is_stable_but_wrong,
        fork_count=len(forks_in_order(branching)),
        first_fork=_first_step(branching),
        decisive="" if decisive is None else decisive.sentence,
        decisive_chance=None if by_chance is None else by_chance.value,
        is_gap=is_unseen_failure(colours, outcome),
        agents=tuple(
            [
                _agent_score(
                    _acting(key, trials), found, of=len(trials), is_masked=key in hidden
                )
                for key, found in scored.items()
            ]
        ),
        detail=_detail(trials, whole, plain_forks(branching, by_chance)),
    )


def branching_of_trials(trials: Sequence[Trial]) -> Branching:
    """Where the trials part, by their decision points."""
    return branching_of(
        [
            TrialPath(
                trial_id=trial.id,
                points=unpacked(trial.score.points) if trial.score.points else (),
                passed=_passed(trial),
                order_uncertain=trial.score.is_order_uncertain,
            )
            for trial in trials
        ]
    )


def _agents_in(trials: Sequence[Trial]) -> list[str]:
    keys: dict[str, None] = {}
    for trial in trials:
        for conduct in trial.score.conducts:
            keys.setdefault(conduct.agent)
    return sorted(keys)


def _passed(trial: Trial) -> bool | None:
    return _PASSED.get(trial.score.outcome)


def _acting(key: str, trials: Sequence[Trial]) -> list[tuple[Trial, ConductScore]]:
    """The trials in which the agent acted, with what it did there."""
    return [
        (trial, conduct)
        for trial in trials
        for conduct in trial.score.conducts
        if conduct.agent == key
    ]


def _of_whole(trial: Trial) -> TrialConduct:
    return _trial_conduct(trial, trial.score.decided, broken=0)


def _trial_conduct(trial: Trial, decided: Decided, *, broken: int) -> TrialConduct:
    return TrialConduct(
        trial=trial.id,
        state=decided.state,
        decision=decided.decision,
        shown=decided.shown,
        exact=decided.exact,
        structure=decided.structure,
        passed=_passed(trial),
        temperature=decided.temperature,
        input=decided.input,
        contracts_broken=broken,
    )


def _of_agent(key: str, trials: Sequence[Trial]) -> tuple[Consistency, Verdict]:
    acting = _acting(key, trials)
    found = consistency_of(
        [
            _trial_conduct(trial, conduct.decided, broken=conduct.broken)
            for trial, conduct in acting
        ]
    )
    conducts = [conduct for _, conduct in acting]
    return found, verdict_of(evidence_of(key, conducts, [found], Extent.TASK))


def evidence_of(
    key: str,
    conducts: Sequence[ConductScore],
    tasks: Sequence[Consistency],
    extent: Extent,
) -> AgentEvidence:
    """What is known of one agent over these conducts and the tasks they are trials of."""
    verdicts = [task.verdict for task in tasks]
    applied = {
        place
        for conduct in conducts
        for place, one in enumerate(conduct.judged)
        if one["held"] or one["broken"] or one["undecided"]
    }
    return AgentEvidence(
        agent=key,
        extent=extent,
        traces=len(conducts),
        tasks=len(tasks),
        invocations=sum(one.invocations for one in conducts),
        failed=sum(one.failures for one in conducts),
        contracts=max([len(one.judged) for one in conducts], default=0),
        contracts_applied=len(applied),
        held=sum(one.held for one in conducts),
        broken=sum(one.broken for one in conducts),
        undecided=sum(one.undecided for one in conducts),
        not_applying=sum(one.not_applying for one in conducts),
        stable=verdicts.count(Stability.STABLE),
        drifting=verdicts.count(Stability.DRIFTING),
        non_deterministic=verdicts.count(Stability.NON_DETERMINISTIC),
        insufficient=verdicts.count(Stability.INSUFFICIENT),
        stable_but_wrong=sum(task.is_stable_but_wrong for task in tasks),
        recalled=sum(one.recalled for one in conducts),
        lost=sum(one.lost for one in conducts),
        contradicted=sum(one.contradicted for one in conducts),
        findings=sum(one.findings for one in conducts),
        unread=tuple(
            dict.fromkeys(
                sentence
                for conduct in conducts
                for one in conduct.judged
                for sentence in one.get("unread", ())
            )
        ),
    )


def _agent_score(
    acting: Sequence[tuple[Trial, ConductScore]],
    found: tuple[Consistency, Verdict],
    *,
    of: int,
    is_masked: bool,
) -> AgentTaskScore:
    consistency, verdict = found
    conducts = [conduct for _, conduct in acting]
    trials = [
        _trial_conduct(trial, conduct.decided, broken=conduct.broken)
        for trial, conduct in acting
    ]
    return AgentTaskScore(
        agent=conducts[0].agent,
        name=conducts[0].name,
        trials=consistency.n,
        decided=consistency.decided,
        missing=consistency.missing,
        failed=consistency.failed,
        distinct=len(consistency.answers),
        majority=consistency.decision.k,
        distinct_inputs=consistency.inputs.distinct,
        consistency=consistency.verdict.value,
        is_stable_but_wrong=consistency.is_stable_but_wrong,
        held=sum(one.held for one in conducts),
        broken=sum(one.broken for one in conducts),
        undecided=sum(one.undecided for one in conducts),
        colour=verdict.colour.value,
        is_masked=is_masked,
        detail={
            "consistency": plain_consistency(consistency),
            "regimes": [plain_consistency(one) for one in by_regime(trials)],
            "reasons": [
                *[reason.sentence for reason in verdict.reasons],
                *_where(len(acting), of),
            ],
            "gaps": [gap.sentence for gap in verdict.gaps],
            "colours": {trial.id: conduct.colour for trial, conduct in acting},
            "how": sorted({one.decided.how for one in conducts if one.decided.how})[:3],
        },
    )


def _where(acted: int, of: int) -> list[str]:
    """That an agent did not act in every trial, which no share of its own shows."""
    if acted == of:
        return []
    return [f"It acted in {acted:,} of {of:,} trials; the counts are over these."]


def _first_step(branching: Branching) -> int | None:
    """The least step (from 1) at which a trial is at the first fork."""
    forks = forks_in_order(branching)
    if not forks:
        return None
    steps = [place.step for place in forks[0].places if place.step is not None]
    return min(steps) + 1 if steps else None


def _detail(
    trials: Sequence[Trial], whole: Consistency, forks: dict[str, Any]
) -> dict[str, Any]:
    return {
        "consistency": plain_consistency(whole),
        "regimes": [
            plain_consistency(one)
            for one in by_regime([_of_whole(trial) for trial in trials])
        ],
        "branching": forks,
        "trials": [
            {
                "id": trial.id,
                "label": trial.label,
                "outcome": trial.score.outcome,
                "outcome_reason": trial.score.outcome_reason,
                "decision": trial.score.decided.shown,
                "masked": list(trial.score.masked),
            }
            for trial in sorted(trials, key=lambda one: one.id)[:MOST_LISTED]
        ],
    }
