"""Conversations in which each layer of a memory can fail, written as what happened."""

from __future__ import annotations

from typing import Any

from apps.engine.contracts.fact_spec import FactSpec
from apps.engine.contracts.mentions import Normaliser
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

TOLD = "My number is 84920."
PROBE = "What was my number?"
NOISE = "We spoke of the weather."


def fact(value="84920", probe="my number", how="space", **fields: Any) -> FactSpec:
    return FactSpec(value, probe, normaliser=Normaliser(how), **fields)


class Talk:
    """Collects steps; every method appends one and returns the talk."""

    def __init__(self, *agents: str) -> None:
        self.steps: list[Step] = []
        self.agents = agents

    def _add(self, kind: StepKind, given: Any, gave: Any, **facts: Any) -> Talk:
        self.steps.append(
            Step(
                seq=len(self.steps),
                kind=kind,
                body=Body(input=given, output=gave),
                **facts,
            )
        )
        return self

    def user(self, text: str, by: int | None = None) -> Talk:
        return self._add(StepKind.USER_MESSAGE, None, text, invocation=by)

    def says(self, text: Any, *, sent: Any = None, by: int | None = None, **call: Any):
        call = {"model": "m"} | call
        return self._add(
            StepKind.MODEL_CALL, sent, text, invocation=by, call=ModelCall(**call)
        )

    def uses(
        self,
        tool: str,
        result: Any,
        *,
        by: int | None = None,
        failed: bool = False,
        asked_by: int | None = None,
        **given: Any,
    ) -> Talk:
        return self._add(
            StepKind.TOOL_CALL,
            given,
            result,
            invocation=by,
            call=ToolCall(name=tool, requested_by=asked_by),
            status=StepStatus.ERROR if failed else StepStatus.OK,
        )

    def step(self, kind: StepKind, name: str, given: Any, gave: Any, by=None) -> Talk:
        return self._add(kind, given, gave, name=name, invocation=by)

    def trace(self) -> Trace:
        return Trace(
            name="talk",
            steps=tuple(self.steps),
            invocations=tuple(
                AgentInvocation(number=number, agent=agent)
                for number, agent in enumerate(self.agents)
            ),
            order=OrderSource.FILE,
        )


def asked(answer: str, *, value: str = "84920", told: str | None = None) -> Trace:
    """Told, two turns of something else, and the answer to the probe."""
    return (
        Talk()
        .user(told or f"My number is {value}.")
        .says("Noted.")
        .user("And the weather?")
        .says("Fine.")
        .user("And tomorrow?")
        .says("Fine too.")
        .user(PROBE)
        .says(answer)
        .trace()
    )
