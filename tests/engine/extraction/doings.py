"""Conducts for the tests, written as what an agent gave back and which tools it called."""

from __future__ import annotations

from typing import Any

from apps.engine.conduct import Conduct, InvocationConduct, conducts_of
from apps.engine.extraction import decoded_decision, extracted
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


class Run:
    """One invocation of an agent: tool calls, a handoff, an output, and how it ended."""

    def __init__(
        self,
        output: Any = None,
        *calls: tuple[str, Any],
        status: StepStatus = StepStatus.UNSET,
        handoff: str = "",
        results: dict[str, Any] | None = None,
        bodies: bool = True,
    ) -> None:
        self.output, self.calls, self.status = output, calls, status
        self.handoff, self.results, self.bodies = handoff, results or {}, bodies

    def steps(self, number: int, begin: int) -> list[Step]:
        steps = []
        for name, arguments in self.calls:
            body = Body(input=arguments, output=self.results.get(name, "ok"))
            steps.append(self._step(begin, len(steps), number, name, body))
        model = Step(
            seq=begin + len(steps),
            kind=StepKind.MODEL_CALL,
            invocation=number,
            call=ModelCall(model="m", provider="p"),
            body=Body(output=self.output) if self.bodies else None,
        )
        steps.append(model)
        if self.handoff:
            handoff = Step(
                seq=begin + len(steps),
                kind=StepKind.HANDOFF,
                invocation=number,
                name=self.handoff,
                body=Body(attributes={}) if self.bodies else None,
            )
            steps.append(handoff)
        return steps

    def _step(self, begin: int, at: int, number: int, name: str, body: Body) -> Step:
        return Step(
            seq=begin + at,
            kind=StepKind.TOOL_CALL,
            invocation=number,
            call=ToolCall(name=name),
            body=body if self.bodies else None,
        )


def did(*runs: Run) -> Conduct:
    """What the one agent of a trace did, invocation by invocation."""
    steps: list[Step] = []
    for number, run in enumerate(runs):
        steps += run.steps(number, len(steps))
    invocations = tuple(
        AgentInvocation(number=number, agent="billing", status=run.status)
        for number, run in enumerate(runs)
    )
    trace = Trace("t", tuple(steps), invocations, order=OrderSource.FILE)
    (conduct,) = conducts_of(trace)
    return conduct


def gave(output: Any, *calls: tuple[str, Any], **facts: Any) -> Conduct:
    return did(Run(output, *calls, **facts))


def bare(output: Any, status: StepStatus = StepStatus.OK) -> Conduct:
    """A conduct with any output at all, without a trace around it."""
    one = InvocationConduct(
        number=0, agent="", input=None, output=output, steps=(), calls=(), rounds=(),
        models=(), status=status, has_bodies=True,
    )  # fmt: skip
    return Conduct("", (one,))


def asked(conduct: Conduct, **spec: Any):
    """What a definition, written as a person would store it, extracts."""
    return extracted(conduct, decoded_decision(spec))


def at(path: str, conduct: Conduct, **spec: Any):
    return asked(conduct, kind="jmespath", expression=path, **spec)
