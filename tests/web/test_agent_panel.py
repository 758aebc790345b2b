"""Agents beside signals and traces: in the queue, on a signal, on a trace; and hidden."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from msgspec.structs import replace

from apps.agents.models import Agent
from apps.agents.queries import current_definition
from apps.engine.trace import Body, Step, StepKind
from apps.review.models import BlindLook, Signal
from apps.review.operations import DecisionInput, decide
from apps.review.transitions import Verdict
from apps.scoring.models import TaskScore, TraceScore
from apps.screening.definitions import Wanted, define
from apps.traces.models import Task, Trace
from tests.desks import FAIL, desk_trace
from tests.factories import NOW, model_call, trace_of, upload_traces
from tests.masked_desks import desk, falling, make_masked_desk
from tests.scored import asked_of, scored

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def kept(stand):
    project, _ = stand(make_masked_desk)
    return project


@pytest.fixture
def inside(client, kept):
    client.force_login(kept.members.get())
    return client


def html_of(client, page: str, project, *more, query: str = "") -> str:
    answer = client.get(reverse(page, args=[project.slug, *more]) + query)
    assert answer.status_code == 200
    return answer.content.decode().split("<main")[1]


def words(html: str) -> str:
    return re.sub(r"[ \n]+", " ", re.sub(r"<[^>]+>", " ", html))


def rows_of(client, project, query: str = "") -> list:
    url = reverse("queue", args=[project.slug]) + query
    return client.get(url).context["page"].rows


def said_by_user(seq: int, words: str) -> Step:
    return Step(seq=seq, kind=StepKind.USER_MESSAGE, body=Body(input=words))


def answered(seq: int, words: str) -> Step:
    return replace(model_call(seq, 20), body=Body(output=words))


def signal_at(project, agent: str) -> Signal:
    return Signal.objects.filter(project=project, agent=agent).order_by("pk").first()


class TestTheQueue:
    """Two chips, the mark of masking, runs and fork, and the view of what is masked."""

    def test_masked_signals_stand_first_though_others_are_rarer(self, inside, kept):
        assert [row.signal.agent for row in rows_of(inside, kept)] == [
            *["planner"] * 3,
            *["clerk"] * 2,
        ]
        rarest = rows_of(inside, kept, "?sort=rarest")
        assert rarest[0].signal.agent == "clerk"

    def test_the_tab_counts_the_masked_and_shows_only_them(self, inside, kept):
        html = html_of(inside, "queue", kept)
        assert re.search(
            r'<a href="\?masked=1">Masked <span class="n">3</span></a>', html
        )
        page = inside.get(reverse("queue", args=[kept.slug]) + "?masked=1")
        assert {row.signal.agent for row in page.context["page"].rows} == {"planner"}
        assert 'aria-current="page">Masked' in page.content.decode()
        assert '<input type="hidden" name="masked" value="1">' in page.content.decode()

    def test_a_row_has_the_verdict_of_its_agent_and_the_outcome(self, inside, kept):
        html = html_of(inside, "queue", kept)
        first, *_, last = re.findall(r'<li class="row signal".*?</li>', html, re.DOTALL)
        text = words(first)
        assert "agent red" in text
        assert "e2e passed" in text
        assert "masked" in text
        assert "masked" not in words(last)
        assert "agent green" in words(last)

    def test_runs_and_forks_are_of_its_task_and_never_0(self, inside, kept):
        by_agent = {
            row.signal.trace.name: row for row in rows_of(inside, kept, "?sort=oldest")
        }
        planner = by_agent["planner falls 1"]
        assert (planner.trials.label, planner.trials.n) == ("insufficient", 3)
        html = html_of(inside, "queue", kept, query="?sort=oldest")
        *_, single, alone = re.findall(r"<dl class=\"of-task.*?</dl>", html, re.DOTALL)
        assert "One run says nothing about how stable it is." in single
        assert "so nothing repeats it" in alone
        for one in (single, alone):
            assert "0" not in words(one)
            assert "—" in words(one)

    def test_a_task_that_forks_links_to_its_fork(self, inside, kept):
        task = TaskScore.objects.get(project=kept, task__key="mixed 1")
        trace = Trace.objects.filter(task_id=task.pk).first()
        Signal.objects.filter(pk=signal_at(kept, "clerk").pk).update(trace=trace)
        html = html_of(inside, "queue", kept)
        url = reverse("task-forks", args=[kept.slug, task.pk])
        assert re.search(rf'href="{url}">step {task.first_fork}</a>', html)

    def test_what_is_not_scored_yet_has_no_verdict(self, client, owner, project):
        upload_traces(project, falling(1, "planner", task="plan", trial=1))
        client.force_login(owner)
        html = html_of(client, "queue", project)
        assert "not scored yet" in html
        assert "agent green" not in words(html)
        assert "1 trace is not scored yet" in html


class TestASignal:
    """The agents of the trace stand beside the outcome, before the evidence."""

    def test_masking_is_said_with_the_stability_on_the_task(self, inside, kept):
        signal = signal_at(kept, "planner")
        html = html_of(inside, "signal", kept, signal.pk)
        panel = re.search(
            r"<section class=\"card agents-beside.*?</section>", html, re.DOTALL
        )
        text = words(panel.group())
        assert "planner is red although this trace passed." in text
        assert "e2e passed" in text
        assert "insufficient" in text
        assert "3 of 3 trials passed" in text
        planner = Agent.objects.get(project=kept, name="planner")
        assert reverse("agent", args=[kept.slug, planner.pk]) in panel.group()
        task = Task.objects.get(project=kept, key="plan 1")
        assert reverse("task", args=[kept.slug, task.pk]) in panel.group()
        assert "not assessed" not in html

    def test_a_trace_that_is_not_scored_says_so(self, inside, kept):
        signal = signal_at(kept, "planner")
        TraceScore.objects.filter(pk=signal.trace_id).delete()
        text = words(html_of(inside, "signal", kept, signal.pk))
        assert "This trace is not scored yet, so nothing is said of its agents." in text

    def test_an_agent_of_other_trials_has_no_verdict_here(self, client, owner, project):
        upload_traces(
            project,
            desk(1),
            desk_trace(("triage", [("says", {"route": "a"})]), trial=2),
        )
        scored(project)
        client.force_login(owner)
        trace = Trace.objects.get(project=project, trial=2)
        text = words(html_of(client, "trace", project, trace.pk))
        assert "memory not in this trace" in text
        assert "It acts in other trials of this task, not in this one." in text


class TestATrace:
    """Each agent with its reasons, its decision and how it was found; memory below."""

    def trace(self, project, name: str) -> Trace:
        return Trace.objects.get(project=project, name=name)

    def test_masking_comes_first_with_the_contract_that_broke(self, inside, kept):
        trace = self.trace(kept, "ticket 1, trial 1")
        html = html_of(inside, "trace", kept, trace.pk)
        text = words(html)
        assert "Masked: memory is red although this trace passed." in text
        assert text.index("Masked:") < text.index("What the checks answered")
        assert re.search(r"Knows the number , broken 1 of 1", text)
        assert "Contracts broke in 1 of 1" in text

    def test_a_broken_contract_links_to_its_step(self, inside, kept):
        asked_of(
            kept,
            "memory",
            {
                "name": "No search",
                "kind": "temporal",
                "temporal": {
                    "operator": "never",
                    "select": {"kind": "tool_call", "name": "search_notes"},
                },
            },
        )
        scored(kept)
        trace = self.trace(kept, "ticket 1, trial 1")
        html = html_of(inside, "trace", kept, trace.pk)
        judged = trace.conduct_set.get(agent__name="memory").judged[0]
        step = judged["step"] + 1
        assert f'?step={step}#step-{step}">step {step}</a>' in html

    def test_the_agent_decision_says_how_it_was_found(self, inside, kept):
        trace = self.trace(kept, "mixed 1, trial 1")
        text = words(html_of(inside, "trace", kept, trace.pk))
        assert "billing" in text
        conduct = trace.conduct_set.get(agent__name="triage")
        assert conduct.how in text
        assert "non-deterministic 2 of 4" in text
        assert "e2e failed" in text
        assert f"step {trace.task.taskscore.first_fork}" in text

    def test_a_failure_behind_green_agents_says_that_nothing_saw_it(self, inside, kept):
        trace = Trace.objects.get(project=kept, task__key="single 1")
        text = words(html_of(inside, "trace", kept, trace.pk))
        assert "although every agent in it is green: a gap in the contracts." in text

    def test_a_trace_that_is_not_scored_says_that_this_is_not_green(self, inside, kept):
        trace = self.trace(kept, "ticket 1, trial 1")
        TraceScore.objects.filter(pk=trace.pk).delete()
        text = words(html_of(inside, "trace", kept, trace.pk))
        assert "Not scored is not green." in text
        assert "Masked:" not in text

    def test_a_declared_fact_that_was_lost_is_localised(self, client, owner, project):
        lost = trace_of(
            [
                said_by_user(0, "My order is A-4471."),
                answered(1, "Thank you, noted."),
                said_by_user(2, "Which order did I mean?"),
                answered(3, "I do not know your order."),
            ]
        )
        upload_traces(project, lost)
        define(
            project_id=project.pk,
            wanted=Wanted(
                kind="planted-fact",
                label="Order number",
                spec={"value": "A-4471", "probe": "Which order"},
            ),
            user_id=None,
            now=NOW,
        )
        scored(project)
        [recall] = TraceScore.objects.get(project=project).recalls
        client.force_login(owner)
        html = html_of(client, "trace", project, Trace.objects.get(project=project).pk)
        memory = re.search(
            r'<section class="card flush" id="memory".*?</section>', html, re.DOTALL
        )
        text = words(memory.group())
        assert "A-4471" in text
        assert recall["state"] == "lost"
        assert "A-4471 order-number, declared lost" in text
        assert "step 1 → step 3 buried under 0 turns, 1 step" in text
        assert "0 of 1 recalled" in text
        assert f"?step={recall['answer_step'] + 1}#step-" in memory.group()

    def test_the_panel_asks_the_database_as_often_for_more_agents(
        self, client, owner, project
    ):
        several = [(f"agent {n}", [("says", {"route": "a"})]) for n in range(6)]
        upload_traces(
            project,
            desk_trace(*several[:2], task="few", trial=1),
            desk_trace(*several[:2], task="few", trial=2),
            desk_trace(*several, task="many", trial=1),
            desk_trace(*several, task="many", trial=2, outcome=FAIL),
        )
        scored(project)
        client.force_login(owner)
        asked = []
        for key in ("few", "many"):
            trace = Trace.objects.filter(project=project, task__key=key).first()
            url = reverse("trace", args=[project.slug, trace.pk])
            client.get(url)
            with CaptureQueriesContext(connection) as caught:
                client.get(url)
            asked.append(len(caught))
        assert asked[0] == asked[1]


def test_a_blind_look_gives_away_neither_verdicts_nor_the_outcome(inside, kept):
    trace = Trace.objects.get(project=kept, name="ticket 1, trial 1")
    look = BlindLook.objects.create(
        project=kept, trace=trace, was_flagged=True, place=0.5, created_at=NOW
    )
    text = words(html_of(inside, "blind", kept, look.pk))
    for word in (
        "masked",
        "although this trace passed",
        "e2e",
        "verdict",
        "knows the number",
    ):
        assert word not in text.lower()
    row = words(html_of(inside, "queue", kept)).split("Blind look:")[1]
    assert "agent" not in row.split("blind look")[0]


class TestWhatIsFinal:
    """A page of one trace says when what it shows of agents has been overtaken."""

    def is_final(self, client, project, signal) -> bool:
        pages = [
            html_of(client, "trace", project, signal.trace_id),
            html_of(client, "signal", project, signal.pk),
        ]
        waits = ["being brought up to date" in page for page in pages]
        assert waits[0] == waits[1]
        return not waits[0]

    def test_a_new_contract_and_a_confirmed_signal_are_said_until_they_count(
        self, inside, kept
    ):
        signal, owner = signal_at(kept, "clerk"), kept.members.get()
        assert self.is_final(inside, kept, signal)
        memory = Agent.objects.get(project=kept, key="memory")
        inside.post(
            reverse("agent-contract-new", args=[kept.slug, memory.pk]) + "?kind=regex",
            {"act": "save", "name": "Says more", "pattern": "27", "number": "1"},
        )
        assert current_definition(memory).number == 2
        assert not self.is_final(inside, kept, signal)
        scored(kept)
        assert self.is_final(inside, kept, signal)
        decide(
            signal_id=signal.pk,
            user=owner,
            decision=DecisionInput(verdict=Verdict.CONFIRM),
            base_version=signal.version,
        )
        assert not self.is_final(inside, kept, signal)
        scored(kept)
        assert self.is_final(inside, kept, signal)
