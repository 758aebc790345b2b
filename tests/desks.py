"""Runs of a small support desk as traces, of which a test says who does what."""

from __future__ import annotations

from typing import Any

from apps.engine.trace import (
    AgentInvocation,
    Body,
    ModelCall,
    OrderSource,
    Outcome,
    OutcomeKind,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
    Via,
)

SECOND = 1_000_000_000
START = 1_770_000_000 * SECOND
PASS = Outcome(kind=OutcomeKind.PASS)
FAIL = Outcome(kind=OutcomeKind.FAIL)
UNKNOWN = Outcome()

Act = tuple[str, Any]
"""("says", answer) | ("calls", (tool, arguments, result)) | ("breaks", message)"""


def desk_trace(
    *acts: tuple[str, list[Act]],
    task: str = "ticket 1",
    trial: int = 1,
    outcome: Outcome = PASS,
    asked: Any = "Please refund order A-4471, it was charged twice.",
    temperature: float | None = None,
) -> Trace:
    """A trace in which each agent of `acts` acts in turn, as an invocation of its own."""
    steps: list[Step] = []
    invocations: list[AgentInvocation] = []

    def add(kind: StepKind, **more: Any) -> None:
        seq = len(steps)
        steps.append(
            Step(
                seq=seq,
                kind=kind,
                invocation=len(invocations) - 1 if invocations else None,
                start_ns=START + seq * SECOND,
                end_ns=START + seq * SECOND + SECOND // 2,
                **more,
            )
        )

    for number, (agent, done) in enumerate(acts):
        broke = any(kind == "breaks" for kind, _ in done)
        invocations.append(
            AgentInvocation(
                number=number,
                agent=agent,
                parent=None if number == 0 else 0,
                via=Via.ROOT if number == 0 else Via.HANDOFF,
                status=StepStatus.ERROR if broke else StepStatus.OK,
            )
        )
        if number == 0:
            add(StepKind.USER_MESSAGE, body=Body(input=asked))
        for kind, what in done:
            if kind == "says":
                settings = None if temperature is None else {"temperature": temperature}
                add(
                    StepKind.MODEL_CALL,
                    status=StepStatus.OK,
                    call=ModelCall(provider="openai", model="gpt-4o"),
                    body=Body(output=what, attributes=settings),
                )
            elif kind == "calls":
                name, arguments, result = what
                add(
                    StepKind.TOOL_CALL,
                    status=StepStatus.OK,
                    call=ToolCall(name=name, call_id=f"call_{len(steps)}"),
                    body=Body(input=arguments, output=result),
                )
            else:
                add(
                    StepKind.MODEL_CALL,
                    status=StepStatus.ERROR,
                    error_type="Error",
                    error_message=what,
                    call=ModelCall(provider="openai", model="gpt-4o"),
                )
    return Trace(
        name=f"{task}, trial {trial}",
        steps=tuple(steps),
        invocations=tuple(invocations),
        start_ns=START,
        order=OrderSource.TIME,
        outcome=outcome,
        task=task,
        trial=trial,
    )
