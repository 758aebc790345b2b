"""Reader of CrewAI: events of its bus, the output of a crew, and the output log.

In the events a model call is `llm_call_completed`, owned by the agent whose execution
holds it. The total of a crew counts calls twice when agents share one model object, so
it is compared and never used. Crew output and output log record no calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.answers import Answer, add_answer
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.json_values import embedded
from apps.engine.reading.local_times import told_ns
from apps.engine.reading.recorded import (
    listed,
    mapping,
    remark_unread,
    time_range,
    word,
)
from apps.engine.reading.run_totals import known_outputs, remark_total
from apps.engine.reading.text_limits import NAME, Remarks, clip
from apps.engine.reading.transcript import Draft, Invoked, Transcript
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import (
    OrderSource,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
    Via,
)

_NO_CALLS: Final = (
    "The output of a crew records no model calls and usage only as a total, which "
    "counts calls twice when agents share one model: upload the events instead."
)
_NO_CALLS_IN_LOG: Final = (
    "The output log records what tasks began and ended, and no model calls."
)
_SURE: Final = frozenset(
    {"llm_call_completed", "crew_kickoff_started", "method_execution_started"}
)
_BEGINS: Final = frozenset({"crew_kickoff_started", "flow_started"})
_EXECUTIONS: Final = frozenset(
    {"agent_execution_started", "lite_agent_execution_started"}
)


class CrewAI:
    """The format `crewai`."""

    slug = "crewai"
    label = "CrewAI"
    version = 1
    description = (
        "Events of CrewAI's event bus as JSON lines (llm_call_completed, "
        "tool_usage_finished), the output of a crew, or its output_log_file. Only the "
        "events record model calls."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with an event, a crew output or a log entry."""
        record = first_record(source)
        return _is_event(record) or _is_output(record) or _is_entry(record)

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each kickoff or output; `UnreadableTrace` without any."""
        return demand_a_trace(
            _items(source), nothing="The file holds no event and no output of CrewAI."
        )


def _items(source: Source) -> Iterator[Item]:
    taker = _Taker()
    yield from read_each(source, taker, unroll=True)
    yield from taker.ends()


def _is_event(value: Any) -> bool:
    """Whether a value is an event; older ones have no sequence but a fingerprint."""
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    if "emission_sequence" in value or value["type"] in _SURE:
        return True
    return "source_fingerprint" in value and "timestamp" in value


def _is_output(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("tasks_output"), list)
        and "raw" in value
    )


def _is_entry(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"task", "agent", "status", "timestamp"} <= value.keys()
    )


class _Taker:
    """Makes a trace of each output, and of the events between two kickoffs."""

    def __init__(self) -> None:
        self._crew: _Crew | None = None
        self._entries: list[dict[str, Any]] = []
        self._count = 0

    def __call__(self, record: Record) -> Iterator[Item]:
        value = record.value
        if _is_event(value):
            if self._crew is not None and self._crew.ends_before(value):
                yield from self._ended(self._crew)
            self._crew = self._crew or _Crew()
            self._crew.take(value)
        elif _is_output(value):
            yield _of_output(value, record.number)
        elif _is_entry(value):
            self._entries.append(value)
        else:
            raise RefusedRecord("This is no event and no output of CrewAI.", "$")

    def _ended(self, crew: _Crew) -> Iterator[Item]:
        self._count += 1
        yield crew.trace(self._count)
        self._crew = None

    def ends(self) -> Iterator[Item]:
        """Yield what needed the whole file."""
        if self._crew is not None:
            yield from self._ended(self._crew)
        if self._entries:
            yield _of_log(self._entries)


class _Crew:
    """One run of a crew while its events are being read."""

    def __init__(self) -> None:
        self._remarks = Remarks()
        self._transcript = Transcript(self._remarks)
        self._owners: dict[str, int] = {}
        self._started: dict[str, dict[str, Any]] = {}
        self._name: Any = None
        self._totals: list[int | None] = []
        self._has_begun = False
        self._in_flow = False
        self._unread: Counter[str] = Counter()

    def ends_before(self, event: dict[str, Any]) -> bool:
        """Whether this event begins another run: a kickoff or flow of its own.

        A kickoff inside a flow, or inside another crew, is of the same run.
        """
        if event["type"] not in _BEGINS:
            return False
        is_inner = self._in_flow or word(event.get("parent_event_id")) in self._started
        return self._has_begun and not is_inner

    def take(self, event: dict[str, Any]) -> None:
        """Add one event; those of kinds that make no step are counted."""
        kind = event["type"]
        if isinstance(event.get("event_id"), str):
            self._started[event["event_id"]] = {
                key: event.get(key) for key in ("parent_event_id", "timestamp")
            }
        if kind in _BEGINS or kind == "flow_finished":
            self._frame(event)
        elif kind == "crew_kickoff_completed":
            self._add_total(mapping(event.get("output")).get("token_usage"))
        elif kind in _EXECUTIONS:
            self._execution(event)
        elif kind in {"llm_call_completed", "llm_call_failed"}:
            self._call(event)
        elif kind in {"tool_usage_finished", "tool_usage_error"}:
            self._tool(event)
        elif kind.endswith(("_failed", "_error")):
            self._failure(event)
        else:
            self._unread[kind] += 1

    def _frame(self, event: dict[str, Any]) -> None:
        """Take what begins or ends a run; a flow names it before its crews."""
        kind = event["type"]
        if kind != "crew_kickoff_started":
            self._in_flow = kind == "flow_started"
        self._has_begun = True
        self._name = self._name or event.get("flow_name") or event.get("crew_name")

    def _execution(self, event: dict[str, Any]) -> None:
        role = (
            mapping(event.get("agent")).get("role")
            or mapping(event.get("agent_info")).get("role")
            or event.get("agent_role")
        )
        own_id = word(event.get("event_id"))
        if not own_id:
            self._transcript.speaker(role)
            return
        self._owners[own_id] = self._transcript.invoke(
            Invoked(
                agent=role,
                parent=0,
                via=Via.MANAGED,
                start_ns=any_time_ns(event.get("timestamp")),
                native_id=event.get("event_id"),
            )
        )

    def _owner(self, event: dict[str, Any]) -> int:
        """Return the execution above an event, else the agent that the event names."""
        above, hops = event, 0
        while hops < 64:
            parent = word(above.get("parent_event_id"))
            if parent in self._owners:
                number = self._owners[parent]
                held = self._transcript.invocations[number]
                held.agent = held.agent or event.get("agent_role")
                return number
            if parent not in self._started:
                break
            above, hops = self._started[parent], hops + 1
        role = event.get("agent_role")
        if not isinstance(role, str):
            return 0
        return self._transcript.speaker(role)

    def _begin(self, event: dict[str, Any]) -> int | None:
        started = self._started.get(str(event.get("started_event_id")))
        return any_time_ns(started.get("timestamp")) if started else None

    def _call(self, event: dict[str, Any]) -> None:
        response = event.get("response")
        told = mapping(response)
        calls = (
            response if isinstance(response, list) else listed(told.get("tool_calls"))
        )
        answer = Answer(
            text=None if isinstance(response, list) else told.get("content", response),
            finish=event.get("finish_reason"),
            model=event.get("model"),
            response_id=event.get("response_id") or event.get("call_id"),
            counts=usage_counts(event.get("usage")),
            start_ns=self._begin(event),
            role=event["type"],
        )
        if event["type"] == "llm_call_failed":
            answer.error_type = event["type"]
            answer.error_message = str(event.get("error") or "")
        draft = add_answer(self._transcript, answer, self._owner(event))
        draft.end_ns = any_time_ns(event.get("timestamp"))
        draft.input = event.get("messages")
        if calls:
            draft.attributes = {"tool_calls": calls}

    def _tool(self, event: dict[str, Any]) -> None:
        name = clip(event.get("tool_name"), NAME, self._remarks) or "(unnamed tool)"
        failed = event["type"] == "tool_usage_error"
        start = any_time_ns(event.get("started_at"))
        self._transcript.add(
            Draft(
                kind=StepKind.TOOL_CALL,
                invocation=self._owner(event),
                name=name,
                native_kind=event["type"],
                native_id=event.get("event_id"),
                start_ns=self._begin(event) if start is None else start,
                end_ns=any_time_ns(event.get("finished_at") or event.get("timestamp")),
                status=StepStatus.ERROR if failed else StepStatus.OK,
                error_type=event["type"] if failed else None,
                error_message=str(event.get("error") or "") if failed else None,
                call=ToolCall(name=name),
                input=embedded(event.get("tool_args")),
                output=event.get("output"),
            )
        )

    def _failure(self, event: dict[str, Any]) -> None:
        self._transcript.add(
            Draft(
                kind=StepKind.OTHER,
                invocation=self._owner(event),
                native_kind=event["type"],
                end_ns=any_time_ns(event.get("timestamp")),
                status=StepStatus.ERROR,
                error_type=event["type"],
                error_message=str(event.get("error") or ""),
            )
        )

    def trace(self, number: int) -> Trace:
        """Return the trace; `number` names a crew without a name."""
        self._compare_total()
        remark_unread(self._remarks, "Events", self._unread)
        steps, invocations, order = self._transcript.finished()
        start, end = time_range(steps)
        return Trace(
            name=clip(self._name, NAME, self._remarks) or f"crew run {number}",
            steps=steps,
            invocations=invocations,
            start_ns=start,
            end_ns=end,
            order=order,
            notes=self._remarks.sentences(),
        )

    def _add_total(self, usage: Any) -> None:
        self._totals.append(usage_counts(usage).output_total)

    def _compare_total(self) -> None:
        outputs = known_outputs(self._transcript.drafts)
        known = [count for count in outputs if count is not None]
        told = sum(count or 0 for count in self._totals)
        if told and len(known) == len(outputs):
            remark_total(
                self._remarks, "crew", "output tokens", told=told, found=sum(known)
            )


def _of_output(value: dict[str, Any], number: int) -> Trace:
    """Return the trace of a crew output: what each agent said of its task."""
    remarks = Remarks()
    remarks.add(_NO_CALLS)
    transcript = Transcript(remarks)
    for task in value["tasks_output"]:
        held = mapping(task)
        invocation = transcript.invoke(
            Invoked(agent=held.get("agent"), parent=0, via=Via.MANAGED)
        )
        transcript.add(
            Draft(
                kind=StepKind.AGENT,
                invocation=invocation,
                name=held.get("name") or held.get("description"),
                native_kind="task output",
                input=held.get("messages") or held.get("description"),
                output=held.get("raw"),
            )
        )
    steps, invocations, _ = transcript.finished()
    return Trace(
        name=f"crew output {number}",
        steps=steps,
        invocations=invocations,
        order=OrderSource.FILE,
        metadata={"token_usage": value["token_usage"]}
        if "token_usage" in value
        else {},
        notes=remarks.sentences(),
    )


def _of_log(entries: list[dict[str, Any]]) -> Trace:
    """Return the trace of an output log: one step for each entry."""
    remarks = Remarks()
    remarks.add(_NO_CALLS_IN_LOG)
    transcript = Transcript(remarks)
    for entry in entries:
        agent = entry.get("agent")
        transcript.add(
            Draft(
                kind=StepKind.AGENT,
                invocation=transcript.speaker(agent) if agent else 0,
                name=f"{entry.get('status')}: {entry.get('task_name') or entry.get('task')}",
                native_kind="log entry",
                start_ns=told_ns(entry.get("timestamp"), remarks),
                output=entry.get("output"),
            )
        )
    steps, invocations, order = transcript.finished()
    start, end = time_range(steps)
    return Trace(
        name="crew output log",
        steps=steps,
        invocations=invocations,
        start_ns=start,
        end_ns=end,
        order=order,
        notes=remarks.sentences(),
    )
