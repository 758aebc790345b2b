"""Small invocations and contracts for the tests of agent contracts."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from apps.engine.agent_contracts import (
    ContractAnswer,
    ContractState,
    compiled,
    decoded_agent_contract,
    judged_alone,
)
from apps.engine.bodies.calls import called
from apps.engine.conduct import Conduct, InvocationConduct
from apps.engine.extraction import AUTOMATIC
from apps.engine.trace import Body, StepStatus
from tests.engine.traces import call, tool

HELD = ContractState.HELD
BROKEN = ContractState.BROKEN
DOES_NOT_APPLY = ContractState.DOES_NOT_APPLY
UNDECIDED = ContractState.UNDECIDED


def refund(seq: int, arguments: Any, name: str = "refund", **fields: Any):
    return tool(seq, name, invocation=0, body=Body(input=arguments), **fields)


def invocation(
    output: Any = None,
    *,
    given: Any = None,
    tools: tuple = (),
    status: StepStatus = StepStatus.OK,
    has_bodies: bool = True,
    **fields: Any,
) -> InvocationConduct:
    """One model call that gave `output`, after the calls of `tools`."""
    answer = call(len(tools), step={"body": Body(input=given, output=output)})
    return InvocationConduct(
        **{
            "number": 0,
            "agent": "router",
            "input": given,
            "output": output,
            "steps": (*tools, answer),
            "calls": tuple([called(step) for step in tools]),
            "rounds": (),
            "models": ("m",),
            "status": status,
            "has_bodies": has_bodies,
        }
        | fields
    )


def conduct(*invocations: InvocationConduct) -> Conduct:
    numbered = [
        msgspec.structs.replace(one, number=number)
        for number, one in enumerate(invocations)
    ]
    return Conduct("router", tuple(numbered))


def crashed(**fields: Any) -> InvocationConduct:
    return invocation(None, status=StepStatus.ERROR, **fields)


def contract(**spec: Any):
    return compiled(decoded_agent_contract({"name": "x"} | spec))


def answer(one: InvocationConduct, *, task=None, decision=AUTOMATIC, **spec: Any):
    """What the contract says; its sentences are checked by the way."""
    found = judged_alone(one, contract(**spec), decision=decision, task=task)
    assert_told(found)
    return found


def state(one: InvocationConduct, **spec: Any) -> ContractState:
    return answer(one, **spec).state


def assert_told(found: ContractAnswer) -> None:
    assert found.sentence.endswith(".")
    assert found.sentence[:1] == found.sentence[:1].upper()
    assert found.expected
    json.dumps(found.sentence)
