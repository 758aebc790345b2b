"""The pages of batches: the list, one while it runs, cancelling it and letting it go on."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.accounts.permissions import Role
from apps.agents.models import Agent
from apps.replays.models import Batch, Run, Target
from apps.replays.stopping import stop_batch
from tests.factories import make_member, make_project, make_user, upload_traces
from tests.masked_desks import desk
from tests.replays.ended import SAMPLING, decided, failed
from tests.replays.making import (
    make_alone,
    make_frozen_case,
    make_memory_batch,
    new_batch,
    run_out,
)
from tests.scored import scored
from tests.web.visiting import text, url


def make_place() -> None:
    """A desk whose memory agent was run alone, and forgets in a memory test."""
    project = make_project(owner=make_user("olga"), name="Support desk")
    upload_traces(project, *(desk(trial, task="ticket") for trial in range(1, 5)))
    scored(project)
    agent = Agent.objects.get(project=project, key="memory")
    make_alone(project, agent, project.trace_set.order_by("pk").first())
    make_memory_batch(project, agent)


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_place)


@pytest.fixture
def project(made, db):
    return Project.objects.get()


@pytest.fixture
def owner(made, db):
    return User.objects.get()


@pytest.fixture
def agent(project):
    return Agent.objects.get(project=project, key="memory")


def waiting(agent, *, repeats: int = 4, ended: int = 1, **more) -> Batch:
    """A batch of which some runs have ended and the others wait for an hour."""
    name = more.pop("name", "Long")
    case = make_frozen_case(agent, name=name, input=f"Is {name} open?")
    batch = new_batch(agent, case, name=name, repeats=repeats, **more)
    return run_out(batch, lambda run: decided("yes") if run.number <= ended else None)


class TestTheList:
    def test_it_shows_the_newest_first_with_runs_breaches_and_spending(
        self, web, project
    ):
        Batch.objects.filter(name="Alone").update(spent_calls=12, spent_tokens=1_500)
        page = text(web.get(url(project, "replays")))
        assert page.index("Card number") < page.index(">Alone<")
        assert "5 of 5" in page
        assert "1 did not finish" in page
        assert '<span class="pill red">1</span>' in page
        assert "12 calls, 1 500 tokens" in page
        assert "memory test" in page

    def test_a_filter_and_the_pages_keep_what_they_ask_for(self, web, project, agent):
        rows = Batch.objects.filter(project=project).values()
        copies = [
            Batch(**{**rows[0], "id": None, "name": f"Copy {number}"})
            for number in range(26)
        ]
        Batch.objects.bulk_create(copies)
        first = text(web.get(url(project, "replays") + f"?agent={agent.pk}&state=done"))
        assert "25 batches shown" in first
        [link] = {
            part.split('"')[0].replace("&amp;", "&")
            for part in first.split('href="')
            if "before=" in part.split('"')[0]
        }
        assert f"agent={agent.pk}" in link
        assert "3 batches shown" in text(web.get(url(project, "replays") + link))
        none = text(web.get(url(project, "replays") + "?state=cancelled"))
        assert "No batch matches" in none

    def test_without_a_batch_it_says_which_step_is_missing(self, client, db):
        empty = make_project(owner=make_user("erna"))
        client.force_login(empty.members.get())
        page = text(client.get(url(empty, "replays")))
        assert "It needs a target and a case first." in page
        viewer = make_member(empty, Role.VIEWER)
        client.force_login(viewer)
        page = text(client.get(url(empty, "replays")))
        assert "Only a maintainer or higher may change how agents are run alone" in page
        assert "Only a reviewer or higher may keep cases and start replays" in page

    def test_twice_as_many_batches_ask_no_more_queries(self, web, project, agent):
        def asked() -> int:
            with CaptureQueriesContext(connection) as queries:
                web.get(url(project, "replays"))
            return len(queries)

        asked()
        before = asked()
        for number in range(3):
            waiting(agent, name=f"More {number}")
        assert asked() == before


class TestOneBatch:
    def test_its_groups_say_what_it_decides_alone_and_in_the_pipeline(
        self, web, project
    ):
        batch = Batch.objects.get(name="Alone")
        page = text(web.get(url(project, "replay-batch", batch.pk)))
        assert "In the pipeline it decided “search_notes" in page
        assert "alone it decides “refunds” in 4 of 5, nothing in 1" in page
        assert "4 of 5" in page
        assert "1 breach" in page
        assert "5 to 100 model calls" in page
        assert "has no price for small" in page
        assert "hx-trigger" not in page.split('id="batch-live"')[1].split("</form>")[0]

    def test_while_it_runs_it_asks_again_and_says_why_it_waits(
        self, web, project, agent
    ):
        batch = waiting(agent)
        now = timezone.now()
        Target.objects.filter(pk=batch.target_version.target_id).update(
            paused_until=now + timedelta(seconds=400), needs_key=True
        )
        answer = web.get(url(project, "replay-batch-progress", batch.pk))
        page = text(answer)
        assert "<html" not in page
        assert "every 3s" in page
        assert "<b>1</b> of 4 runs executed" in page
        assert "The target asked all to wait" in page
        assert "The key of the target was refused" in page
        assert "3 runs wait before being tried again" in page
        assert "remaining time about 7 min" in page

    def test_it_says_that_no_worker_may_be_there(self, web, project, agent):
        batch = waiting(agent)
        Run.objects.filter(batch=batch, state="waiting").update(not_before=None)
        long_ago = timezone.now() - timedelta(minutes=3)
        Run.objects.filter(batch=batch).update(started_at=long_ago)
        Run.objects.filter(batch=batch, state="finished").update(finished_at=long_ago)
        page = text(web.get(url(project, "replay-batch-progress", batch.pk)))
        assert "No worker has begun a run for 3 min" in page

    def test_caps_stand_beside_what_is_spent_and_reserved(self, web, project, agent):
        batch = waiting(agent, price={"input": "1", "output": "2"})
        Batch.objects.filter(pk=batch.pk).update(
            spent_calls=40,
            reserved_calls=2,
            spent_money=Decimal("0.25"),
            max_money=Decimal(1),
            is_money_known=False,
        )
        page = text(web.get(url(project, "replay-batch", batch.pk)))
        assert "40 of 100" in page
        assert "2 more reserved" in page
        assert "at least 0.25 USD; some of it is not known of 1.00 USD" in page

    def test_a_person_cancels_it_and_lets_it_go_on_under_other_caps(
        self, web, project, agent
    ):
        batch = waiting(agent)
        here = url(project, "replay-batch", batch.pk)
        assert web.post(url(project, "replay-batch-cancel", batch.pk)).url == here
        page = text(web.get(here))
        assert "Somebody cancelled the batch. <span" in page
        assert "olga" in page
        assert "3 cancelled" in page
        again = web.post(url(project, "replay-batch-cancel", batch.pk))
        assert again.status_code == 409
        assert "cancelled already" in text(again)
        resume = url(project, "replay-batch-resume", batch.pk)
        wrong = web.post(resume, {"calls": "-3", "money": "x"})
        assert wrong.status_code == 422
        assert 'value="-3"' in text(wrong)
        assert "greater than or equal to 1" in text(wrong)
        Batch.objects.filter(pk=batch.pk).update(spent_calls=50)
        low = web.post(resume, {"calls": "50"})
        assert low.status_code == 409
        assert "Raise it first." in text(low)
        assert web.post(resume, {"calls": "500"}).url == here
        batch.refresh_from_db()
        assert (batch.state, batch.max_calls, batch.max_tokens) == (
            "running",
            500,
            None,
        )
        assert Run.objects.filter(batch=batch, state="waiting").count() == 3

    def test_what_a_cap_stopped_can_be_resumed_by_whoever_may(
        self, client, project, agent
    ):
        batch = waiting(agent)
        stop_batch(batch_id=batch.pk, sentence="The cap of 100 calls was reached.")
        client.force_login(make_member(project, Role.VIEWER))
        page = text(client.get(url(project, "replay-batch", batch.pk)))
        assert "The cap of 100 calls was reached." in page
        assert "3 over a cap" in page
        assert "Only a reviewer or higher may keep cases and start replays" in page

    def test_twice_as_many_groups_and_runs_ask_no_more_queries(
        self, web, project, agent
    ):
        def asked(batch: Batch) -> int:
            scored(project)
            with CaptureQueriesContext(connection) as queries:
                web.get(url(project, "replay-batch", batch.pk))
            return len(queries)

        def batch(name: str, cases: int) -> Batch:
            frozen = [
                make_frozen_case(agent, name=f"{name} {n}", input=f"{name} {n}")
                for n in range(cases)
            ]
            regimes = (SAMPLING,)
            made = new_batch(agent, *frozen, name=name, repeats=cases, regimes=regimes)
            return run_out(made, lambda run: decided("yes"))

        two, four = batch("two", 2), batch("four", 4)
        asked(two)
        assert asked(two) == asked(four)


class TestTheDownload:
    def test_it_has_every_run_with_its_proof_and_attempts(self, web, project):
        batch = Batch.objects.get(name="Alone")
        answer = web.get(url(project, "replay-batch-jsonl", batch.pk))
        lines = [json.loads(line) for line in answer.getvalue().splitlines()]
        assert [line["number"] for line in lines] == [1, 2, 3, 4, 5]
        assert lines[0]["decided"]["shown"] == "refunds"
        assert [one["ending"] for one in lines[0]["attempts"]] == [
            "put_back",
            "finished",
        ]
        assert lines[0]["attempts"][0]["retry_after"] == 12.0
        assert lines[3]["error_kind"] == "crashed"
        assert lines[4]["has_breach"]
        assert lines[4]["proof"]["real_calls"] == 0


class TestAMemoryTest:
    def test_its_curve_says_first_where_recall_is_no_longer_certain(self, web, project):
        batch = Batch.objects.get(name="Card number")
        page = text(web.get(url(project, "replay-batch", batch.pk)))
        assert "Recall is no longer certain from depth 6 on, where it is 3 of 5" in page
        assert page.count("Recall counts as certain at a depth where") == 1
        figure = page.split('id="recall-figure" type="application/json">')[1]
        drawn = json.loads(figure.split("</script>")[0])
        assert drawn["data"][0]["y"] == [100, 60, 0]
        rows = page.split('aria-label="Values of the curve"')[1].split("</table>")[0]
        assert "3 of 5" in rows
        assert "2 dropped by the summariser" in rows
        assert "Dropped by the summariser</dt><dd>7</dd>" in page
        lost = Run.objects.get(batch=batch, number=4, group__regime__depth=6)
        assert url(project, "replay-run", lost.pk) in page

    def test_without_a_trial_it_says_that_there_is_no_curve_yet(
        self, web, project, agent
    ):
        plan = Batch.objects.get(name="Card number").plan
        batch = new_batch(agent, name="Later", memory=plan["memory"], depths=(1, 6))
        page = text(web.get(url(project, "replay-batch", batch.pk)))
        assert "No trial has ended yet." in page
        run_out(batch, lambda run: failed(), judged=lambda run: {"is_untried": True})
        page = text(web.get(url(project, "replay-batch", batch.pk)))
        assert "No trial has ended yet." in page
