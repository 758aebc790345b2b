"""Batches over a model server on loopback, and workers that run them in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Sum
from django.db.models.functions import Now

from apps.agents.models import Agent
from apps.engine.replay.case import Case, ToolOffer
from apps.engine.replay.run import Ending, Proof, Ran, TargetKind
from apps.pipeline import replay_drivers
from apps.pipeline.replays import run_replays
from apps.replays.allowed import allowed_here
from apps.replays.cases import Origin, keep_cases
from apps.replays.models import (
    Batch,
    CaseSource,
    ReplayCase,
    Run,
    RunAttempt,
    Target,
)
from apps.replays.targets import NewTarget, add_target
from apps.replays.transitions import EXECUTED, RunState
from apps.traces.models import Trace, Upload
from tests.at_once import at_once
from tests.factories import NOW
from tests.model_server import ModelServer
from tests.replays.rows import LOOKED_UP, make_batch, make_case


def target_at(agent: Agent, server: ModelServer, settings: Any, **more: Any) -> Target:
    """A target at the server, which the operator allows from now on."""
    settings.REPLAY_HOSTS = [*settings.REPLAY_HOSTS, server.host]
    chosen = {"base_url": server.url, "model": "small", "max_tokens": 50, **more}
    new = NewTarget(name=f"At {server.host}", kind=TargetKind.OPENAI, settings=chosen)
    return add_target(
        agent=agent, new=new, allowed=allowed_here(), user_id=None, now=NOW
    )


def batch_at(target: Target, *, runs: int = 3, **more: Any) -> Batch:
    """A batch of one case that begins now."""
    cases = more.pop("cases", None) or [make_case(target.agent)]
    batch = make_batch(target, *cases, repeats=runs, **more)
    at_once_many = more.get("concurrency", 20)
    Batch.objects.filter(pk=batch.pk).update(started_at=Now(), concurrency=at_once_many)
    return batch


def work() -> None:
    """What one worker does until nothing waits any more."""
    while run_replays(clock=lambda: NOW):
        pass


def workers(count: int, *others: Callable[[], object]) -> list[object]:
    """So many workers at the same time, and whatever else happens meanwhile."""
    return at_once(*[work] * count, *others)


def states(batch: Batch) -> dict[str, int]:
    counts: dict[str, int] = {}
    for state in Run.objects.filter(batch=batch).values_list("state", flat=True):
        counts[state] = counts.get(state, 0) + 1
    return counts


def assert_whole(batch: Batch) -> None:
    """Every run is accounted for exactly once, and so is every call and every token."""
    batch.refresh_from_db()
    runs = list(Run.objects.filter(batch=batch))
    assert len(runs) == batch.run_count
    executed = [run for run in runs if RunState(run.state) in EXECUTED]
    traces = Trace.everything.filter(upload=batch.upload_id)
    assert not Trace.objects.filter(upload=batch.upload_id).exists()
    assert {run.trace_id for run in executed} == set(
        traces.values_list("pk", flat=True)
    )
    assert None not in {run.trace_id for run in executed}
    assert len(executed) == traces.count()
    attempts = RunAttempt.objects.filter(run__batch=batch)
    sums = attempts.aggregate(
        calls=Sum("calls", default=0),
        tokens=Sum("spent_tokens", default=0),
        money=Sum("spent_money", default=0),
    )
    assert (batch.spent_calls, batch.spent_tokens) == (sums["calls"], sums["tokens"])
    assert batch.spent_money == sums["money"]
    if batch.finished_at is not None:
        assert not batch.reserved_calls
        assert not batch.reserved_tokens
        assert not batch.reserved_money
        assert not attempts.filter(ended_at=None).exists()
    if traces.exists():
        upload = Upload.everything.get(pk=batch.upload_id)
        assert upload.trace_count == traces.count()
        assert upload.step_count == traces.aggregate(n=Sum("step_count"))["n"]


KEY = "sk-canary-0123456789abcdefghij"
PRICE = {"input": "1000000", "output": "1000000"}


def case_with_tool(agent: Agent, **more: Any) -> ReplayCase:
    """A case whose agent may call a tool that was recorded once."""
    offer = ToolOffer(name="lookup", parameters={"type": "object"})
    case = Case(
        agent=agent.name,
        input="Is it open?",
        tools=(offer,),
        calls=(LOOKED_UP,),
        **more,
    )
    [kept] = keep_cases(
        agent=agent,
        cases=[case],
        origin=Origin(CaseSource.HAND),
        user_id=None,
        now=NOW,
    )
    return kept.case


def drive(monkeypatch: Any, driver: Any) -> None:
    monkeypatch.setitem(replay_drivers.DRIVERS, TargetKind.OPENAI, driver)


def finished(output: Any = "A", *events: Any) -> Ran:
    """A run that finished with this output."""
    return Ran(
        ending=Ending.FINISHED,
        output=output,
        events=events,
        proof=Proof(level="none"),
        start_ns=1,
        end_ns=2,
    )
