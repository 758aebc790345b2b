"""Reader of OpenClaw's telemetry log: events of agents, tools and usage, as lines.

The end of an agent's run holds all messages of its session so far, so the last one
counts and the tool events before it repeat what is in it. A session that never ended
is read from its tool and usage events alone.

Version 2 keeps an answer without content as an empty one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Note, Source
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_items
from apps.engine.reading.pi_messages import add_pi_message, is_pi_message
from apps.engine.reading.recorded import kind_of, time_range
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
_NO_MESSAGE: Final = "Messages of unknown roles, not read: {n}."
_USAGE_AGAIN: Final = (
    "Usage events of a run whose calls have usage of their own, not counted again: {n}."
)
_UNENDED: Final = (
    "The run has no recorded end: its messages are missing, its tool and usage events "
    "are read alone."
)


class OpenClaw:
    """The format `openclaw-telemetry`."""

    slug = "openclaw-telemetry"
    label = "OpenClaw telemetry"
    version = 2
    description = (
        "The event log of OpenClaw's telemetry plug-in, one event a line. Each session "
        "key is one trace, read from the messages at the end of its last run."
    )

    def recognises(self, source: Source) -> bool:
        """Whether one of the first lines is an event with a sequence number."""
        return any(map(_is_event, first_items(source)))

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

    def traces(self) -> Iterator[Item]:
        """Yield the trace of each session, and what belongs to none."""
        for key, events in self._sessions.items():
            trace = _trace(key, events)
            if trace.steps:
                yield trace
        if self._unread:
            kinds = ", ".join(sorted(self._unread)[:20])
            sentence = f"Events of no session or of unknown kinds, not read ({kinds})."
            yield Note("openclaw_events_not_read", sentence, self._unread.total())


def _repeats(before: dict[str, Any], event: dict[str, Any]) -> bool:
    """Whether a start was told twice: before and after its messages were loaded."""
    kinds = {before.get("type"), event.get("type")}
    prompt = event.get("prompt")
    return kinds == {"agent.start"} and bool(prompt) and before.get("prompt") == prompt


def _messages(event: dict[str, Any]) -> list[Any]:
    found = event.get("messages")
    return found if isinstance(found, list) else []


def _trace(key: str, events: list[dict[str, Any]]) -> Trace:
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
            else:
                made.remarks.add(_NO_MESSAGE)
        if told[0].get("success") is False:
            made.invocations[0].status = StepStatus.ERROR
        events = _after_end(events[1:], made.remarks)
    else:
        made.remarks.add(_UNENDED)
    for event in events:
        _add_event(made, event)
    steps, invocations, _ = made.finished()
    start, end = time_range(steps)
    session = clip(key, IDENTIFIER, made.remarks)
    return Trace(
        name=session or "session",
        steps=steps,
        invocations=invocations,
        session=session,
        start_ns=start,
        end_ns=end,
        order=OrderSource.FILE,
        notes=made.remarks.sentences(),
    )


def _after_end(events: list[dict[str, Any]], remarks: Remarks) -> list[dict[str, Any]]:
    """Return the events of a run that began after the last end.

    The usage of the run that ended comes after its end, and its calls have their own.
    """
    begins = next(
        (at for at, one in enumerate(events) if one.get("type") == "agent.start"),
        len(events),
    )
    repeated = sum(one.get("type") == "llm.usage" for one in events[:begins])
    if repeated:
        remarks.add(_USAGE_AGAIN, repeated)
    rest = [one for one in events[:begins] if one.get("type") != "llm.usage"]
    return rest + events[begins:]


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
