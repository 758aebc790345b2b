"""What the JSON door says of an agent alone: counts apart, and facts, not last answers."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.accounts.permissions import Scope
from apps.agents.models import Agent
from apps.pipeline.experiments import result_of
from apps.replays.models import Batch, Run
from tests.api.replayed import get, lines_of, make_place
from tests.replays.making import make_unanswered_batch
from tests.web.visiting import text, url

NO_ANSWER = "No trial came to an answer: all 15 questions have none"
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_place)


@pytest.fixture
def owner(made, db):
    return User.objects.get(username="olga")


@pytest.fixture
def door(client_with, owner):
    return client_with(Project.objects.get(), Scope.READ)


@pytest.fixture
def memory_test(made, db):
    return Batch.objects.get(name="Card number")


def test_an_agent_has_the_counts_of_its_replays_apart_from_what_was_recorded(door):
    agent = Agent.objects.get(key="memory")
    found = door.get(reverse("api-agent", args=[agent.pk])).json()
    alone = found["alone"]
    assert (alone["runs"], alone["failed"], alone["breaches"]) == (20, 1, 1)
    facts = alone["memory"]
    assert (facts["k"], facts["n"], facts["lost"], facts["unclear"]) == (8, 15, 7, 0)
    assert (found["traces"], found["masked"]["alone"]) == (3, "red")
    assert found["memory"]["n"] == 0
    writer = Agent.objects.get(key="writer")
    other = door.get(reverse("api-agent", args=[writer.pk])).json()
    assert other["alone"] is None


def test_the_last_answers_of_a_memory_test_are_no_decisions(door, memory_test):
    batch = get(door, "batch", memory_test.pk)
    assert {one["score"] for one in batch["groups"]} == {None}
    assert {one["in_the_pipeline"] for one in batch["groups"]} == {None}
    assert batch["memory"]["sentences"]
    run = Run.objects.filter(batch=memory_test).first()
    assert get(door, "run", run.pk)["decided"] is None
    answer = door.get(reverse("api-replay-batch-runs", args=[memory_test.pk]))
    assert {one["decided"] for one in lines_of(answer)} == {None}


def test_where_nothing_was_answered_no_door_says_that_anything_was_lost(
    client, door, owner, memory_test
):
    agent = Agent.objects.get(key="memory")
    batch = make_unanswered_batch(memory_test.project, agent)
    found = get(door, "batch", batch.pk)["memory"]
    assert found["first_uncertain"] is None
    assert {one["standing"] for one in found["points"]} == {"unanswered"}
    assert found["sentences"][0].startswith(NO_ANSWER)
    assert NO_ANSWER in result_of(batch)
    client.force_login(owner)
    page = text(client.get(url(batch.project, "replay-batch", batch.pk)))
    assert NO_ANSWER in page
    assert "no answer in 5" in page
    assert "no longer certain" not in page
    assert "Where facts were lost" not in page


def test_what_a_memory_test_gave_a_signal_is_its_recall(memory_test):
    said = result_of(memory_test)
    assert "15 of 15 runs finished" in said
    assert "Recall is no longer certain from depth 6 on" in said
    assert "alone it decides" not in said


@pytest.mark.parametrize("why", ["", "The cap of 100 calls was reached."])
def test_what_ended_early_without_a_reason_is_told_with_single_blanks(memory_test, why):
    memory_test.state, memory_test.stopped_why = "cancelled", why
    said = result_of(memory_test)
    assert said.startswith("“")
    assert "was cancelled after 15 runs of 15, of which 15 finished. " in said
    assert why in said
    assert "  " not in said


def test_a_price_that_is_not_known_is_no_zero(door):
    batch = Batch.objects.get(name="Alone")
    Batch.objects.filter(pk=batch.pk).update(is_money_known=False)
    spent = get(door, "batch", batch.pk)["progress"]["spent"]
    assert (spent["money"], spent["is_money_known"]) == (None, False)
    run = Run.objects.filter(batch=batch).first()
    run.attempts.update(spent_tokens=10)
    assert {one["money"] for one in get(door, "run", run.pk)["attempts"]} == {None}
