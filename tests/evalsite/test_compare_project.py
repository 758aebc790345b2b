"""All tasks together: verdicts, masking and patterns, as in the application."""

from __future__ import annotations

import pytest

from apps.agents.models import Agent
from apps.agents.operations import Asked as AskedOf
from apps.agents.operations import define_agent
from apps.engine.patterns import Plan
from apps.engine.trials import AgentAsked, Asked, Trial, score_task, score_trace
from apps.engine.trials.project import ScoredTask, score_project
from apps.engine.trials.runs import (
    NO_FORK,
    Target,
    failing_units,
    patterns_of,
    unstable_units,
)
from apps.pipeline import scoring
from apps.scoring.models import TaskScore
from apps.verdicts.models import AgentVerdict, ProjectVerdict
from tests.desks import FAIL, PASS, UNKNOWN, desk_trace
from tests.evalsite.comparing import MEMORY, document, run, text_in, write
from tests.factories import NOW, upload_traces


def task(key, *traces, asked=None):
    trials = tuple(
        Trial(id=f"{key} {n}", label=f"trial {n}", score=score_trace(trace, asked))
        for n, trace in enumerate(traces)
    )
    return ScoredTask(key, trials, score_task(trials))


def test_tasks_in_any_order_give_one_score():
    tasks = [
        task("a", run(1), run(2, route="sales")),
        task("b", *[run(n, outcome=FAIL) for n in range(4)]),
    ]
    alone = [task("c", run(1)).trials[0], task("d", run(1)).trials[0]]
    found = score_project(tasks, alone)
    assert found == score_project(tasks[::-1], alone[::-1])
    assert {one.agent: one.evidence.traces for one in found.agents} == {
        "desk": 8,
        "router": 8,
    }
    assert all(one.evidence.tasks == 2 for one in found.agents)
    assert (found.traces.passed, found.traces.failed) == (4, 4)
    assert (found.tasks.passed, found.tasks.failed) == (1, 1)


def test_a_task_given_twice_is_refused():
    with pytest.raises(ValueError, match="same key"):
        score_project([task("a", run(1)), task("a", run(2))])


def test_an_unnamed_agent_and_one_of_that_name_stay_two():
    acts = [("says", {"route": "billing"})]
    found = score_project(
        [task("a", desk_trace(("", acts)), desk_trace(("unnamed agent", acts)))]
    )
    assert len(set(found.names.values())) == 2
    assert set(found.names) == {"", "unnamed agent"}


def test_an_agent_of_which_something_is_asked_is_there_without_a_trace():
    asked = Asked(agents={"memory": AgentAsked()})
    found = score_project([task("a", run(1))], asked=asked, names={"memory": "Memory"})
    [memory] = [one for one in found.agents if one.agent == "memory"]
    assert (memory.name, memory.verdict.colour) == ("Memory", "unknown")
    assert found.report.gaps[0].sentence == "Memory is unknown: no task exercises it."


def spread(number: int, *, unsure: bool):
    """Four trials of a task; where triage is unsure, two of them decide otherwise."""
    confidence = 0.45 if unsure else 0.9
    return task(
        f"task {number}",
        *(
            run(
                trial,
                route="sales" if unsure and trial % 2 else "billing",
                outcome=FAIL if unsure and trial % 2 else PASS,
                asked={"confidence": confidence, "text": f"Ticket {number}, please."},
            )
            for trial in range(4)
        ),
    )


def test_a_planted_rule_is_found_among_unstable_runs():
    tasks = [spread(number, unsure=number % 2 == 0) for number in range(16)]
    found = patterns_of(Target.UNSTABLE, tasks)
    assert found.overall.hits * 2 == found.overall.of == 128
    [rule] = found.findings
    assert "confidence" in rule.words
    assert rule.inside.hits == rule.inside.of == 64


def test_that_trials_fork_is_no_feature_of_unstable_runs():
    tasks = [spread(number, unsure=number % 2 == 0) for number in range(4)]
    assert all("first fork" not in unit.features for unit in unstable_units(tasks))
    ways = {unit.features["first fork"] for unit in failing_units(tasks)}
    assert NO_FORK in ways
    assert len(ways) > 1


def test_the_trials_of_an_agent_are_together_where_they_do_not_agree():
    tasks = [spread(number, unsure=True) for number in range(2)]
    units = list(unstable_units(tasks))
    groups = {(one.task, one.together) for one in units}
    agents = {agent.agent for one in tasks for agent in one.score.agents}
    assert {together for _, together in groups} == agents
    assert len(units) == 4 * len(groups)
    assert {one.together for one in failing_units(tasks)} == {""}


def test_runs_that_cannot_tell_are_no_units():
    few = task("few", run(1), run(2))
    unknown = task("unknown", *[run(n, outcome=UNKNOWN) for n in range(4)])
    assert {unit.task for unit in unstable_units([few, unknown])} == {"unknown"}
    assert {unit.task for unit in failing_units([few, unknown])} == {"few"}
    alone = task("x", run(1, outcome=FAIL)).trials
    [unit] = failing_units([], alone)
    assert unit.target
    plan = Plan(shuffles=99)
    assert not patterns_of(Target.FAILING, [few], alone, plan=plan).findings


@pytest.mark.django_db(transaction=True)
def test_the_application_says_the_same_of_the_same_traces(project, tmp_path):
    traces = [
        desk_trace(
            ("router", [("says", {"route": route})]),
            ("memory", [("says", "No notes." if trial < 3 else "Call ending 27.")]),
            task=name,
            trial=trial,
            outcome=FAIL if name == "b" and trial == 4 else PASS,
        )
        for name in ("a", "b")
        for trial, route in enumerate(["x", "x", "y", "x", "z"])
    ]
    asked = text_in(tmp_path / "agents.yaml", MEMORY)
    found = document(write(tmp_path / "a.jsonl", traces), agents=asked)
    upload_traces(project, *traces)
    settle(project)
    contract = {"name": "knows", "kind": "regex", "pattern": "ending 27"}
    memory = Agent.objects.get(project=project, name="memory")
    define_agent(agent=memory, asked=AskedOf(held=[contract]), user_id=None, now=NOW)
    settle(project)
    rows = AgentVerdict.objects.filter(project=project).select_related("agent")
    stored = {
        row.agent.name: (row.colour, row.traces, row.masked_traces, row.masked_tasks)
        for row in rows
    }
    assert stored == {
        one["agent"]: (
            one["verdict"],
            one["traces"],
            one["masked"]["traces"]["k"],
            one["masked"]["tasks"]["k"],
        )
        for one in found["agents"]
    }
    report = ProjectVerdict.objects.get(project=project).detail["report"]
    assert report["headline"] == found["masking"]["headline"]
    tasks = TaskScore.objects.filter(task__project=project).order_by("task__key")
    assert [
        (row.task.key, row.passed, row.outcome, row.consistency, row.fork_count)
        for row in tasks.select_related("task")
    ] == [
        (
            one["task"],
            one["outcome"]["k"],
            one["outcome"]["colour"],
            one["consistency"]["verdict"],
            one["fork_count"],
        )
        for one in found["tasks"]
    ]


def settle(project) -> None:
    while scoring.score_project(project_id=project.pk, clock=lambda: NOW):
        pass


def test_a_decision_of_the_file_is_what_is_compared(tmp_path):
    says = [f"Category: {word}. Confidence 0.{n}." for n, word in enumerate("aaab")]
    traces = [
        desk_trace(("triage", [("says", words)]), trial=n)
        for n, words in enumerate(says)
    ]
    path = write(tmp_path / "a.jsonl", traces)
    decision = "{kind: regex, expression: 'Category: (\\w+)'}"
    asked = text_in(
        tmp_path / "agents.yaml",
        f"evalsite: 1\nagents:\n  triage:\n    decision: {decision}\n",
    )
    [one] = document(path, agents=asked)["tasks"]
    [triage] = one["agents"]
    assert [found["decision"] for found in triage["decisions"]] == list("aaab")
    assert (triage["agreement"]["k"], triage["agreement"]["n"]) == (3, 4)
