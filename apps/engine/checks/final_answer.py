"""The final answer: empty, refused, or missing where the trace ended in the middle.

Refusals are read from fields made for them, never from prose: “I cannot help with
that” is an answer here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from apps.engine.bodies import FinalAnswer, final_answer, has_bodies
from apps.engine.bodies.effects import ends_a_task
from apps.engine.bodies.recorded import NO_BODIES
from apps.engine.check import (
    Answer,
    Basis,
    Evidence,
    Judgement,
    Level,
    Screening,
    hash_of_inputs,
)
from apps.engine.rules import Rule, nothing_read
from apps.engine.trace import FinishReason, Step, StepStatus, ToolCall, Trace

_NOT_MODELLED: Final = (
    "What the answer says: a refusal in prose and a wrong answer are answers here.",
    "What a person saw: an answer may have been shown from elsewhere.",
)
_NOT_KEPT: Final = (
    "The file keeps no content of the last model call, so nothing can be said about its "
    "answer."
)


class _End(msgspec.Struct, frozen=True):
    """What stands after the last answer: the tool calls, and whether any has ended."""

    answer: FinalAnswer
    tools: tuple[Step, ...]
    results_recorded: bool

    @property
    def waiting(self) -> list[Step]:
        """The tool calls of the end without a result or an ending."""
        return [step for step in self.tools if not _is_ended(step)]

    @property
    def names(self) -> list[str]:
        """The names of the tools of the end."""
        return [s.call.name for s in self.tools if isinstance(s.call, ToolCall)]


@dataclass(frozen=True)
class FinalAnswerCheck(Rule):
    """Looks at the last answer of a trace and at what stands after it."""

    slug = "final-answer"
    label = "Empty or refused final answer"
    version = 1
    level = Level.REVIEW_SIGNAL
    basis = Basis.FACT
    needs_bodies = True
    observes = (
        "The last model call of the trace: whether it says anything, how it finished, "
        "whether a field for refusals is set, and whether tool calls follow that no "
        "answer came after."
    )
    null_model = (
        "None: an empty, refused or missing answer is a fact, not a statistic, and "
        "nothing is shuffled."
    )
    material_when = (
        "The last answer holds no text and asks for no tool; or it was stopped by a "
        "content filter or refused in a field made for that; or the trace ends in a "
        "tool call. Tools that end a task by design (finish, submit, transfer to a "
        "human, ...) are such an end, and named."
    )
    next_step = (
        "Open the last steps: the run may have been cut off by a limit or an error, "
        "the model may have answered elsewhere, or the user got nothing."
    )

    def run(self, trace: Trace) -> Iterator[Screening]:
        """Yield one answer about the whole trace."""
        answer = final_answer(trace)
        if answer is None:
            said = Judgement(
                Answer.NOT_APPLICABLE,
                "no_model_calls",
                "No answer recorded",
                "The trace holds no model call and no output of an agent.",
            )
            yield nothing_read(said, self.slug)
            return
        end = _end(trace, answer)
        hashed = hash_of_inputs(
            self.slug,
            answer.text,
            (
                answer.is_recorded,
                answer.finish,
                answer.refusal,
                answer.asked,
                answer.asks,
            ),
            [
                (name, _is_ended(s))
                for name, s in zip(end.names, end.tools, strict=True)
            ],
            (has_bodies(trace), end.results_recorded, answer.status),
        )
        said = _judged(end, has_bodies=has_bodies(trace))
        yield said.with_evidence(_evidence(end), hashed)


def _end(trace: Trace, answer: FinalAnswer) -> _End:
    """The tool calls after the last answer, or that it asked for."""
    calls = [step for step in trace.steps if isinstance(step.call, ToolCall)]
    after = [step for step in calls if step.seq > answer.step]
    after.sort(key=lambda step: step.seq)
    return _End(answer, tuple(after), any(map(_is_ended, calls)))


def _is_ended(step: Step) -> bool:
    """Whether the file says that a tool call ended: a result, a status, an end."""
    if step.status is StepStatus.UNFINISHED:
        return False
    if step.status in {StepStatus.OK, StepStatus.ERROR}:
        return True
    return step.body is not None and step.body.output is not None


def _judged(end: _End, *, has_bodies: bool) -> Judgement:
    answer = end.answer
    if answer.finish is FinishReason.CONTENT_FILTER or answer.refusal:
        return _refused(answer)
    # Tools that run after an answer that asked for none are steps of a program.
    is_answered = answer.text and (
        answer.finish is FinishReason.STOP or not answer.asks
    )
    if end.tools and not is_answered:
        return _ended_in_a_tool(end)
    if answer.status is StepStatus.ERROR and not answer.text:
        return _signal(
            "failed_call",
            "The last model call failed",
            "The last model call of the trace ended in an error and no answer follows.",
        )
    if not answer.is_recorded:
        kept = "answer_not_recorded" if has_bodies else "no_bodies"
        return _not_read(kept, _NOT_KEPT if has_bodies else NO_BODIES)
    if answer.text:
        return Judgement(
            Answer.QUIET,
            "answered",
            "Final answer of 1 character"
            if len(answer.text) == 1
            else f"Final answer of {len(answer.text):,} characters",
            "The last model call of the trace holds an answer, and nothing says that "
            "it was refused.",
        )
    return _empty(answer)


def _refused(answer: FinalAnswer) -> Judgement:
    how = (
        f"finished with “{answer.finish_raw or 'content_filter'}”"
        if answer.finish is FinishReason.CONTENT_FILTER
        else "holds a refusal in the field made for it"
    )
    return _signal(
        "refused",
        "The final answer was refused",
        f"The last model call {how}. That is what the provider recorded; whether the "
        "refusal was right is for a person to say.",
    )


def _empty(answer: FinalAnswer) -> Judgement:
    if answer.asks:
        return _not_read(
            "asks_for_a_tool",
            "The last model call asks for a tool and the file holds no tool call after "
            "it, so whether anything followed is not known.",
        )
    return _signal(
        "empty",
        "The final answer is empty",
        "The last model call of the trace holds no text and asks for no tool.",
    )


def _ended_in_a_tool(end: _End) -> Judgement:
    """What is said where tool calls follow the last answer."""
    name = end.names[-1]
    ending = next((one for one in reversed(end.names) if ends_a_task(one)), None)
    if ending is not None:
        where = (
            f"The trace ends in {ending}"
            if ending == name
            else f"Among the calls after the last answer is {ending}"
        )
        return _not_read(
            "ended_by_a_tool",
            f"{where}, a tool that ends a task by design, so no answer is expected "
            "after it.",
        )
    if end.waiting and not end.results_recorded:
        return _not_read(
            "results_not_recorded",
            f"The trace ends in a call of {name} and the file records no result of any "
            "tool call, so whether it went on is not known.",
        )
    if end.waiting:
        return _signal(
            "unfinished_tool_call",
            f"The trace ends in an unfinished call of {end.names[end.tools.index(end.waiting[0])]}",
            "The last model call asked for a tool, no result of it is recorded, and no "
            "answer follows: the trace ended in the middle.",
        )
    return _signal(
        "no_answer_after_tool",
        f"No answer after the result of {name}",
        f"The trace ends in a finished call of {name}, and no model call follows that "
        "reads its result: a limit, an error, or a tool that answers by itself.",
    )


def _signal(code: str, headline: str, reason: str) -> Judgement:
    return Judgement(Answer.SIGNAL, code, headline, reason, Level.REVIEW_SIGNAL)


def _not_read(code: str, reason: str) -> Judgement:
    return Judgement(Answer.NOT_APPLICABLE, code, "No final answer to judge", reason)


def _evidence(end: _End) -> Evidence:
    answer = end.answer
    facts: dict[str, Any] = {
        "finish": answer.finish.value,
        "characters": len(answer.text),
    }
    if answer.finish_raw:
        facts["finish_recorded_as"] = answer.finish_raw
    if answer.refusal:
        facts["refusal"] = answer.refusal[:300]
    if end.tools:
        facts["tools_after"] = end.names[:20]
    return Evidence(
        scope="trace",
        invocation=answer.invocation,
        agent=answer.agent,
        ended="end of the trace",
        length=1,
        steps=(answer.step, *[step.seq for step in end.tools[:20]]),
        not_modelled=_NOT_MODELLED,
        facts=facts,
    )
