"""The runs among which patterns are searched, made of the scores of traces and tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, Final

from apps.engine.consistency import UNSTABLE, Stability
from apps.engine.patterns import (
    Patterns,
    Plan,
    Unit,
    Value,
    find_patterns,
    stored_value,
)
from apps.engine.patterns.search import DEFAULT
from apps.engine.trials.project import ScoredTask
from apps.engine.trials.scores import AgentTaskScore, Trial

ENDED: Final = "ended"
STRAIGHT: Final = "straight on"
NO_FORK: Final = "no fork"


class Target(StrEnum):
    """What is asked of runs: whether trials do not agree there, or whether they failed."""

    UNSTABLE = "unstable"
    FAILING = "failing"


def patterns_of(
    target: Target,
    tasks: Sequence[ScoredTask],
    alone: Sequence[Trial] = (),
    *,
    plan: Plan = DEFAULT,
) -> Patterns:
    """The rules that go with unstable or failing runs more than chance accounts for."""
    units = (
        unstable_units(tasks)
        if target is Target.UNSTABLE
        else failing_units(tasks, alone)
    )
    return find_patterns(units, target=target.value, plan=plan)


def unstable_units(tasks: Sequence[ScoredTask]) -> Iterator[Unit]:
    """What each agent did in each trial; the target is that its trials do not agree.

    The target is one of all trials of an agent in a task, so chance has to deal it to
    them together. Where there are too few trials to tell, there is no unit. Forks are
    no feature here: that trials fork is what is to be explained. The id is that of the
    trial and the key of the agent.
    """
    for task in tasks:
        for agent in task.score.agents:
            if agent.consistency != Stability.INSUFFICIENT:
                yield from _of_agent(task, agent)


def _of_agent(task: ScoredTask, agent: AgentTaskScore) -> Iterator[Unit]:
    is_unstable = agent.consistency in UNSTABLE
    for trial in task.trials:
        for conduct in trial.score.conducts:
            if conduct.agent == agent.agent:
                yield Unit(
                    id=f"{trial.id} · {agent.agent}",
                    task=task.key,
                    features=_features(conduct.decided.features),
                    target=is_unstable,
                    together=agent.agent,
                )


def failing_units(
    tasks: Sequence[ScoredTask], alone: Sequence[Trial] = ()
) -> Iterator[Unit]:
    """Each trace as a whole; the target is a red outcome.

    The way taken at the first fork of the task is a feature. Traces of unknown outcome
    are left out, one of no task is a task of its own. The id is that of the trial.
    """
    for task in tasks:
        forked = _ways(task)
        for trial in task.trials:
            yield from _of_trace(task.key, trial, forked)
    for trial in alone:
        yield from _of_trace(f"alone {trial.id}", trial, {})


def _of_trace(task: str, trial: Trial, forked: dict[str, str]) -> Iterator[Unit]:
    score = trial.score
    if score.outcome not in {"green", "red"}:
        return
    features = _features(score.decided.features)
    features["first fork"] = forked.get(trial.id, NO_FORK)
    agents = tuple(sorted([one.agent for one in score.conducts if one.agent]))
    if agents:
        features["agents"] = agents
    yield Unit(id=trial.id, task=task, features=features, target=score.outcome == "red")


def _features(recorded: dict[str, Any]) -> dict[str, Value]:
    return {name: stored_value(value) for name, value in recorded.items()}


def _ways(task: ScoredTask) -> dict[str, str]:
    """Which way each trial takes at the first fork of a task: the tool, or that it ended."""
    forks = task.score.detail["branching"]["forks"]
    if not forks:
        return {}
    return {
        trial: _way(branch)
        for branch in forks[0]["branches"]
        for trial in branch["trials"]
    }


def _way(branch: dict[str, Any]) -> str:
    if branch["is_end"]:
        return ENDED
    return STRAIGHT if branch["is_straight"] else str(branch["tool"] or "no tool")
