"""Runs in the way of which something stands: rows, projects, answers, keys that leak."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
import zstandard
from django.apps import apps
from django.db import connection
from django.db.models.functions import Now
from django.test import Client

from apps.agents.models import Agent
from apps.engine.replay.run import Limits, TargetKind
from apps.pipeline import replay_endings
from apps.pipeline.replay_calls import LONGEST_WAIT
from apps.replays.allowed import allowed_here
from apps.replays.models import Batch, Group, Run, RunAttempt, Target
from apps.replays.sealing import set_secret
from apps.replays.targets import NewTarget, add_target
from apps.traces.models import Task, Trace, Upload
from tests.factories import NOW
from tests.model_server import model_server
from tests.replays.alone import (
    KEY,
    PRICE,
    assert_whole,
    batch_at,
    case_with_tool,
    drive,
    finished,
    states,
    target_at,
    work,
    workers,
)
from tests.replays.rows import make_target

LEAKY = """
import json, os, sys, urllib.request

def leaks(replay):
    url = replay.model_url + "/chat/completions"
    asked = {"model": "small", "messages": [{"role": "user", "content": "Say it."}]}
    kind = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(asked).encode(), kind)
    said = urllib.request.urlopen(request).read().decode()
    print(said)
    print(dict(os.environ), file=sys.stderr)
    return {"said": said, "environment": dict(os.environ)}
"""


@pytest.fixture(autouse=True)
def agent(agent_alone):
    return agent_alone


@pytest.fixture
def project(agent):
    return agent.project


def added(agent: Agent, kind: TargetKind, chosen: dict[str, Any]) -> Target:
    """A target of this kind that the operator allows at present."""
    new = NewTarget(name=kind.value, kind=kind, settings=chosen)
    return add_target(
        agent=agent, new=new, allowed=allowed_here(), user_id=None, now=NOW
    )


def given_up(batch: Batch) -> Run:
    """A run of a batch that is done although its runs could not be kept."""
    batch.refresh_from_db()
    assert (batch.state, batch.reserved_calls) == ("done", 0)
    run = Run.objects.filter(batch=batch).first()
    assert (run.state, run.error_kind, run.trace_id) == ("failed", "ours", None)
    assert "says nothing of the agent" in run.sentence
    return run


class TestRows:
    @pytest.mark.parametrize(
        ("table", "change"),
        [
            ("batch", "plan = '{\"stubs\": 5}'"),
            ("replaycase", "content = 'no case'"),
            ("group", 'regime = \'{"kind": "of a later version"}\''),
        ],
    )
    def test_what_cannot_be_read_fails_its_runs_and_keeps_no_other_waiting(
        self, agent, settings, table, change
    ):
        with model_server() as server:
            target = target_at(agent, server, settings)
            batch = batch_at(target, runs=2)
            with connection.cursor() as cursor:
                # Plans are frozen: only another version of the product wrote this.
                cursor.execute(f"ALTER TABLE replays_{table} DISABLE TRIGGER USER")
                cursor.execute(f"UPDATE replays_{table} SET {change}")  # noqa: S608
                cursor.execute(f"ALTER TABLE replays_{table} ENABLE TRIGGER USER")
            other = batch_at(target, runs=1, cases=[case_with_tool(agent)])
            work()
            assert server.stats.calls == 1
        assert "cannot be read" in given_up(batch).sentence
        assert states(other) == {"finished": 1}

    def test_what_cannot_be_kept_is_given_up_and_not_made_again(
        self, agent, monkeypatch, settings
    ):
        def breaks(**_: Any) -> None:
            raise ValueError

        monkeypatch.setattr(replay_endings, "write_replay_trace", breaks)
        with model_server() as server:
            batch = batch_at(target_at(agent, server, settings), runs=2)
            work()
            assert server.stats.calls == 2
        assert "could not be kept (ValueError)" in given_up(batch).sentence
        assert batch.spent_calls == 2

    @pytest.mark.parametrize("what", ["project", "upload"])
    def test_what_is_deleted_in_the_middle_leaves_no_orphan(
        self, agent, project, monkeypatch, what
    ):
        begun: list[int] = []

        def deletes(order, equipment):
            begun.append(order.run_id)
            if len(begun) == 2 and what == "project":
                project.delete()
            elif len(begun) == 2:
                Upload.everything.all().delete()
            return finished()

        drive(monkeypatch, deletes)
        batch = batch_at(make_target(agent), runs=3)
        work()
        if what == "upload":
            assert states(batch) == {"finished": 3}
            assert Trace.everything.count() == 2
            return
        assert len(begun) == 2
        for table in (Batch, Group, Run, RunAttempt, Upload, Task, Trace):
            rows = getattr(table, "everything", table.objects)
            assert not rows.exists(), table


class TestAnswers:
    @pytest.mark.parametrize("tokens", [2**62, 10**8])
    def test_a_usage_that_nobody_can_have_is_not_known(self, agent, settings, tokens):
        message = {"role": "assistant", "content": "open"}
        usage = dict.fromkeys(("prompt_tokens", "completion_tokens"), tokens)
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        with model_server(
            "json", value={"choices": [choice], "usage": usage}
        ) as server:
            batch = batch_at(target_at(agent, server, settings), runs=1, price=PRICE)
            work()
        assert_whole(batch)
        run = Run.objects.get(batch=batch)
        assert (run.state, run.money) == ("finished", None)
        # The worst that the call could cost.
        assert (batch.spent_money < 1_000, batch.is_money_known) == (True, False)

    @pytest.mark.parametrize(
        ("asked", "state"),
        [("9" * 30, "finished"), ("Thu, 31 Dec 2099 23:59:59 GMT", "failed")],
    )
    def test_no_wait_that_is_asked_for_blocks_for_ever(
        self, agent, settings, asked, state
    ):
        with model_server("rate_limited", times=1, retry_after=asked) as server:
            batch = batch_at(target_at(agent, server, settings), runs=1)
            workers(2)
        assert_whole(batch)
        assert states(batch) == {state: 1}
        late = Now() + timedelta(seconds=LONGEST_WAIT * 1.2)
        assert not Target.objects.filter(paused_until__gt=late).exists()


class TestPermissions:
    @pytest.mark.parametrize(
        ("kind", "chosen", "said"),
        [
            (TargetKind.OPENAI, {"model": "small"}, "Only the operator"),
            (TargetKind.CALLABLE, {"callable": "leaky:leaks"}, "the operator's list"),
            (TargetKind.COMMAND, {"command": "/bin/true"}, "the operator's list"),
        ],
    )
    def test_what_the_operator_allows_no_more_is_not_run(
        self, agent, settings, kind, chosen, said
    ):
        settings.REPLAY_CALLABLES, settings.REPLAY_COMMANDS = (
            ["leaky:leaks"],
            ["/bin/true"],
        )
        with model_server() as server:
            settings.REPLAY_HOSTS = [server.host]
            if kind is TargetKind.OPENAI:
                chosen = {**chosen, "base_url": server.url}
            batch = batch_at(added(agent, kind, chosen), runs=1)
            settings.REPLAY_HOSTS = []
            settings.REPLAY_CALLABLES = settings.REPLAY_COMMANDS = []
            work()
            assert server.stats.calls == 0
        assert_whole(batch)
        run = Run.objects.get(batch=batch)
        assert run.state == "failed"
        assert said in run.sentence


class TestElsewhere:
    def test_an_agent_elsewhere_is_run_over_http_and_calls_its_stubs(
        self, agent, settings
    ):
        def answers(body):
            [tool] = body["tools"]
            address = urlsplit(tool["url"]).path
            try:
                said = Client().post(
                    address, {"number": 7}, content_type="application/json"
                )
            finally:
                connection.close()
            return {"output": {"decision": said.json()["result"]}}

        settings.REPLAY_STUB_URL = "http://stubs.example"
        with model_server("json", value=answers) as server:
            settings.REPLAY_HOSTS = [server.host]
            chosen = {"url": f"{server.origin}/agent"}
            target = added(agent, TargetKind.HTTP, chosen)
            batch = batch_at(target, runs=2, cases=[case_with_tool(agent)])
            work()
        assert_whole(batch)
        run = Run.objects.filter(batch=batch).first()
        assert states(batch) == {"finished": 2}, run.sentence
        assert (run.level, run.proof["stubbed_calls"]) == ("elsewhere, stubbed", 1)
        assert run.trace.tool_call_count == 1


def test_the_key_of_a_target_is_nowhere_whoever_says_it(
    agent, settings, tmp_path, owner
):
    (tmp_path / "leaky.py").write_text(LEAKY)
    settings.REPLAY_FOLDERS = [str(tmp_path)]
    settings.REPLAY_CALLABLES = ["leaky:leaks"]
    says = {"choices": [{"message": {"role": "assistant", "content": f"It is {KEY}."}}]}
    said = {**says, "model": KEY, "output": [{KEY: KEY}], "error": None}
    with model_server("json", value=said) as server:
        targets = [target_at(agent, server, settings)]
        elsewhere = {"url": f"{server.origin}/agent", "header": "X-Key"}
        targets.append(added(agent, TargetKind.HTTP, elsewhere))
        local = {"callable": "leaky:leaks", "base_url": server.url, "model": "small"}
        targets.append(added(agent, TargetKind.CALLABLE, local))
        for target in targets:
            set_secret(target=target, text=KEY, user_id=owner.pk, now=NOW)
            batch = batch_at(target, runs=1, limits=Limits(seconds=20))
            work()
            assert_whole(batch)
            run = Run.objects.get(batch=batch)
            assert run.state == "finished", (target, run.sentence)
            assert KEY in json.dumps(server.stats.headers[-1])
    rows = list(everything())
    assert any("[the target's key]" in one for one in rows)
    assert [one for one in rows if KEY in one or KEY[10:] in one] == []


def everything():
    """Every row of every table as text, what is packed unpacked."""
    for table in apps.get_models(include_auto_created=True):
        for row in getattr(table, "everything", table._default_manager).values():
            yield f"{table.__name__} {[unpacked(value) for value in row.values()]}"


def unpacked(value: Any) -> Any:
    if not isinstance(value, bytes | memoryview):
        return value
    try:
        return zstandard.decompress(bytes(value))
    except zstandard.ZstdError:
        return bytes(value)
