"""What must hold of scores, verdicts and masked signals once nothing is behind."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import msgspec

from apps.accounts.models import Project
from apps.agents.models import AgentName
from apps.engine.agent_names import agent_key
from apps.engine.trials import score_task
from apps.engine.trials.scores import TraceScore as EngineTraceScore
from apps.pipeline.scoring import is_behind
from apps.review.masking import findings_in
from apps.review.models import Signal
from apps.scoring.definitions import ProjectAsked
from apps.scoring.models import (
    AgentTaskScore,
    Conduct,
    StaleTask,
    StaleTrace,
    TaskScore,
    TraceScore,
)
from apps.scoring.queries import score_of, trials_of
from apps.scoring.scored import trace_score_of
from apps.scoring.storable import storable
from apps.traces.contents import stored_contents
from apps.traces.models import Trace
from apps.verdicts.models import AgentVerdict, ProjectVerdict
from apps.verdicts.progress import asked_at_present

_SUMS = {
    "invocations": "invocations",
    "failed": "failures",
    "held": "held",
    "broken": "broken",
    "undecided": "undecided",
    "not_applying": "not_applying",
    "recalled": "recalled",
    "lost": "lost",
    "contradicted": "contradicted",
    "findings": "findings",
}


def assert_scores_are_whole(project: Project) -> None:
    """Everything below; the project has been brought up to date."""
    assert_nothing_waits(project)
    fresh = assert_traces_are_scored(project)
    assert_signals_are_masked_where_their_agent_is(project, fresh)
    assert_tasks_are_scored(project)
    assert_verdicts_are_sums(project)


def assert_nothing_waits(project: Project) -> None:
    """No note is left, and the clock would find nothing to do."""
    assert not StaleTask.objects.filter(project_id=project.pk).exists()
    assert not StaleTrace.objects.filter(project_id=project.pk).exists()
    assert not is_behind(project.pk)


def assert_traces_are_scored(project: Project) -> dict[int, EngineTraceScore]:
    """Each trace has the score that its content and what is asked now give; these."""
    asked = asked_at_present(project.pk)
    rows = list(Trace.objects.filter(project=project).select_related("task"))
    assert {row.scored_as for row in rows} <= {asked.name}
    findings = findings_in([row.pk for row in rows])
    conducts = defaultdict(list)
    for one in Conduct.objects.filter(trace__in=rows).select_related("agent"):
        conducts[one.trace_id].append(one)
    stored = TraceScore.objects.filter(project=project).in_bulk()
    assert set(stored) == {row.pk for row in rows}
    fresh = {}
    for content in stored_contents(rows):
        pk = content.trace.pk
        made = trace_score_of(content, asked.asked, findings.get(pk, ()))
        assert _plain(made) == _plain(score_of(stored[pk], conducts[pk])), pk
        assert (stored[pk].masked, stored[pk].is_gap) == (len(made.masked), made.is_gap)
        masked = {one.agent.key for one in conducts[pk] if one.is_masked}
        assert masked == set(made.masked)
        fresh[pk] = made
    return fresh


def _plain(score: EngineTraceScore) -> dict[str, Any]:
    """The score without what is not stored: recorded names, and reasons in words."""
    plain = msgspec.to_builtins(score)
    for one in plain["conducts"]:
        del one["name"], one["reasons"]
    plain["conducts"] = sorted(plain["conducts"], key=lambda one: one["agent"])
    # As columns of JSON give it back.
    stored: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(storable(plain)))
    return stored


def assert_signals_are_masked_where_their_agent_is(
    project: Project, fresh: dict[int, EngineTraceScore]
) -> None:
    """A signal is masked by its agent, or by any where it is about the whole trace."""
    asked = asked_at_present(project.pk)
    for signal in Signal.objects.filter(project=project):
        masked = set(fresh[signal.trace_id].masked)
        key = _agent(signal.agent, asked)
        assert signal.is_masked == (key in masked if signal.agent else bool(masked))


def _agent(name: str, asked: ProjectAsked) -> str:
    return asked.asked.agent_of(name) if name else agent_key(name)


def assert_tasks_are_scored(project: Project) -> None:
    """Each task with traces has the score of its trials, and no other has one."""
    rows = Trace.objects.filter(project=project, task__isnull=False)
    ids = set(rows.values_list("task_id", flat=True))
    stored = TaskScore.objects.filter(project=project).in_bulk()
    assert set(stored) == ids
    agents, trials = trials_of(ids)
    assert set(trials) == ids
    of_agents = AgentTaskScore.objects.filter(task__project=project)
    by_pair = {(one.task_id, one.agent_id): one for one in of_agents}
    wanted = set()
    for task_id, group in trials.items():
        made = score_task(group)
        _assert_columns(stored[task_id], made, but={"agents"})
        assert stored[task_id].masked == made.masked
        for one in made.agents:
            pair = (task_id, agents[one.agent])
            wanted.add(pair)
            _assert_columns(by_pair[pair], one, but={"agent", "name"})
    assert set(by_pair) == wanted


def _assert_columns(row: Any, made: msgspec.Struct, *, but: set[str]) -> None:
    for name, value in msgspec.structs.asdict(made).items():
        if name not in but:
            plain = msgspec.json.decode(msgspec.json.encode(storable(value)))
            assert getattr(row, name) == plain, (row, name)


def assert_verdicts_are_sums(project: Project) -> None:
    """What verdicts rest on are the sums of the rows, counted here in plain Python."""
    verdicts = AgentVerdict.objects.filter(project=project).in_bulk()
    named = AgentName.objects.filter(project=project).values_list("agent", flat=True)
    assert set(verdicts) in (set(), set(named)) or not verdicts.keys() - set(named)
    outcomes = dict(
        TraceScore.objects.filter(project=project).values_list("pk", "outcome")
    )
    sums: dict[int, Counter[str]] = defaultdict(Counter)
    for row in Conduct.objects.filter(agent__project=project):
        found = sums[row.agent_id]
        found["traces"] += 1
        found["passed"] += outcomes[row.trace_id] == "green"
        found["masked"] += row.is_masked
        for name, column in _SUMS.items():
            found[name] += getattr(row, column)
    for one in AgentTaskScore.objects.filter(agent__project=project):
        sums[one.agent_id][one.consistency] += 1
    for agent_id, found in sums.items():
        verdict = verdicts[agent_id]
        assert (verdict.green_traces, verdict.masked_traces) == (
            found["passed"],
            found["masked"],
        )
        for name in (*_SUMS, "traces", "stable", "drifting", "non_deterministic"):
            assert verdict.evidence.get(name, 0) == found[name], (agent_id, name)
    settled = ProjectVerdict.objects.filter(project=project).first()
    if settled is not None:
        assert settled.detail["traces"]["n"] == len(outcomes)
        tasks = TaskScore.objects.filter(project=project).count()
        assert settled.detail["tasks"]["n"] == tasks


def assert_broken(score: TraceScore) -> None:
    """That nothing is known of a trace, and why."""
    assert (score.outcome, score.agents) == ("unknown", 0)
    assert "our fault" in score.outcome_reason
    assert isinstance(score.features, dict)
    assert score.how == "scoring broke"
