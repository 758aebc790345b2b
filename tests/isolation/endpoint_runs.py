"""Runs of one recorded agent against the model server, and its stubs."""

from __future__ import annotations

import random

from apps.engine.replay.case import Case, RecordedCall, ToolOffer
from apps.engine.replay.run import (
    AnswerSource,
    ModelCalled,
    ToolAnswer,
    ToolCalled,
)
from apps.isolation.client import Reach
from apps.isolation.hooks import Hooks
from apps.isolation.model_endpoint import (
    EndpointOrder,
    run_endpoint,
)
from apps.isolation.wall import inner_hosts

KEY = "sk-canary-0123456789"
LOOKUP = ToolOffer(
    name="lookup",
    description="Looks up an invoice.",
    parameters={"type": "object", "properties": {"number": {"type": "integer"}}},
)
CASE = Case(
    agent="billing",
    input="Is invoice 7 open?",
    messages=(
        {"role": "system", "content": "You answer about invoices."},
        {"role": "user", "content": "Is invoice 7 open?"},
    ),
    tools=(LOOKUP,),
    calls=(
        RecordedCall(tool="lookup", arguments={"number": 7}, result={"open": True}),
        RecordedCall(tool="lookup", arguments={"number": 8}, result={"open": False}),
    ),
    model="recorded-model",
)


class Stubs:
    """Answers the recorded call, misses everything else; keeps what it was asked."""

    def __init__(self, **more):
        self.asked = []
        self.more = more

    def __call__(self, tool, arguments) -> ToolAnswer:
        self.asked.append((tool, arguments))
        for place, one in enumerate(CASE.calls):
            if (tool, arguments) == (one.tool, one.arguments):
                return ToolAnswer(
                    source=AnswerSource.RECORDED,
                    result=one.result,
                    matched=place,
                    **self.more,
                )
        return ToolAnswer(source=AnswerSource.MISS, error=f"There is no {tool}.")


def ran(server, *, case=CASE, stubs=None, hooks=None, **more):
    order = EndpointOrder(
        case=case,
        base_url=server.url,
        secret=KEY,
        reach=Reach(inner=inner_hosts([server.host])),
        **more,
    )
    return run_endpoint(order, answer=stubs or Stubs(), hooks=hooks or waiting([]))


def waiting(waits, **more) -> Hooks:
    return Hooks(wait=waits.append, random=random.Random(1), **more)


def models(run) -> list[ModelCalled]:
    return [one for one in run.events if isinstance(one, ModelCalled)]


def tools(run) -> list[ToolCalled]:
    return [one for one in run.events if isinstance(one, ToolCalled)]
