"""Reader of OpenHands: event lists, rows of evaluations, conversations of the SDK.

A list or lines of events are one run. A row {instance_id or issue, history} is one run
with what is known of its task. A conversation that was kept as one file for each event
is read as a folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from apps.engine.format import Folder, Item, Source
from apps.engine.reading.bytestream import HEAD_BYTES
from apps.engine.reading.group_files import GroupFiles, has_name
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.openhands.traces import (
    Beside,
    events_of_row,
    is_any_event,
    trace_of_events,
)

_ROW_KEYS: Final = frozenset({"history", "test_result", "instruction"})
_HOLDERS: Final = ("trajectory", "items", "events")
_EVENT_FILE: Final = re.compile(r"(.*/|)events/(?:event-)?(\d{1,9})(?:-[^/]+)?\.json")
_STATE: Final = "base_state.json"
_LOOKED_AT: Final = 4
_NOTHING: Final = "The file holds no event of OpenHands."


def _is_row(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and ("instance_id" in value or "issue" in value)
        and not _ROW_KEYS.isdisjoint(value)
        and "model_patch" not in value
    )


def _may_be_event(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {"id", "timestamp", "source"} <= value.keys()
        and value["source"] in ("user", "agent", "environment")
        and not {"system_prompt", "llm_message", "message"}.isdisjoint(value)
    )


def _held(value: Any) -> list[Any] | None:
    """Return the events of an object that holds nothing but a list of them."""
    for key in _HOLDERS if isinstance(value, dict) else ():
        events = value.get(key)
        if isinstance(events, list) and events and is_any_event(events[0]):
            return events
    return None


class OpenHands:
    """The format `openhands`."""

    slug = "openhands"
    label = "OpenHands events and evaluations"
    version = 1
    description = (
        "Events of OpenHands as a JSON list or JSON lines, of the older kind (action, "
        "observation) or of the SDK (kind), or output.jsonl of an evaluation. All "
        "events of one response are one model call."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with an event or with a row of an evaluation."""
        record = first_record(source)
        if is_any_event(record) or _is_row(record) or _held(record) is not None:
            return True
        # What kind of event it is stands after a prompt that may fill the whole head.
        return len(source.head) >= HEAD_BYTES and _may_be_event(record)

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each run; `UnreadableTrace` when there is none."""
        return demand_a_trace(_items(source), nothing=_NOTHING)


def _items(source: Source) -> Iterator[Item]:
    run: list[Any] = []

    def take(record: Record) -> Iterable[Item]:
        value = record.value
        if is_any_event(value):
            run.append(value)
            return ()
        held = _held(value)
        if held is not None:
            return (trace_of_events(held, Beside(number=record.number)),)
        if _is_row(value):
            beside = Beside(row=value, number=record.number)
            return (trace_of_events(events_of_row(value), beside),)
        raise RefusedRecord(
            "This is neither an event of OpenHands nor a row with a history.", "$"
        )

    yield from read_each(source, take, unroll=True)
    if run:
        yield trace_of_events(run, Beside())


class OpenHandsFolder:
    """The format `openhands-conversation`."""

    slug = "openhands-conversation"
    label = "OpenHands conversation folder"
    version = 1
    description = (
        "A conversation of OpenHands as it keeps it: a folder with one file for each "
        "event below events/, and base_state.json with the usage of each response."
    )

    def groups(self, folder: Folder) -> Iterator[tuple[str, ...]]:
        """Yield the files of each conversation: its events in order, then its state."""
        found: dict[str, list[tuple[int, str]]] = {}
        for name in folder.names:
            match = _EVENT_FILE.fullmatch(name)
            if match:
                found.setdefault(match[1], []).append((int(match[2]), name))
        for root, events in found.items():
            names = [name for _, name in sorted(events)]
            heads = map(folder.source, names[:_LOOKED_AT])
            if any(is_any_event(first_record(head)) for head in heads):
                state = [root + _STATE] if has_name(folder.names, root + _STATE) else []
                yield (*names, *state)

    def read_group(self, folder: Folder, names: tuple[str, ...]) -> Iterator[Item]:
        """Yield the trace of one conversation; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _conversation(folder, names), nothing="The folder holds no event."
        )


class _Conversation:
    """Collects the events and the state of one conversation, file by file."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.state: dict[str, Any] = {}

    def take_event(self, record: Record) -> Iterable[Item]:
        """Keep one event; raise `RefusedRecord` for what is none."""
        if not is_any_event(record.value):
            raise RefusedRecord("This is not an event of OpenHands.", "$")
        self.events.append(record.value)
        return ()

    def take_state(self, record: Record) -> Iterable[Item]:
        """Keep the state."""
        if isinstance(record.value, dict):
            self.state = record.value
        return ()


def _conversation(folder: Folder, names: tuple[str, ...]) -> Iterator[Item]:
    files, found = GroupFiles(folder), _Conversation()
    for name in names:
        is_state = name.rsplit("/", 1)[-1] == _STATE
        take = found.take_state if is_state else found.take_event
        yield from files.read(name, take, unroll=False)
    if found.events:
        yield trace_of_events(found.events, Beside(state=found.state))
