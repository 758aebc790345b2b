"""Reader of OpenClaw's telemetry log: events of agents, tools and usage, as lines.

The end of an agent's run holds all messages of its session so far, so the last one
counts and the tool events before it repeat what is in it. A session that never ended
is read from its tool and usage events alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.kinds import kind_of
from apps.engine.reading.pi_messages import add_pi_message, is_pi_message
from apps.engine.reading.text_limits import IDENTIFIER, NAME, Remarks, clip
from apps.engine.reading.token_counts import Counts, usage_of, whole_number
from apps.engine.reading.transcript import Draft, ToolResult, Transcript
from apps.engine.trace import ModelCall, OrderSource, StepKind, StepStatus, Trace

_EVENTS: Final = frozenset(
    {
        "message.in", "message.out", "agent.start", "agent.end", "tool.start",
        "tool.end", "llm.usage",
    }
)  # fmt: skip
_UNENDED: Final = (
    "The run has no recorded end: its messages are missing, its tool and usage events "
    "are read alone."
)


class OpenClaw:
    """The format `openclaw-telemetry`."""

    slug = "openclaw-telemetry"
    label = "OpenClaw telemetry"
    version = 1
    description = (
        "The event log of OpenClaw's telemetry plug-in, one event a line. Each session "
        "key is one trace, read from the messages at the end of its last run."
    )

    def recognises(self, source: Source) -> bool:
        """Whether one of the first lines is an event with a sequence number."""
        return any(map(_is_event, first_values(source)))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each session; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source), nothing="The file holds no run of an OpenClaw agent."
        )


def _is_event(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and kind_of(value) in _EVENTS
        and "ts" in value
        and ("seq" in value or "sessionKey" in value)
    )


def _items(source: Source) -> Iterator[Item]:
    log = _Log()
    yield from read_each(source, log, unroll=True)
    yield from log.traces()


class _Log:
    """Sorts the events by session."""

    def __init__(self) -> None:
        self._sessions: dict[str, list[dict[str, Any]]] = {}
        self._unread: Counter[str] = Counter()

    def __call__(self, record: Record) -> Iterator[Trace]:
        event = record.value
        kind = event.get("type") if isinstance(event, dict) else None
        if not isinstance(kind, str):
            raise RefusedRecord("An event has a type.", "$")
        key = event.get("sessionKey")
        if kind in _EVENTS and isinstance(key, str):
            events = self._sessions.setdefault(key, [])
            if kind == "agent.end" and _messages(event):
                # What came before is in these messages too.
                events.clear()
            if not (events and _repeats(events[-1], event)):
                events.append(event)
        else:
            self._unread[kind[:40]] += 1
        yield from ()

    def traces(self) -> Iterator[Trace]:
        """Yield the trace of each session."""
        for key, events in self._sessions.items():
            trace = _trace(key, events, self._unread)
            if trace.steps:
                yield trace


def _repeats(before: dict[str, Any], event: dict[str, Any]) -> bool:
    """Whether a start was told twice: before and after its messages were loaded."""
    kinds = {before.get("type"), event.get("type")}
    prompt = event.get("prompt")
    return kinds == {"agent.start"} and bool(prompt) and before.get("prompt") == prompt


def _messages(event: dict[str, Any]) -> list[Any]:
    found = event.get("messages")
    return found if isinstance(found, list) else []


def _trace(key: str, events: list[dict[str, Any]], unread: Counter[str]) -> Trace:
    made = Transcript(Remarks())
    agent = next(
        (e["agentId"] for e in events if isinstance(e.get("agentId"), str)), None
    )
    made.invocations[0].agent = agent
    told = [event for event in events if event.get("type") == "agent.end"]
    if told and _messages(told[0]):
        for message in _messages(told[0]):
            if is_pi_message(message):
                add_pi_message(made, message, at=told[0].get("ts"))
        if told[0].get("success") is False:
            made.invocations[0].status = StepStatus.ERROR
        events = events[1:]
    else:
        made.remarks.add(_UNENDED)
    for event in events:
        _add_event(made, event)
    if unread:
        words = ", ".join(sorted(unread)[:20])
        made.remarks.add(
            f"Events of the file that belong to no session: {{n}} ({words}).",
            unread.total(),
        )
    steps, invocations, _ = made.finished()
    times = [step.start_ns for step in steps if step.start_ns is not None]
    session = clip(key, IDENTIFIER, made.remarks)
    return Trace(
        name=session or "session",
        steps=steps,
        invocations=invocations,
        session=session,
        start_ns=min(times, default=None),
        end_ns=max(times, default=None),
        order=OrderSource.FILE,
        notes=made.remarks.sentences(),
    )


def _add_event(made: Transcript, event: dict[str, Any]) -> None:
    kind, at = event.get("type"), any_time_ns(event.get("ts"))
    if kind == "agent.start":
        made.add(
            Draft(
                kind=StepKind.USER_MESSAGE,
                start_ns=at,
                end_ns=at,
                native_kind=kind,
                output=event.get("prompt"),
            )
        )
    elif kind == "tool.start":
        draft = made.ask(
            name=event.get("toolName"),
            call_id=event.get("toolCallId"),
            arguments=event.get("params"),
            by=None,
        )
        draft.start_ns = at
    elif kind == "tool.end":
        failed = event.get("success") is False
        made.give(
            ToolResult(
                output=event.get("result"),
                call_id=event.get("toolCallId"),
                status=StepStatus.ERROR if failed else StepStatus.OK,
                error_message=event.get("error"),
                end_ns=at,
            )
        )
    elif kind == "llm.usage":
        _add_usage(made, event, at)


def _add_usage(made: Transcript, event: dict[str, Any], at: int | None) -> None:
    model = clip(event.get("model"), NAME, made.remarks)
    made.add(
        Draft(
            kind=StepKind.MODEL_CALL,
            name=model,
            start_ns=at,
            end_ns=at,
            native_kind="llm.usage",
            call=ModelCall(
                provider=clip(event.get("provider"), NAME, made.remarks),
                model=model,
                usage=usage_of(
                    Counts(
                        input_total=whole_number(event.get("inputTokens")),
                        input_cached=whole_number(event.get("cacheTokens")),
                        output_total=whole_number(event.get("outputTokens")),
                        source="outputTokens",
                    )
                ),
            ),
        )
    )
