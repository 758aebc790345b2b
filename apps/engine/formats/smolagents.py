"""Reader of smolagents memory (`agent.memory.get_full_steps()`).

Each action step and each planning step is one model call. An agent that another one
manages shows only as a tool call; its own steps are in its own memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.answers import Answer, Asked, add_answer, answer_of
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.json_values import embedded
from apps.engine.reading.recorded import first_text, listed, mapping, time_range, word
from apps.engine.reading.text_limits import NAME, Remarks
from apps.engine.reading.transcript import Draft, Transcript
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import StepKind, StepStatus, Trace

_MODEL_STEP: Final = frozenset({"model_input_messages", "model_output_message"})
_SHARED: Final = (
    "Steps whose tool calls share one observation, which is shown at the last: {n}."
)
_CAPPED: Final = "AgentMaxStepsError"
_MODEL_ERRORS: Final = frozenset({"AgentGenerationError", "AgentParsingError"})


class Smolagents:
    """The format `smolagents-memory`."""

    slug = "smolagents-memory"
    label = "smolagents memory"
    version = 1
    description = (
        "The steps of a smolagents agent's memory as a JSON list, or a run result with "
        "its steps. Action and planning steps are model calls; managed agents show as "
        "tool calls."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with steps of an agent's memory."""
        values = first_values(source)
        first = values[0] if values else None
        return _are_steps(first) or _are_steps(_steps_in(first))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each memory; `UnreadableTrace` without any."""
        values = first_values(source)
        is_one = bool(values) and _are_steps(values[0])
        return demand_a_trace(
            read_each(source, _traces, unroll=not is_one),
            nothing="The file holds no steps of smolagents.",
        )


def _steps_in(value: Any) -> Any:
    held = mapping(value)
    return held.get("steps", held.get("messages"))


def _are_steps(value: Any) -> bool:
    if not isinstance(value, list):
        return False
    return any(
        isinstance(step, dict)
        and ("step_number" in step or "plan" in step)
        and not _MODEL_STEP.isdisjoint(step)
        for step in value[:5]
    )


def _traces(record: Record) -> Iterator[Item]:
    value = record.value
    steps = value if isinstance(value, list) else _steps_in(value)
    if not isinstance(steps, list) or not steps:
        raise RefusedRecord("This holds no steps of smolagents.", "$")
    made = _Memory()
    for index, step in enumerate(steps):
        if not isinstance(step, dict):
            raise RefusedRecord("This is no step.", f"$[{index}]")
        made.take(step)
    yield made.trace(f"run {record.number}", mapping(value))


class _Memory:
    """One memory while it is being read."""

    def __init__(self) -> None:
        self._remarks = Remarks()
        self._transcript = Transcript(self._remarks)

    def take(self, step: dict[str, Any]) -> None:
        """Add one step of the memory."""
        if "step_number" in step or "plan" in step:
            self._model_step(step)
        elif "task" in step:
            self._say(StepKind.USER_MESSAGE, step["task"], "task")
        elif "system_prompt" in step:
            self._say(StepKind.SYSTEM, step["system_prompt"], "system_prompt")
        else:
            native = "final_answer" if "output" in step else "step"
            self._say(StepKind.OTHER, step.get("output", step), native)

    def _say(self, kind: StepKind, content: Any, native: str) -> None:
        self._transcript.add(Draft(kind=kind, native_kind=native, output=content))

    def _model_step(self, step: dict[str, Any]) -> None:
        message = mapping(step.get("model_output_message"))
        told = answer_of(message.get("raw")) or Answer()
        counts = usage_counts(step.get("token_usage"), "token_usage")
        is_plan = "plan" in step
        answer = Answer(
            text=step.get("plan") or step.get("model_output") or message.get("content"),
            reasoning=told.reasoning,
            asked=[] if is_plan else _asked(step),
            finish=told.finish,
            model=told.model,
            response_id=told.response_id,
            counts=counts,
            role="planning step" if is_plan else "action step",
        )
        answer.counts.input_cached = told.counts.input_cached
        answer.counts.output_reasoning = told.counts.output_reasoning
        timing = mapping(step.get("timing"))
        answer.start_ns = any_time_ns(timing.get("start_time"))
        number = len(self._transcript.drafts)
        draft = add_answer(self._transcript, answer)
        draft.end_ns = any_time_ns(timing.get("end_time"))
        draft.input = step.get("model_input_messages")
        self._observe(step, number)

    def _observe(self, step: dict[str, Any], number: int) -> None:
        """Join what the step observed, and its error, to the call they came from."""
        asked = self._transcript.drafts[number + 1 :]
        error = mapping(step.get("error"))
        if error.get("type") == _CAPPED:
            # The call itself succeeded: the run was not allowed another step.
            self._remarks.add("The run ended because it reached its maximum of steps.")
            error = {}
        if error and (not asked or word(error.get("type")) in _MODEL_ERRORS):
            _fail(self._transcript.drafts[number], error)
            error = {}
        if not asked:
            return
        if len(asked) > 1:
            self._remarks.add(_SHARED)
        last = asked[-1]
        last.output = step.get("observations") or step.get("action_output")
        if error:
            _fail(last, error)

    def trace(self, name: str, facts: dict[str, Any]) -> Trace:
        """Return the trace; `name` is used where nothing names it."""
        steps, invocations, order = self._transcript.finished()
        start, end = time_range(steps)
        return Trace(
            name=first_text(facts, ("name", "agent_name"), NAME, self._remarks) or name,
            steps=steps,
            invocations=invocations,
            start_ns=start,
            end_ns=end,
            order=order,
            notes=self._remarks.sentences(),
        )


def _fail(draft: Draft, error: dict[str, Any]) -> None:
    draft.status = StepStatus.ERROR
    draft.error_type = error.get("type")
    draft.error_message = error.get("message")


def _asked(step: dict[str, Any]) -> list[Asked]:
    made = []
    for call in listed(step.get("tool_calls")):
        held = mapping(call)
        function = mapping(held.get("function")) or held
        arguments = function.get("arguments")
        made.append(Asked(function.get("name"), held.get("id"), embedded(arguments)))
    return made
