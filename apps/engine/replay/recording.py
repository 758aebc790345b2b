"""The trace of a run: what an agent did alone, in the form of every other trace.

So pages, checks, scores and contracts read it as they read a recorded one. What only a
replay has (what answered a call, what was attempted, how far the run was isolated)
stands in attributes, in steps of their own and in the metadata under `replay`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.reading.text_limits import IDENTIFIER, MESSAGE, NAME, Remarks, clip
from apps.engine.replay.case import Case, case_hash
from apps.engine.replay.recorded_words import notes_of
from apps.engine.replay.run import (
    Effect,
    Ending,
    Event,
    Message,
    ModelCalled,
    Ran,
    Regime,
    StateSeen,
    TargetKind,
    ToolAnswer,
    ToolCalled,
    told_proof,
)
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

STATUSES: Final = {
    Ending.FINISHED: StepStatus.OK,
    Ending.FAILED: StepStatus.ERROR,
    Ending.TIMED_OUT: StepStatus.ERROR,
    Ending.CANCELLED: StepStatus.UNFINISHED,
    Ending.OVER_BUDGET: StepStatus.UNFINISHED,
    Ending.STOPPED: StepStatus.UNFINISHED,
}
"""How an invocation ended; only one that finished has decided anything."""

_SAYING: Final = {
    "user": StepKind.USER_MESSAGE,
    "human": StepKind.USER_MESSAGE,
    "system": StepKind.SYSTEM,
    "developer": StepKind.SYSTEM,
}


class RunTitle(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is called and belongs to: its task, the number of its trial, its regime."""

    name: str
    task: str | None = None
    trial: int | None = None
    session: str | None = None
    regime: Regime = Regime()
    target: TargetKind = TargetKind.OPENAI
    target_name: str = ""


def trace_of(case: Case, ran: Ran, title: RunTitle) -> Trace:
    """The trace of one attempt, with one invocation of the agent of the case.

    The first step stands for the whole run: it holds the input and, where the run
    finished, the output. What a run that did not finish gave back before is kept in
    its attributes and is no output. Steps are in the order of events; an attempted
    effect stands after as many events as had happened. Same arguments, same trace.
    """
    steps = _Steps(case, ran)
    return Trace(
        name=title.name,
        steps=tuple(steps.all()),
        invocations=(
            AgentInvocation(
                number=0,
                agent=case.agent or None,
                start_ns=ran.start_ns,
                end_ns=ran.end_ns,
                status=STATUSES[ran.ending],
            ),
        ),
        session=title.session,
        start_ns=ran.start_ns,
        end_ns=ran.end_ns,
        order=OrderSource.FILE,
        task=title.task,
        trial=title.trial,
        metadata={"replay": _metadata(case, ran, title)},
        notes=notes_of(ran),
    )


class _Steps:
    """Makes the steps of a run, in order and numbered as they come."""

    def __init__(self, case: Case, ran: Ran) -> None:
        self._case = case
        self._ran = ran
        self._remarks = Remarks()
        self._made: list[Step] = []
        self._seq_of: dict[int, int] = {}
        self._asked_by: dict[str, int] = {}

    def all(self) -> list[Step]:
        self._made.append(self._whole())
        effects = list(self._effects_in_order())
        for place, event in enumerate(self._ran.events):
            while effects and effects[0][0] <= place:
                self._made.append(self._attempted(effects.pop(0)[1]))
            step = self._of_event(event)
            self._seq_of[place] = step.seq
            self._made.append(step)
        for _, effect in effects:
            self._made.append(self._attempted(effect))
        return self._made

    def _effects_in_order(self) -> Iterator[tuple[int, Effect]]:
        """Each effect with the number of events before it, those of unknown place last."""
        end = len(self._ran.events)
        placed = [
            (end if one.after is None else min(max(one.after, 0), end), one)
            for one in self._ran.effects
        ]
        yield from sorted(placed, key=lambda item: item[0])

    def _whole(self) -> Step:
        """The step of the agent as a whole, which holds its input and its output."""
        ran, case = self._ran, self._case
        given = case.input if case.input is not None else list(case.messages) or None
        has_finished = ran.ending is Ending.FINISHED
        # Nothing given back is a missing decision; an absent output would be none at all.
        output = "" if ran.output is None or not has_finished else ran.output
        beside: dict[str, Any] = {"ending": ran.ending.value}
        if ran.output is not None and not has_finished:
            beside["unfinished_output"] = ran.output
        if ran.state is not None:
            beside["state"] = ran.state
        if ran.printed:
            beside["printed"] = ran.printed
        error = ran.error
        return Step(
            seq=0,
            kind=StepKind.AGENT,
            invocation=0,
            name=self._name(case.agent or "agent"),
            start_ns=ran.start_ns,
            end_ns=ran.end_ns,
            status=STATUSES[ran.ending],
            error_type=None if error is None else error.kind.value,
            error_message=None if error is None else self._message(error.sentence),
            body=Body(input=given, output=output, attributes=beside),
        )

    def _of_event(self, event: Event) -> Step:
        if isinstance(event, ModelCalled):
            return self._model(event)
        if isinstance(event, ToolCalled):
            return self._tool(event)
        if isinstance(event, Message):
            return self._message_step(event)
        return self._state(event)

    def _model(self, event: ModelCalled) -> Step:
        seq = len(self._made)
        for call_id in event.call_ids:
            self._asked_by[call_id] = seq
        error = event.error
        attributes: dict[str, Any] = {}
        if event.temperature is not None:
            attributes["temperature"] = event.temperature
        return self._step(
            StepKind.MODEL_CALL,
            name=self._name(event.model or "model"),
            times=(event.start_ns, event.end_ns),
            status=StepStatus.OK if error is None else StepStatus.ERROR,
            error_type=None if error is None else error.kind.value,
            error_message=None if error is None else self._message(error.sentence),
            call=ModelCall(
                provider=self._name(event.provider),
                model=self._name(event.model),
                finish=event.finish,
                finish_raw=self._id(event.finish_raw),
                usage=event.usage,
                response_id=self._id(event.response_id),
                retry_of=self._before(event.retry_of),
                tool_call_ids=event.call_ids,
            ),
            body=Body(
                input=event.request,
                output=event.output if event.output is not None else event.response,
                reasoning=event.reasoning,
                attributes=attributes or None,
            ),
        )

    def _before(self, place: int | None) -> int | None:
        """The `seq` of the model call at a place among the events, if it is one."""
        if place is None or place not in self._seq_of:
            return None
        found = self._seq_of[place]
        is_call = self._made[found].kind is StepKind.MODEL_CALL
        return found if is_call else None

    def _tool(self, event: ToolCalled) -> Step:
        answer = event.answer
        return self._step(
            StepKind.TOOL_CALL,
            name=self._name(event.tool),
            times=(event.start_ns, event.end_ns),
            status=StepStatus.ERROR if answer.error else StepStatus.OK,
            error_type=f"stub_{answer.source.value}" if answer.error else None,
            error_message=self._message(answer.error) if answer.error else None,
            call=ToolCall(
                name=self._name(event.tool) or "(unnamed tool)",
                call_id=self._id(event.call_id),
                requested_by=self._asked_by.get(event.call_id or ""),
            ),
            body=Body(
                input=event.arguments,
                output=_result(answer),
                attributes=_of_stub(answer),
            ),
        )

    def _message_step(self, event: Message) -> Step:
        kind = _SAYING.get(event.role, StepKind.OTHER)
        return self._step(
            kind,
            name=None if kind is not StepKind.OTHER else self._name(event.role),
            times=(event.at_ns, event.at_ns),
            body=Body(output=event.content),
        )

    def _state(self, event: StateSeen) -> Step:
        return self._step(
            StepKind.MEMORY,
            # One name for one memory, whenever it was looked at.
            name="state",
            times=(event.at_ns, event.at_ns),
            status=StepStatus.OK,
            body=Body(output=event.state, attributes={"turn": event.turn}),
        )

    def _attempted(self, effect: Effect) -> Step:
        what = f"attempted: {effect.kind.value} {effect.what}".strip()
        return self._step(
            StepKind.OTHER,
            name=self._name(what),
            status=StepStatus.ERROR if effect.is_breach else StepStatus.OK,
            error_type=effect.kind.value if effect.is_breach else None,
            error_message=self._message(_breach(effect)) if effect.is_breach else None,
            body=Body(
                attributes={
                    "effect": effect.kind.value,
                    "what": effect.what,
                    "was_stopped": effect.was_stopped,
                    "is_breach": effect.is_breach,
                }
            ),
        )

    def _step(
        self,
        kind: StepKind,
        *,
        times: tuple[int | None, int | None] = (None, None),
        **fields: Any,
    ) -> Step:
        return Step(
            seq=len(self._made),
            kind=kind,
            invocation=0,
            parent=0,
            start_ns=times[0],
            end_ns=times[1],
            **fields,
        )

    def _name(self, text: str) -> str | None:
        return clip(text, NAME, self._remarks)

    def _id(self, text: str | None) -> str | None:
        return clip(text, IDENTIFIER, self._remarks)

    def _message(self, text: str) -> str | None:
        return clip(text, MESSAGE, self._remarks)


def _result(answer: ToolAnswer) -> Any:
    """What the agent saw: the result, and of a failure its words."""
    return answer.result if answer.result is not None else answer.error or None


def _of_stub(answer: ToolAnswer) -> dict[str, Any]:
    """What is written on every tool step: what answered it, and that nothing was done."""
    said: dict[str, Any] = {"stub": answer.source.value}
    if answer.note:
        said["note"] = answer.note
    if answer.matched is not None:
        said["recording"] = answer.matched + 1
    if answer.writes:
        said["intended_write"] = True
    return said


def _breach(effect: Effect) -> str:
    held = {
        True: "It was held back.",
        False: "It was not held back.",
        None: "It is not known whether it was held back.",
    }[effect.was_stopped]
    return f"The agent attempted {effect.kind.value} {effect.what}. {held}"


def _metadata(case: Case, ran: Ran, title: RunTitle) -> dict[str, Any]:
    return {
        "case": {"name": case.name, "hash": case_hash(case)},
        "target": {"kind": title.target.value, "name": title.target_name},
        "regime": msgspec.to_builtins(title.regime),
        "ending": ran.ending.value,
        "error": None if ran.error is None else msgspec.to_builtins(ran.error),
        "level": ran.proof.level,
        "has_breach": ran.has_breach,
        "proof": told_proof(ran.proof),
    }
