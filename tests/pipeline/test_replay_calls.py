"""What the calls of one attempt know of each other."""

from __future__ import annotations

from apps.engine.replay.run import ErrorKind, ModelCalled, RunError
from apps.pipeline import replay_calls
from apps.pipeline.replay_calls import Calls, Pace
from apps.pipeline.replay_rates import Rates
from apps.pipeline.replay_watch import Watch
from apps.replays.running import RunClaim


def test_a_call_that_cost_nothing_does_not_take_back_that_another_was_paid(monkeypatch):
    claim = RunClaim(
        run_id=1, batch_id=1, project_id=1, target_id=1, attempt=1, lease_seconds=60
    )
    calls = Calls(claim, Watch(), Pace(per_minute=60, price=None, rates=Rates()))
    refused = RunError(kind=ErrorKind.OVERLOADED, sentence="It is busy.")
    free, paid = ModelCalled(request={}, error=refused), ModelCalled(request={})
    may_have_been_billed = replay_calls.may_have_been_billed
    others = [paid]

    def while_another_thread_ends_its_call(event):
        if event is free and others:
            calls.after_call(others.pop())
        return may_have_been_billed(event)

    monkeypatch.setattr(
        replay_calls, "may_have_been_billed", while_another_thread_ends_its_call
    )
    assert calls._may_be_put_back()
    calls.after_call(free)
    assert not calls._may_be_put_back()
