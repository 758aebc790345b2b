"""A run whose workers died leaves no record: nothing that it did is called known."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from apps.accounts.models import User
from apps.engine.replay.run import Limits
from apps.pipeline import replay_endings
from apps.replays.batch_queries import levels_of
from apps.replays.budget import Cost, Payer, reserve
from apps.replays.models import Batch, Run
from apps.replays.results import LEVELS, run_lines
from apps.replays.running import claim_run
from apps.replays.transitions import MAX_TRIES
from tests.factories import make_project, make_user
from tests.replays.alone import work
from tests.replays.rows import make_agent, make_batch, make_case, make_target
from tests.web.visiting import text, url


@pytest.fixture
def owner(db, nobody_else) -> User:
    return make_user("olga")


@pytest.fixture
def project(owner):
    return make_project(owner=owner, name="Alone")


def batch_of_one(project) -> Batch:
    agent = make_agent(project)
    target = make_target(agent, seconds=30)
    batch = make_batch(target, make_case(agent), repeats=1, limits=Limits(seconds=120))
    Batch.objects.update(started_at=Now())
    return batch


def begun_and_left() -> None:
    """A worker begins a run, makes a call and dies."""
    one = claim_run(lease_seconds=60)
    reserve(Payer(one.batch_id, one.project_id, one.run_id, one.attempt), Cost(5))
    Run.objects.update(lease_until=Now() - timedelta(seconds=1))


@pytest.fixture
def run(project) -> Run:
    """The run, given up."""
    batch_of_one(project)
    for _ in range(MAX_TRIES):
        begun_and_left()
    work()
    return Run.objects.get()


def test_its_record_has_no_count_and_the_limits_and_calls_that_it_had(run):
    assert (run.state, run.level, run.has_breach) == ("failed", "unknown", False)
    assert set(run.proof) == {"level", "limits"}
    assert run.proof["limits"]["seconds"] == 30
    assert run.calls == MAX_TRIES
    [line] = [json.loads(one) for one in run_lines(run.batch, {})]
    assert line["proof"] == run.proof
    kept = run.trace.metadata["replay"]["proof"]
    assert kept == run.proof
    assert levels_of([run.group_id]) == {run.group_id: {"unknown": 1}}
    assert LEVELS["unknown"] == "not known: no record came back"


def test_its_page_says_that_nothing_is_known_and_no_number(client, owner, project, run):
    client.force_login(owner)
    page = text(client.get(url(project, "replay-run", run.pk)))
    assert "not known: no record came back" in page
    assert "<dt>Real calls</dt><dd>not known</dd>" in page
    assert "<dt>Answered by stubs</dt><dd>not known</dd>" in page
    assert page.count("Not known: no record of this run came back.") == 2
    assert f"{MAX_TRIES} model calls, tokens not known, cost not known" in page
    assert "<dt>Limits</dt><dd>30 s," in page
    for claimed in (
        "no isolation of the process",
        "None was seen",
        "It called no tool",
        "no tool was called for real",
        "no state was given",
        "none done",
    ):
        assert claimed not in page


def test_a_record_that_could_not_be_kept_is_not_called_an_execution_that_never_was(
    client, owner, project, monkeypatch
):
    def breaks(*_: object, **__: object) -> None:
        raise ValueError

    batch_of_one(project)
    for _ in range(MAX_TRIES):
        begun_and_left()
    monkeypatch.setattr(replay_endings, "write_replay_trace", breaks)
    work()
    run = Run.objects.get()
    assert (run.error_kind, run.calls, run.trace_id) == ("ours", MAX_TRIES, None)
    client.force_login(owner)
    page = text(client.get(url(project, "replay-run", run.pk)))
    assert page.count("Not known: no record of this run came back.") == 3
    assert "was not executed" not in page
    assert "no level was reached" not in page.casefold()
