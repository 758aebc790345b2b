"""A small language for writing sample traces by hand: who does what, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apps.engine.trace import (
    AgentInvocation,
    Body,
    FinishReason,
    ModelCall,
    OrderSource,
    Outcome,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
    Usage,
    UsageState,
    Via,
)

SECOND = 1_000_000_000
# 2026-02-02 08:00:00 UTC, a Monday.
FIRST_START = 1_770_019_200 * SECOND


class Script:
    """Collects the steps of one trace; every method appends one."""

    def __init__(self, *, number: int) -> None:
        self._steps: list[Step] = []
        self._invocations: list[AgentInvocation] = []
        self._current: int | None = None
        self._clock = FIRST_START + number * 900 * SECOND
        self._start = self._clock

    def _add(self, kind: StepKind, *, seconds: float, **facts: Any) -> int:
        seq = len(self._steps)
        start, self._clock = self._clock, self._clock + int(seconds * SECOND)
        self._steps.append(
            Step(
                seq=seq,
                kind=kind,
                invocation=self._current,
                start_ns=start,
                end_ns=self._clock,
                **facts,
            )
        )
        self._clock += SECOND // 5
        return seq

    def agent(self, name: str, *, via: Via = Via.ROOT) -> Script:
        """Let `name` act from here on, as a new invocation."""
        parent = self._current if via is not Via.ROOT else None
        self._current = len(self._invocations)
        self._invocations.append(
            AgentInvocation(
                number=self._current,
                agent=name,
                parent=parent,
                via=via,
                start_ns=self._clock,
                status=StepStatus.OK,
            )
        )
        return self

    def user(self, text: str) -> Script:
        """The customer says something."""
        self._add(StepKind.USER_MESSAGE, seconds=0.1, body=Body(input=text))
        return self

    def handoff(self, name: str, *, asked: Any = None) -> Script:
        """The current agent hands over to `name`, with what it asks where that is said."""
        body = None if asked is None else Body(input=asked)
        self._add(StepKind.HANDOFF, seconds=0.1, name=name, body=body)
        return self.agent(name, via=Via.HANDOFF)

    def says(
        self,
        text: str,
        *,
        tokens: int | None,
        reasoning: str | None = None,
        given: Sequence[str] = (),
    ) -> Script:
        """A model call of the current agent; `tokens` None means not reported.

        `given` are the messages to it, where they are recorded: what its instructions
        say, then what others said.
        """
        usage = (
            Usage()
            if tokens is None
            else Usage(
                state=UsageState.REPORTED,
                input_total=240 + 60 * len(self._steps),
                output_total=tokens,
                source="usage.output",
            )
        )
        self._add(
            StepKind.MODEL_CALL,
            seconds=0.6 + (tokens or 80) / 90,
            status=StepStatus.OK,
            call=ModelCall(
                provider="example",
                model="desk-1-mini",
                finish=FinishReason.STOP,
                usage=usage,
            ),
            body=Body(
                input=_messages(given) if given else None,
                output=text,
                reasoning=reasoning,
            ),
        )
        return self

    def calls(self, tool: str, result: Any, /, **arguments: Any) -> Script:
        """A tool call with its result."""
        self._add(
            StepKind.TOOL_CALL,
            seconds=0.4,
            status=StepStatus.OK,
            call=ToolCall(name=tool, call_id=f"call_{len(self._steps) + 1}"),
            body=Body(input=arguments, output=result),
        )
        return self

    def fails(self, tool: str, message: str, /, **arguments: Any) -> Script:
        """A tool call that ends in an error."""
        self._add(
            StepKind.TOOL_CALL,
            seconds=0.9,
            status=StepStatus.ERROR,
            error_type="ToolError",
            error_message=message,
            call=ToolCall(name=tool, call_id=f"call_{len(self._steps) + 1}"),
            body=Body(input=arguments),
        )
        return self

    def trace(
        self,
        name: str,
        *,
        outcome: Outcome,
        task: str | None = None,
        trial: int | None = None,
    ) -> Trace:
        """The finished trace."""
        return Trace(
            name=name,
            steps=tuple(self._steps),
            invocations=tuple(self._invocations),
            start_ns=self._start,
            end_ns=self._clock,
            order=OrderSource.TIME,
            outcome=outcome,
            task=task,
            trial=trial,
            metadata={"system": "support desk", "release": "2026.2"},
        )


def _messages(given: Sequence[str]) -> dict[str, Any]:
    told, *said = given
    messages = [{"role": "system", "content": told}]
    messages += [{"role": "user", "content": text} for text in said]
    return {"messages": messages}
