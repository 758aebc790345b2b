"""The pages of a group and of a run, and what other pages say of a replay."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Project, User
from apps.agents.models import Agent
from apps.engine.replay.run import Effect, EffectKind, Ending, ErrorKind
from apps.replays.models import Batch, Run, StubCall
from apps.traces.models import Trace
from tests.factories import NOW
from tests.replays.desks import make_desk_alone
from tests.replays.ended import CHANGED, HASH, decided, failed
from tests.replays.making import make_frozen_case, new_batch, run_out
from tests.scored import scored
from tests.web.visiting import Elements, assert_inert, text, url


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_desk_alone)


@pytest.fixture
def project(made, db):
    return Project.objects.get()


@pytest.fixture
def owner(made, db):
    return User.objects.get()


@pytest.fixture
def agent(project):
    return Agent.objects.get(project=project, key="memory")


@pytest.fixture
def batch(project):
    return Batch.objects.get(name="Alone")


def run_of(batch: Batch, number: int) -> Run:
    return Run.objects.get(batch=batch, number=number)


class TestAGroup:
    def test_it_counts_runs_that_did_not_finish_and_stands_beside_the_pipeline(
        self, web, project, batch
    ):
        page = text(web.get(url(project, "replay-group", batch.pk, 1)))
        assert "they differ" in page
        beside = page.split('id="beside-title"')[1].split("</section>")[0]
        assert "5 of 5 (100" in beside
        assert "4 of 5 (80" in beside
        assert "failed before it decided" in beside
        assert "1 of 5 (20" in beside
        assert "“Knows the number”: broke in 5 of 5 applications" in beside
        agree = page.split('id="whole"')[1].split("</section>")[0]
        assert "run 4</a>" in agree
        assert "outlier" in agree
        rows = page.split('aria-label="Every run"')[1].split("</table>")[0]
        assert rows.count('class="is-breach"') == 1
        assert "KeyError &#x27;order&#x27;" in rows
        assert "1 did not finish and count" in page

    def test_before_the_first_run_it_says_so(self, web, project, agent):
        planned = new_batch(agent, make_frozen_case(agent, input="x"), name="Later")
        page = text(web.get(url(project, "replay-group", planned.pk, 1)))
        assert "No run was executed yet" in page
        run = planned.run_set.first()
        page = text(web.get(url(project, "replay-run", run.pk)))
        assert "This run is waiting" in page
        assert "Nothing is known: this run was not executed." in page
        assert "Real calls" not in page

    def test_a_run_without_a_recording_counts_as_failed(self, web, project, batch):
        run = run_of(batch, 1)
        Trace.everything.filter(pk=run.trace_id).delete()
        Run.objects.filter(pk=run.pk).update(state="failed")
        page = text(web.get(url(project, "replay-group", batch.pk, 1)))
        assert "“refunds” in 3 of 5, nothing in 2" in page


class TestARun:
    def test_a_breach_is_named_before_anything_else(self, web, project, batch):
        run = run_of(batch, 5)
        page = text(web.get(url(project, "replay-run", run.pk)))
        banner = page.split('class="banner ')[1]
        assert banner.startswith("red")
        assert banner.index("Breach: it tried to write a file") < banner.index(
            "This run finished."
        )
        assert "<code>/etc/notes.txt</code>, held back, after" in banner
        trace = url(project, "trace", run.trace_id)
        effects = page.split('aria-label="What it tried"')[1].split("</table>")[0]
        assert effects.index("metrics.example") < effects.index("/etc/notes.txt")
        assert f"{trace}?step=2#step-2" in effects
        assert f"{trace}?step=4#step-4" in effects

    def test_it_shows_what_answered_each_call_and_what_was_left_over(
        self, web, project, batch
    ):
        page = text(web.get(url(project, "replay-run", run_of(batch, 5).pk)))
        log = page.split('class="stub-log"')[1].split("</ol>")[0]
        for word in ("recorded", "miss", "static"):
            assert f"{word}</span>" in log
        assert "recording 1" in log
        assert "No recording has these arguments." in log
        assert "The nearest recording differs in “number”." in log
        assert "intended write, not done" in log
        assert "1 recording was never asked for" in page
        assert "Recording 2: <code>send_mail</code>" in page

    def test_its_proof_says_what_is_shown_and_what_is_not(self, web, project, batch):
        page = text(web.get(url(project, "replay-run", run_of(batch, 5).pk)))
        assert "<dt>Real calls</dt><dd><b>0</b>" in page
        assert "changed during the run" in page
        assert HASH in page
        assert CHANGED in page
        assert "Landlock and seccomp" in page
        assert "memory of the machine is shared" in page
        assert "they say nothing about what it cannot see" in page
        assert "the same before and after" in text(
            web.get(url(project, "replay-run", run_of(batch, 1).pk))
        )

    def test_an_input_that_was_never_given_back_is_not_called_changed(
        self, web, project, batch
    ):
        run = run_of(batch, 1)
        Run.objects.filter(pk=run.pk).update(proof={**run.proof, "input_after": ""})
        page = text(web.get(url(project, "replay-run", run.pk)))
        assert "whether it changed is not known" in page
        assert "changed during the run" not in page

    def test_what_it_printed_is_shown_with_its_control_characters(
        self, web, project, batch
    ):
        page = web.get(url(project, "replay-run", run_of(batch, 5).pk))
        content = page.content.decode()
        assert r"writing notes\x1b[31m red\x07 done" in content
        assert "\x1b" not in content

    def test_every_attempt_stands_there_with_what_the_target_asked(
        self, web, project, batch
    ):
        page = text(web.get(url(project, "replay-run", run_of(batch, 1).pk)))
        attempts = page.split('aria-label="Every attempt"')[1].split("</table>")[0]
        assert "put back" in attempts
        assert "The target asks to wait." in attempts
        assert "12 s" in attempts
        assert "finished" in attempts

    def test_a_run_that_did_not_finish_says_why_and_decided_nothing(
        self, web, project, agent
    ):
        case = make_frozen_case(agent, input="How long?")
        slow = new_batch(agent, case, name="Slow", repeats=1)
        sentence = "It took longer than 120 s."
        ran = failed(ErrorKind.TIMED_OUT, sentence, ending=Ending.TIMED_OUT)
        run_out(slow, lambda run: ran)
        scored(project)
        page = text(web.get(url(project, "replay-run", slow.run_set.get().pk)))
        assert "This run timed out" in page
        assert "It took longer than 120 s." in page
        assert "the run failed before it decided" in page

    def test_calls_that_came_over_the_network_stand_there_without_a_recording(
        self, web, project, batch
    ):
        run = run_of(batch, 1)
        answer = {"source": "handler", "result": 3}
        StubCall.objects.create(
            run=run,
            attempt=run.attempt,
            number=1,
            tool="sum",
            arguments=[1, 2],
            answer=answer,
            called_at=NOW,
        )
        Run.objects.filter(pk=run.pk).update(trace=None)
        page = text(web.get(url(project, "replay-run", run.pk)))
        assert "<code>sum</code>" in page
        assert "handler</span>" in page

    def test_hostile_texts_stay_texts_and_names_have_no_effect(
        self, web, project, agent
    ):
        bad = "<script>alert(1)</script>\u202e{{ 7 }}"
        what = Effect(kind=EffectKind.SOCKET, what=bad, after=99, was_stopped=None)
        case = make_frozen_case(agent, name=bad, input=bad)
        hostile = new_batch(agent, case, name=bad, repeats=1)
        run_out(hostile, lambda run: decided(bad, effects=(what,), printed=bad))
        scored(project)
        run = hostile.run_set.get()
        for name, args in (
            ("replays", ()),
            ("replay-batch", (hostile.pk,)),
            ("replay-group", (hostile.pk, 1)),
            ("replay-run", (run.pk,)),
            ("trace", (run.trace_id,)),
        ):
            page = web.get(url(project, name, *args))
            assert page.status_code == 200
            assert_inert(page.content.decode())
        shown = text(web.get(url(project, "replay-run", run.pk)))
        assert "not known whether it was held back" in shown
        assert "[U+202E]" in shown

    def test_a_run_with_more_calls_asks_no_more_queries(self, web, project, batch):
        def asked(number: int) -> int:
            with CaptureQueriesContext(connection) as queries:
                web.get(url(project, "replay-run", run_of(batch, number).pk))
            return len(queries)

        asked(3)
        assert asked(5) == asked(3)


def test_ids_for_the_focus_are_unique_on_a_page(web, project, batch):
    page = web.get(url(project, "replay-batch", batch.pk)).content.decode()
    ids = [one["id"] for _, one in Elements(page).found if "id" in one]
    assert len(ids) == len(set(ids))
    assert "batch-live" in ids
