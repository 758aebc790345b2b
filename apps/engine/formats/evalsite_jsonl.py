"""Evalsite's own format: one JSON object a line, one trace an object.

    {"evalsite": 1, "trace": {...}, "agents": [...], "steps": [{"kind": ...}, ...]}

It is meant to be written by hand from any agent. Only `evalsite`, `steps` and the
kind of each step are required; null means "not recorded". Times are ISO 8601 or epoch
seconds, milliseconds, microseconds or nanoseconds, told apart by size. A step names
its agent, or the id of one of the `agents` when an agent is invoked more than once.
A line that breaks a rule is rejected with its JSON path and the value that was found;
the other lines are kept. All fields: `evalsite_fields.FIELDS`. The writer is
`evalsite_writer.dump`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.formats.evalsite_fields import FIELDS as FIELDS
from apps.engine.reading.fields_of import Fields
from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.recorded import body_with
from apps.engine.reading.text_limits import IDENTIFIER, LABEL, MESSAGE, NAME, Remarks
from apps.engine.reading.token_counts import Counts, usage_of
from apps.engine.trace import (
    AgentInvocation,
    Body,
    FinishReason,
    ModelCall,
    OrderSource,
    Outcome,
    OutcomeKind,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
    Usage,
    UsageState,
    Via,
)

VERSION: Final = 1
_WITHOUT_COUNTS: Final = {UsageState.MISSING, UsageState.ZERO_SUSPECT}


class EvalsiteJsonl:
    """The format `evalsite-jsonl`."""

    slug = "evalsite-jsonl"
    label = "Evalsite JSON lines"
    version = 1
    description = (
        "Evalsite's own format for traces of any agent: one JSON object a line with "
        '"evalsite": 1, a trace and its steps.'
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first record has the key `evalsite` and steps or a trace."""
        record = first_record(source)
        return (
            isinstance(record, dict)
            and "evalsite" in record
            and ("steps" in record or "trace" in record)
        )

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each line; raise `UnreadableTrace` when there is none."""
        return demand_a_trace(
            read_each(source, _traces, unroll=True), nothing="The file holds no trace."
        )


def _traces(record: Record) -> Iterator[Item]:
    yield trace_of(record.value, number=record.number)


def trace_of(value: Any, *, number: int = 1) -> Trace:
    """Return the trace of one object; raise `RefusedRecord` for the first broken rule.

    `number` names a trace that has neither name nor id.
    """
    remarks = Remarks()
    top = Fields(value, "$", remarks)
    if top.any("evalsite") != VERSION or top.any("evalsite") is True:
        raise top.refusal("evalsite", f"only version {VERSION} of the format is read")
    if top.any("steps") is None:
        raise top.refusal("steps", "a list of steps was expected")
    about = top.within("trace")
    agents = _Agents(top, remarks)
    steps = tuple(
        _step(Fields(raw, f"$.steps[{seq}]", remarks), seq, agents)
        for seq, raw in enumerate(top.list("steps"))
    )
    _check_references(steps)
    own_id = about.text("id", IDENTIFIER)
    notes = about.texts("notes", MESSAGE)
    return Trace(
        name=about.text("name", NAME) or own_id or f"trace {number}",
        steps=steps,
        invocations=agents.invocations(),
        native_id=own_id,
        session=about.text("session", IDENTIFIER),
        start_ns=about.time("start"),
        end_ns=about.time("end"),
        order=about.choice("order", OrderSource) or _order(steps),
        outcome=_outcome(about),
        task=about.text("task", LABEL),
        trial=about.count("trial"),
        metadata=about.mapping("metadata"),
        labels=about.mapping("labels"),
        notes=notes + remarks.sentences(),
    )


def _order(steps: tuple[Step, ...]) -> OrderSource:
    starts = [step.start_ns for step in steps]
    known = [start for start in starts if start is not None]
    in_order = len(known) == len(starts) and known == sorted(known)
    return OrderSource.TIME if in_order else OrderSource.FILE


def _outcome(about: Fields) -> Outcome:
    recorded = about.any("outcome")
    if recorded is None:
        return Outcome()
    if isinstance(recorded, str):
        kind = about.choice("outcome", OutcomeKind)
        return Outcome(kind=kind or OutcomeKind.UNKNOWN, source="trace.outcome")
    fields = about.within("outcome")
    return Outcome(
        kind=fields.choice("kind", OutcomeKind) or OutcomeKind.UNKNOWN,
        score=fields.number("score"),
        out_of=fields.number("out_of"),
        label=fields.text("label", LABEL),
        source=fields.text("source", LABEL) or "trace.outcome",
    )


class _Agents:
    """The invocations of a trace: those listed, and those that steps name."""

    def __init__(self, top: Fields, remarks: Remarks) -> None:
        listed = [
            Fields(raw, f"$.agents[{number}]", remarks)
            for number, raw in enumerate(top.list("agents"))
        ]
        self._by_id: dict[str, int] = {}
        self._by_name: dict[str, int] = {}
        for number, fields in enumerate(listed):
            self._by_id[fields.text("id", IDENTIFIER) or str(number)] = number
            name = fields.text("name", NAME)
            if name:
                self._by_name.setdefault(name, number)
        self._made = [
            self._invocation(fields, number) for number, fields in enumerate(listed)
        ]

    def _invocation(self, fields: Fields, number: int) -> AgentInvocation:
        parent = self._number(fields, "parent")
        if parent is not None and parent >= number:
            raise fields.refusal("parent", "an invocation listed before was expected")
        return AgentInvocation(
            number=number,
            agent=fields.text("name", NAME),
            parent=parent,
            via=fields.choice("via", Via) or Via.ROOT,
            start_ns=fields.time("start"),
            end_ns=fields.time("end"),
            status=fields.choice("status", StepStatus) or StepStatus.UNSET,
            native_id=fields.text("native_id", IDENTIFIER),
        )

    def _number(self, fields: Fields, key: str) -> int | None:
        wanted = fields.text(key, IDENTIFIER)
        if wanted is None:
            return None
        if wanted not in self._by_id:
            raise fields.refusal(key, "the id of one of the agents was expected")
        return self._by_id[wanted]

    def of_step(self, fields: Fields) -> int | None:
        """Return the invocation that a step names by id or by agent name."""
        number = self._number(fields, "invocation")
        if number is not None:
            return number
        name = fields.text("agent", NAME)
        if name is None:
            return None
        if name not in self._by_name:
            self._by_name[name] = len(self._made)
            self._made.append(AgentInvocation(number=len(self._made), agent=name))
        return self._by_name[name]

    def invocations(self) -> tuple[AgentInvocation, ...]:
        """Return all invocations by number."""
        return tuple(self._made)


def _step(fields: Fields, seq: int, agents: _Agents) -> Step:
    kind = fields.choice("kind", StepKind)
    if kind is None:
        allowed = ", ".join(one.value for one in StepKind)
        raise fields.refusal("kind", f"one of these was expected: {allowed}")
    error_type, error_message = _error(fields)
    failed = error_type is not None or error_message is not None
    status = fields.choice("status", StepStatus)
    return Step(
        seq=seq,
        kind=kind,
        invocation=agents.of_step(fields),
        parent=fields.count("parent"),
        name=fields.text("name", NAME),
        start_ns=fields.time("start"),
        end_ns=fields.time("end"),
        status=status or (StepStatus.ERROR if failed else StepStatus.UNSET),
        error_type=error_type,
        error_message=error_message,
        native_id=fields.text("id", IDENTIFIER),
        native_kind=fields.text("native_kind", IDENTIFIER),
        call=_call(fields, kind),
        body=_body(fields),
    )


def _error(fields: Fields) -> tuple[str | None, str | None]:
    if isinstance(fields.any("error"), str):
        return None, fields.text("error", MESSAGE)
    error = fields.within("error")
    return error.text("type", IDENTIFIER), error.text("message", MESSAGE)


def _call(fields: Fields, kind: StepKind) -> ModelCall | ToolCall | None:
    if kind is StepKind.TOOL_CALL:
        return ToolCall(
            name=fields.text("tool", NAME)
            or fields.text("name", NAME)
            or "(unnamed tool)",
            call_id=fields.text("call_id", IDENTIFIER),
            requested_by=fields.count("requested_by"),
        )
    if kind is not StepKind.MODEL_CALL:
        return None
    finish, finish_raw = _finish(fields)
    return ModelCall(
        provider=fields.text("provider", NAME),
        model=fields.text("model", NAME),
        finish=finish,
        finish_raw=finish_raw,
        usage=_usage(fields.within("usage")),
        response_id=fields.text("response_id", IDENTIFIER),
        conversation=fields.text("conversation", IDENTIFIER),
        retry_of=fields.count("retry_of"),
        is_placeholder=fields.flag("placeholder"),
        resets_context=fields.flag("resets_context"),
        tool_call_ids=fields.texts("tool_call_ids", IDENTIFIER),
    )


def _finish(fields: Fields) -> tuple[FinishReason, str | None]:
    """Return the reason; `finish` may be the wording of any vendor."""
    finish, raw = finish_of(fields.text("finish", IDENTIFIER))
    recorded = fields.text("finish_raw", IDENTIFIER)
    if recorded is not None:
        return finish, recorded
    return finish, raw if raw != finish.value else None


def _usage(fields: Fields) -> Usage:
    counts = Counts(
        input_total=fields.count("input"),
        input_cached=fields.count("cached"),
        input_cache_write=fields.count("cache_write"),
        output_total=fields.count("output"),
        output_reasoning=fields.count("reasoning"),
        total=fields.count("total"),
        source=fields.text("source", LABEL) or "usage.output",
    )
    state = fields.choice("state", UsageState)
    if state is None:
        return usage_of(counts)
    if state in _WITHOUT_COUNTS:
        if usage_of(counts).state is not UsageState.MISSING:
            raise fields.refusal("state", "this state allows no token counts")
        return Usage(state=state)
    return Usage(
        state=state,
        input_total=counts.input_total,
        input_cached=counts.input_cached,
        input_cache_write=counts.input_cache_write,
        output_total=counts.output_total,
        output_reasoning=counts.output_reasoning,
        total=counts.total,
        source=counts.source,
    )


def _body(fields: Fields) -> Body | None:
    return body_with(
        input=fields.any("input"),
        output=fields.any("output"),
        reasoning=fields.any("reasoning"),
        attributes=fields.mapping("attributes"),
    )


def _check_references(steps: tuple[Step, ...]) -> None:
    """Refuse numbers of steps that do not exist, and parents that are not before."""
    for step in steps:
        if step.parent is not None and step.parent >= step.seq:
            raise RefusedRecord(
                f"Found {step.parent}; the number of an earlier step was expected.",
                f"$.steps[{step.seq}].parent",
            )
        for key in ("requested_by", "retry_of"):
            number = getattr(step.call, key, None)
            if number is not None and not 0 <= number < len(steps):
                raise RefusedRecord(
                    f"Found {number}; the number of a step was expected.",
                    f"$.steps[{step.seq}].{key}",
                )
