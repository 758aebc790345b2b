"""Traces of any length in the shapes that make a careless rule slow.

Same seed, same trace. Each function returns a trace of exactly `count` steps.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from apps.engine.trace import (
    AgentInvocation,
    Body,
    FinishReason,
    ModelCall,
    OrderSource,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
    Usage,
    UsageState,
    Via,
)
from tests.benchmarks.corpus import TOOLS, WORDS

SECOND = 1_000_000_000
START = 1_772_000_000 * SECOND
Shape = Callable[[int], Trace]


def _words(source: random.Random, count: int) -> str:
    return " ".join(source.choices(WORDS, k=count))


def _model(
    seq: int, output: int, *, invocation: int = 0, end: int = 0, said: str = ""
) -> Step:
    start = START + seq * SECOND
    return Step(
        seq=seq, kind=StepKind.MODEL_CALL, invocation=invocation, start_ns=start,
        end_ns=end or start + SECOND // 2, status=StepStatus.OK,
        call=ModelCall(
            provider="p", model="m-1", finish=FinishReason.STOP,
            usage=Usage(state=UsageState.REPORTED, input_total=900 + seq, output_total=output),
        ),
        body=Body(output=said) if said else None,
    )  # fmt: skip


def _tool(
    seq: int, name: str, *, arguments: object, result: str, failed: bool = False
) -> Step:
    start = START + seq * SECOND
    return Step(
        seq=seq, kind=StepKind.TOOL_CALL, invocation=0, start_ns=start,
        end_ns=start + SECOND // 2, name=name,
        status=StepStatus.ERROR if failed else StepStatus.OK,
        call=ToolCall(name=name, call_id=f"call_{seq}", requested_by=seq - 1 if seq else None),
        body=Body(input=arguments, output=result),
    )  # fmt: skip


def _trace(name: str, steps: list[Step], invocations: int = 1) -> Trace:
    made = [
        AgentInvocation(
            number=number,
            agent=f"agent {number % 5}",
            parent=number - 1 if number else None,
            via=Via.ROOT if number == 0 else Via.SUBAGENT,
        )
        for number in range(invocations)
    ]
    return Trace(
        name=name,
        steps=tuple(steps),
        invocations=tuple(made),
        start_ns=START,
        order=OrderSource.TIME,
    )


def serial(count: int) -> Trace:
    """Model calls one after another, of any length."""
    source = random.Random(7)
    return _trace(
        "serial",
        [
            _model(seq, source.randrange(1, 900), said=_words(source, 12))
            for seq in range(count)
        ],
    )


def falling(count: int) -> Trace:
    """Model calls one after another, each shorter than the one before."""
    return _trace("falling", [_model(seq, 2 * count - seq) for seq in range(count)])


def parallel(count: int) -> Trace:
    """Model calls that all overlap one another."""
    end = START + (count + 1) * SECOND
    return _trace(
        "parallel", [_model(seq, 100 + seq % 7, end=end) for seq in range(count)]
    )


def nested(count: int) -> Trace:
    """Each call by an invocation that the one before it started."""
    steps = [_model(seq, 100 + seq % 7, invocation=seq) for seq in range(count)]
    return _trace("nested", steps, invocations=count)


def handoffs(count: int) -> Trace:
    """Three agents that hand over to one another, as a transcript shows them."""
    source = random.Random(7)
    steps = [
        _model(seq, 100, invocation=(0, 1, 0, 2)[seq % 4], said=_words(source, 40))
        for seq in range(count)
    ]
    return _trace("handoffs", steps, invocations=3)


def tools(count: int) -> Trace:
    """A model call and a tool call in turn, with arguments and results of 120 words."""
    source = random.Random(7)
    steps: list[Step] = []
    for seq in range(count):
        if seq % 2 == 0:
            steps.append(_model(seq, source.randrange(1, 900), said=_words(source, 40)))
            continue
        arguments = {"id": source.randrange(10**6), "note": _words(source, 4)}
        result = f"{_words(source, 120)} {source.randrange(10**6)}"
        name = source.choice(TOOLS)
        steps.append(_tool(seq, name, arguments=arguments, result=result))
    return _trace("tools", steps)


def same_tool(count: int) -> Trace:
    """One tool with the same arguments, the same result and, now and then, an error."""
    steps = [
        _tool(
            seq,
            TOOLS[0],
            arguments={"id": 7},
            result="no such reservation 7",
            failed=seq % 3 != 0,
        )
        for seq in range(count)
    ]
    return _trace("same tool", steps)


SHAPES: tuple[Shape, ...] = (
    serial,
    falling,
    parallel,
    nested,
    handoffs,
    tools,
    same_tool,
)
