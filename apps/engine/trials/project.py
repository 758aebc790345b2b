"""All tasks together: the verdict of every agent beside the outcomes, and who is masked.

Made of the scores of traces and tasks, so without their texts. The same numbers come
out whatever order they are given in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from apps.engine.consistency import Stability
from apps.engine.masking import (
    COLOURS,
    AgentCounts,
    AgentEvidence,
    Colour,
    Extent,
    Judged,
    Masked,
    MaskingReport,
    OutcomeColour,
    OutcomeCounts,
    Verdict,
    agent_counts,
    masking_report,
    outcome_counts,
    verdict_of,
)
from apps.engine.trials.asked import Asked
from apps.engine.trials.scores import (
    AgentTaskScore,
    ConductScore,
    TaskScore,
    TraceScore,
    Trial,
)
from apps.engine.trials.tasks import evidence_of

UNNAMED: Final = "unnamed agent"
_NOBODY: Final = Masked()


class ScoredTask(msgspec.Struct, frozen=True):
    """One task with its trials; `key` is unique among the tasks."""

    key: str
    trials: tuple[Trial, ...]
    score: TaskScore


class ScoredAgent(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of one agent over all traces, and what it rests on.

    `agent` is its key, `name` how people read it. `traces` and `tasks` are its colours
    where the outcome is green. `tools` are calls by name, `models` traces by name, the
    most frequent first.
    """

    agent: str
    name: str
    evidence: AgentEvidence
    verdict: Verdict
    traces: Masked
    tasks: Masked
    tools: dict[str, int] = {}
    models: dict[str, int] = {}

    @property
    def is_masked(self) -> bool:
        """Whether it is red or unstable somewhere behind a green outcome."""
        return self.traces.share.k + self.tasks.share.k > 0


class ProjectScore(msgspec.Struct, frozen=True):
    """Every agent (masked ones first, then the worst), the masking report, the outcomes."""

    agents: tuple[ScoredAgent, ...]
    report: MaskingReport
    traces: OutcomeCounts
    tasks: OutcomeCounts

    @property
    def names(self) -> dict[str, str]:
        """How people read each agent, by its key."""
        return {one.agent: one.name for one in self.agents}


def score_project(
    tasks: Sequence[ScoredTask],
    alone: Sequence[Trial] = (),
    *,
    asked: Asked | None = None,
    names: Mapping[str, str] | None = None,
) -> ProjectScore:
    """Score all tasks, and the traces `alone` that are of no task, together.

    Agents of which something is asked are there although nothing exercises them; `names`
    is how they are called. Raises `ValueError` where two tasks have one key.
    """
    if len({task.key for task in tasks}) < len(tasks):
        raise ValueError("Two tasks have the same key.")
    asked = Asked() if asked is None else asked
    trials = [trial for task in tasks for trial in task.trials] + list(alone)
    conducts = _conducts(trials)
    called = _names(conducts, {*conducts, *asked.agents}, names or {})
    traces = [_judged_trace(trial, called) for trial in trials]
    judged = [_judged_task(task, called) for task in tasks]
    counts = {one.agent: one for one in agent_counts(traces, judged)}
    of_tasks = _of_tasks(tasks)
    agents = [
        _agent(
            (key, name),
            _evidence(key, asked, conducts.get(key, ()), of_tasks.get(key, ())),
            counts.get(name, AgentCounts(name)),
            conducts.get(key, ()),
        )
        for key, name in called.items()
    ]
    totals = outcome_counts(traces), outcome_counts(judged)
    return ProjectScore(
        agents=tuple(sorted(agents, key=_rank)),
        report=masking_report(
            verdicts={one.name: one.verdict for one in agents},
            counts=counts.values(),
            traces=totals[0],
            tasks=totals[1],
        ),
        traces=totals[0],
        tasks=totals[1],
    )


def _conducts(trials: Iterable[Trial]) -> dict[str, list[ConductScore]]:
    found: dict[str, list[ConductScore]] = defaultdict(list)
    for trial in trials:
        for conduct in trial.score.conducts:
            found[conduct.agent].append(conduct)
    return found


def _names(
    conducts: Mapping[str, Sequence[ConductScore]],
    keys: Iterable[str],
    given: Mapping[str, str],
) -> dict[str, str]:
    """How each agent is called: as most traces record it, no two alike."""
    found: dict[str, str] = {}
    for key in sorted(keys):
        recorded = Counter([one.name for one in conducts.get(key, ()) if one.name])
        most = sorted(recorded.items(), key=lambda item: (-item[1], item[0]))
        name = most[0][0] if most else given.get(key) or key or UNNAMED
        found[key] = name if name not in found.values() else f"{name} ({key})"
    return found


def _judged_trace(trial: Trial, called: Mapping[str, str]) -> Judged:
    return Judged(
        id=trial.id,
        outcome=_outcome(trial.score),
        agents={called[one.agent]: Colour(one.colour) for one in trial.score.conducts},
    )


def _outcome(score: TraceScore) -> OutcomeColour:
    return OutcomeColour(score.outcome)


def _judged_task(task: ScoredTask, called: Mapping[str, str]) -> Judged:
    return Judged(
        id=task.key,
        outcome=OutcomeColour(task.score.outcome),
        agents={called[one.agent]: Colour(one.colour) for one in task.score.agents},
    )


def _of_tasks(tasks: Iterable[ScoredTask]) -> dict[str, list[AgentTaskScore]]:
    found: dict[str, list[AgentTaskScore]] = defaultdict(list)
    for task in tasks:
        for one in task.score.agents:
            found[one.agent].append(one)
    return found


def _evidence(
    key: str,
    asked: Asked,
    conducts: Sequence[ConductScore],
    tasks: Sequence[AgentTaskScore],
) -> AgentEvidence:
    """The counts of all its conducts, and how stable its tasks are."""
    known = evidence_of(key, conducts, (), Extent.PROJECT)
    verdicts = Counter(one.consistency for one in tasks)
    return msgspec.structs.replace(
        known,
        contracts=max(known.contracts, len(asked.of(key).contracts)),
        unread=asked.of(key).unread or known.unread,
        tasks=len(tasks),
        stable=verdicts[Stability.STABLE],
        drifting=verdicts[Stability.DRIFTING],
        non_deterministic=verdicts[Stability.NON_DETERMINISTIC],
        insufficient=verdicts[Stability.INSUFFICIENT],
        stable_but_wrong=sum(one.is_stable_but_wrong for one in tasks),
    )


def _agent(
    called: tuple[str, str],
    evidence: AgentEvidence,
    counts: AgentCounts,
    conducts: Sequence[ConductScore],
) -> ScoredAgent:
    tools: Counter[str] = Counter()
    for conduct in conducts:
        tools.update(conduct.tools)
    return ScoredAgent(
        agent=called[0],
        name=called[1],
        evidence=msgspec.structs.replace(evidence, agent=called[1]),
        verdict=verdict_of(evidence),
        traces=counts.traces,
        tasks=counts.tasks,
        tools=_most_first(tools),
        models=_most_first(Counter(_models(conducts))),
    )


def _models(conducts: Iterable[ConductScore]) -> Iterator[str]:
    for conduct in conducts:
        yield from conduct.models


def _most_first(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _rank(one: ScoredAgent) -> tuple[bool, int, int, str]:
    return (
        not one.is_masked,
        COLOURS.index(one.verdict.colour),
        -one.evidence.traces,
        one.name,
    )
