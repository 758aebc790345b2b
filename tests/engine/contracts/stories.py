"""Traces and contracts for the tests, written as what happened and what is asked."""

from __future__ import annotations

from apps.engine.contracts import definition_check
from apps.engine.trace import (
    AgentInvocation,
    Body,
    ModelCall,
    OrderSource,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
)


def used(seq, name, *, arguments=None, result=None, body=True, **fields):
    held = Body(input=arguments, output=result) if body else None
    return Step(
        seq=seq, kind=StepKind.TOOL_CALL, call=ToolCall(name=name), body=held, **fields
    )


def asked(seq, text, **fields):
    body = Body(output=text)
    return Step(seq=seq, kind=StepKind.USER_MESSAGE, body=body, **fields)


def answered(seq, text, **fields):
    call = ModelCall(model="m-1", provider="p")
    return Step(
        seq=seq, kind=StepKind.MODEL_CALL, call=call, body=Body(output=text), **fields
    )


def story(*steps, agents=(), statuses=()):
    invocations = tuple(
        AgentInvocation(
            number=n,
            agent=agent,
            status=statuses[n] if n < len(statuses) else StepStatus.UNSET,
        )
        for n, agent in enumerate(agents)
    )
    return Trace(name="t", steps=steps, invocations=invocations, order=OrderSource.FILE)


def tools(*names):
    return story(*[used(n, name) for n, name in enumerate(names)])


def contract(operator, select, **fields):
    return definition_check(
        kind="contract",
        slug="one",
        label="One",
        version=1,
        spec={"operator": operator, "select": select, **fields},
    )


def fact(value, probe="number", **fields):
    return definition_check(
        kind="planted-fact",
        slug="one",
        label="One",
        version=1,
        spec={"value": value, "probe": probe, **fields},
    )


def only(check, trace):
    (found,) = check.run(trace)
    return found


def said(check, trace):
    found = only(check, trace)
    return found.answer.value, found.reason_code


def cel(expression):
    return {"language": "cel", "expression": expression}


def schema(json_schema, subject="arguments"):
    return {"language": "json_schema", "subject": subject, "json_schema": json_schema}
