"""Whatever a score rests on changes it: tasks, names, signals, and what goes away."""

from __future__ import annotations

import time

import pytest
from django.db import transaction

from apps.accounts.models import Project
from apps.accounts.operations import PrivacyChoice, set_privacy
from apps.agents.models import Agent
from apps.agents.operations import Asked, define_agent, define_outcome, rename_agent
from apps.engine.agent_names import LONGEST
from apps.engine.trace import Outcome, OutcomeKind
from apps.pipeline import scoring
from apps.pipeline.scoring import is_behind, score_project, wake_projects_to_score
from apps.review.models import Signal
from apps.scoring import queries
from apps.scoring import scored as scored_module
from apps.scoring.models import Conduct, StaleTask, TaskScore, TraceScore
from apps.scoring.queries import in_groups
from apps.traces.models import BodyChunk, Task, Trace
from apps.traces.trials import place_trace, rename_task
from apps.verdicts import patterns
from apps.verdicts.models import AgentVerdict, PatternSearch, ProjectVerdict
from apps.verdicts.patterns import search_is_due, search_patterns
from tests.adopting import pause
from tests.desks import desk_trace
from tests.factories import NOW, decay_trace, upload_traces
from tests.whole_scores import assert_broken, assert_scores_are_whole

pytestmark = pytest.mark.django_db

NEVER = {"name": "never", "kind": "regex", "pattern": "^nothing says this$"}
GOOD = {"task": "refund*", "expect": "label", "labels": ["good"]}


def scored(project: Project) -> None:
    while score_project(project_id=project.pk, clock=lambda: NOW):
        pass


def says(*answers, agent="triage", **more):
    return desk_trace(*((agent, [("says", answer)]) for answer in answers), **more)


def ask(project: Project, *contracts, agent: str) -> None:
    row = Agent.objects.get(project=project, name=agent)
    define_agent(agent=row, asked=Asked(held=contracts), user_id=None, now=NOW)


def expect_good_refunds(project: Project) -> None:
    asked = Asked(held=(GOOD,))
    define_outcome(project_id=project.pk, asked=asked, user_id=None, now=NOW)


def bad(task: str | None):
    outcome = Outcome(kind=OutcomeKind.PASS, label="bad")
    return says("a", task=task, outcome=outcome)


def outcome(project: Project) -> str:
    return TraceScore.objects.get(project=project).outcome


def test_a_trace_that_comes_to_another_task_is_held_against_what_that_expects(project):
    upload_traces(project, bad("exchange"))
    expect_good_refunds(project)
    scored(project)
    assert outcome(project) == "green"
    place_trace(trace=Trace.objects.get(), task="refund", trial=1)
    assert is_behind(project.pk)
    scored(project)
    assert outcome(project) == "red"
    assert_scores_are_whole(project)


def test_the_traces_of_a_renamed_task_are_held_against_what_its_name_expects(project):
    upload_traces(project, bad("exchange"))
    expect_good_refunds(project)
    scored(project)
    rename_task(task=Task.objects.get(), name="refund")
    scored(project)
    assert outcome(project) == "red"
    assert_scores_are_whole(project)


def test_verdicts_are_settled_again_when_a_trace_without_a_task_goes(project):
    upload_traces(project, bad(None), says("b", task=None))
    scored(project)
    Trace.objects.order_by("pk").first().delete()
    assert is_behind(project.pk)
    scored(project)
    assert AgentVerdict.objects.get().traces == 1
    assert_scores_are_whole(project)


def test_the_headline_names_an_agent_as_it_is_called_now(project):
    upload_traces(project, says("a"))
    scored(project)
    ask(project, NEVER, agent="triage")
    scored(project)
    agent = Agent.objects.get()
    rename_agent(agent=agent, name="The first one", description="")
    scored(project)
    headline = ProjectVerdict.objects.get().detail["report"]["headline"]
    assert headline == "The first one is red in 1 of 1 trace that passed."


def test_a_signal_that_comes_after_its_agent_was_masked_is_marked(project):
    pause(project, is_paused=True)
    upload_traces(project, decay_trace(90, 70, 50, 30, 10))
    scored(project)
    ask(project, NEVER, agent="planner")
    scored(project)
    assert not Signal.objects.exists()
    pause(project, is_paused=False)
    scored(project)
    assert Signal.objects.get().is_masked
    assert_scores_are_whole(project)


def test_a_nul_inside_of_a_text_that_holds_json_stops_nothing(project):
    hidden = '{"route": "a\\u0000b", "why\\u0000": "\\ud800"}'
    trace = desk_trace(
        ("triage", [("calls", ("find", hidden, hidden)), ("says", hidden)]),
        ("writer", [("calls", ("send", {"to": hidden}, "ok"))]),
        asked=hidden,
    )
    upload_traces(project, trace, says('{"route": "a\\u0000c"}', trial=2))
    scored(project)
    assert TraceScore.objects.count() == 2
    assert not is_behind(project.pk)
    assert_scores_are_whole(project)


def test_a_trace_on_which_scoring_breaks_says_so_and_the_others_go_on(project):
    upload_traces(project, *(says("a", trial=trial) for trial in (1, 2, 3)))
    first = Trace.objects.order_by("pk").first()
    BodyChunk.objects.filter(trace=first).update(data=b"not what we wrote")
    scored(project)
    assert not is_behind(project.pk)
    assert_broken(TraceScore.objects.get(trace=first))
    assert Conduct.objects.count() == 2
    score = TaskScore.objects.get()
    assert (score.trials, score.passed) == (3, 2)
    assert_scores_are_whole(project)


def test_a_task_whose_trials_cannot_be_compared_keeps_their_outcomes(
    project, monkeypatch
):
    real = scored_module.score_task

    def breaks(trials):
        if any(trial.score.points for trial in trials):
            raise ZeroDivisionError
        return real(trials)

    monkeypatch.setattr(scored_module, "score_task", breaks)
    upload_traces(project, says("a"), says("b", trial=2))
    scored(project)
    assert not is_behind(project.pk)
    score = TaskScore.objects.get()
    assert (score.trials, score.passed, score.consistency) == (2, 2, "insufficient")
    assert "our fault" in score.detail["broke"]


def test_a_search_that_breaks_says_so_and_is_not_tried_for_ever(project, monkeypatch):
    upload_traces(project, says("a"))
    scored(project)
    real = patterns.find_patterns

    def breaks(units, *, target):
        if list(units):
            raise RecursionError
        return real((), target=target)

    monkeypatch.setattr(patterns, "find_patterns", breaks)
    search_patterns(project_id=project.pk, now=NOW)
    assert not search_is_due(project.pk, now=NOW)
    failing = PatternSearch.objects.get(target="failing")
    assert "our fault" in failing.found["sentence"]


def test_names_and_answers_of_any_length_fit_the_rows(project):
    name = "Prüfer \u2603 " * 100
    trace = desk_trace(
        (name, [("calls", ("tool " * 300, {"text": "x" * 500_000}, "y" * 500_000))]),
        (name, [("says", {"route": "z" * 500_000, "n" * 3_000: 1})]),
    )
    upload_traces(project, trace)
    scored(project)
    agent = Agent.objects.get()
    assert len(agent.key) <= LONGEST
    ask(project, NEVER, agent=agent.name)
    scored(project)
    row = Conduct.objects.get()
    columns = (row.decision, row.shown, row.how, row.features, row.tools, row.judged)
    assert len(repr(columns)) < 20_000
    assert len(row.decision) <= 2_000
    assert_scores_are_whole(project)


def test_three_hundred_agents_in_one_trace_are_all_scored(project):
    acts = [(f"agent {number}", [("says", {"route": "a"})]) for number in range(300)]
    upload_traces(project, desk_trace(*acts), desk_trace(*acts, trial=2))
    scored(project)
    assert Conduct.objects.count() == 600
    assert AgentVerdict.objects.count() == 300
    assert_scores_are_whole(project)


def test_what_was_stored_before_scores_is_found_by_the_clock(project, monkeypatch):
    sent = []
    monkeypatch.setattr(
        "celery.current_app.send_task", lambda task, **more: sent.append((task, more))
    )
    upload_traces(project, *(says("a", trial=trial) for trial in (1, 2, 3)))
    # As a migration leaves it: nobody has noted anything, and nothing is settled.
    StaleTask.objects.all().delete()
    sent.clear()
    assert wake_projects_to_score(now=NOW) == 1
    assert sent == [("pipeline.score", {"kwargs": {"project_id": project.pk}})]
    scored(project)
    assert_scores_are_whole(project)
    assert TaskScore.objects.get().trials == 3


def test_what_is_defined_while_a_batch_is_scored_counts_at_the_end(
    project, monkeypatch
):
    upload_traces(project, *(says("a", trial=trial) for trial in (1, 2)))
    scored(project)
    Trace.objects.update(scored_as="")
    real, asked = scoring.trace_score_of, []

    def defines(content, *rest):
        if not asked:
            asked.append(True)
            ask(project, NEVER, agent="triage")
        return real(content, *rest)

    monkeypatch.setattr(scoring, "trace_score_of", defines)
    scored(project)
    assert set(Conduct.objects.values_list("broken", flat=True)) == {1}
    assert_scores_are_whole(project)


def test_a_trace_that_comes_while_verdicts_are_settled_is_not_forgotten(
    project, monkeypatch
):
    upload_traces(project, says("a"))
    real, came = scoring.settle_verdicts, []

    def settles(**more):
        if not came:
            came.append(upload_traces(project, says("b", trial=2)))
        return real(**more)

    monkeypatch.setattr(scoring, "settle_verdicts", settles)
    score_project(project_id=project.pk, clock=lambda: NOW)
    assert is_behind(project.pk)
    scored(project)
    assert AgentVerdict.objects.get().traces == 2
    assert_scores_are_whole(project)


def test_tasks_with_many_trials_are_held_in_memory_some_at_a_time(project):
    traces = [
        says("a", task=f"task {number}", trial=trial)
        for number in range(3)
        for trial in (1, 2, 3)
    ]
    upload_traces(project, *traces)
    scored(project)
    ids = list(Task.objects.order_by("pk").values_list("pk", flat=True))
    assert list(in_groups(ids, most=6)) == [ids[:2], ids[2:]]
    assert list(in_groups(ids, most=1)) == [[ids[0]], [ids[1]], [ids[2]]]


def test_what_a_broken_batch_took_is_still_noted(project, monkeypatch):
    upload_traces(project, says("a"))

    def breaks(**more):
        raise KeyError

    with monkeypatch.context() as patched:
        patched.setattr(scoring, "write_task_score", breaks)
        with pytest.raises(KeyError), transaction.atomic():
            scored(project)
    assert is_behind(project.pk)
    scored(project)
    assert_scores_are_whole(project)


def test_a_trace_of_many_steps_is_scored_in_bounded_rows(project):
    acts = [
        (
            f"agent {number % 3}",
            [
                ("calls", ("find", {"page": number}, "x" * 40)),
                ("says", {"route": number}),
            ],
        )
        for number in range(5_000)
    ]
    upload_traces(project, desk_trace(*acts))
    begun = time.process_time()
    scored(project)
    assert time.process_time() - begun < 30
    assert Conduct.objects.count() == 3
    assert TraceScore.objects.get().state == "decided"
    assert_scores_are_whole(project)


def test_without_texts_nothing_is_green_and_the_reason_says_so(project, owner):
    choice = PrivacyChoice(structure_only=True)
    set_privacy(project=project, choice=choice, user=owner, now=NOW)
    project.refresh_from_db()
    upload_traces(project, *(says("a", trial=trial) for trial in range(1, 6)))
    scored(project)
    ask(project, {**NEVER, "pattern": "a"}, agent="triage")
    scored(project)
    verdict = AgentVerdict.objects.get()
    assert verdict.colour == "unknown"
    assert Conduct.objects.filter(state="no_bodies").count() == 5
    conduct = Conduct.objects.first()
    assert "structure only" in conduct.how
    assert "no texts of this trace are kept" in conduct.judged[0]["sentence"]
    assert TaskScore.objects.get().consistency == "insufficient"


def test_of_a_task_with_too_many_trials_the_first_are_scored(project, monkeypatch):
    monkeypatch.setattr(queries, "MOST_TRIALS", 3)
    upload_traces(project, *(says("a", trial=trial) for trial in range(1, 6)))
    scored(project)
    assert TaskScore.objects.get().trials == 3
    assert TraceScore.objects.count() == 5
