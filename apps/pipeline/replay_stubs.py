"""The stubs of a run as an agent elsewhere reaches them: what it may call, and answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from apps.engine.replay.case import ToolOffer
from apps.engine.replay.run import ToolAnswer, ToolCalled
from apps.pipeline.replay_orders import order_of_run
from apps.replays.running import RunClaim
from apps.replays.stub_calls import Call, answer_call, calls_of, run_of_token
from apps.replays.stub_calls import NoSuchStubs as NoSuchStubs
from apps.scoring.storable import storable, storable_text


def offered_tools(*, token: str) -> tuple[ToolOffer, ...]:
    """The tools of the run whose stubs a token opens; raises `NoSuchStubs`."""
    return order_of_run(run_of_token(token).pk).case.tools


def answer_stub_call(
    *, token: str, tool: str, arguments: Any, now: datetime
) -> ToolAnswer:
    """What the stub answers to a call of a tool with these arguments, and keep it.

    Calls of one run are answered one after another; those beyond its limit are not
    kept. Raises `NoSuchStubs`.
    """
    run = run_of_token(token)
    order = order_of_run(run.pk)
    name, given = storable_text(tool), storable(arguments)

    def answer(log: Sequence[dict[str, Any]]) -> ToolAnswer:
        return order.session(log=log).answer(name, given)

    return answer_call(
        run=run,
        call=Call(tool=name, arguments=given),
        answer=answer,
        most=order.limits.tool_calls,
        now=now,
    )


def seen_calls(claim: RunClaim) -> tuple[ToolCalled, ...]:
    """The calls that the stubs of a claimed run have seen, as events, in order."""
    return tuple(
        ToolCalled(
            tool=one.tool,
            arguments=one.arguments,
            answer=msgspec.convert(one.answer, ToolAnswer),
            start_ns=_ns(one.called_at),
            end_ns=_ns(one.called_at),
        )
        for one in calls_of(claim.run_id, claim.attempt)
    )


def _ns(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1_000
