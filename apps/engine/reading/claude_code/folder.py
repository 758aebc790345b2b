"""Session files of Claude Code with the files of their subagents, in a folder.

Subagents write `agent-<id>.jsonl`: beside the session file in older versions, under
`<session>/subagents/` in newer ones, there with an `agent-<id>.meta.json` that names
the agent's type.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, Final

from apps.engine.format import Folder, Item, Rejected
from apps.engine.reading.claude_code.events import Event, Subagent
from apps.engine.reading.claude_code.lines import SessionLines
from apps.engine.reading.claude_code.sdk import as_line
from apps.engine.reading.claude_code.session import trace_of_session
from apps.engine.reading.json_gate import Record, RefusedRecord, records
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.json_words import excerpt

_META: Final = ".meta.json"


def groups_of(folder: Folder) -> Iterator[tuple[str, ...]]:
    """Yield the names of each session that has subagents, its own file first."""
    groups: dict[str, list[str]] = {}
    names = set(folder.names)
    for name in folder.names:
        path = PurePosixPath(name)
        if not path.name.startswith("agent-") or path.suffix != ".jsonl":
            continue
        session = _session_file(folder, path, names)
        if session is not None:
            group = groups.setdefault(session, [session])
            group.append(name)
            meta = name.removesuffix(".jsonl") + _META
            group.extend([meta] if meta in names else [])
    yield from map(tuple, groups.values())


def _session_file(folder: Folder, path: PurePosixPath, names: set[str]) -> str | None:
    for above in path.parents:
        if above.name == "subagents":
            name = f"{above.parent}.jsonl"
            return name if name in names else None
    for line in first_values(folder.source(str(path))):
        own = line.get("sessionId") if isinstance(line, dict) else None
        if isinstance(own, str):
            name = str(path.with_name(f"{own}.jsonl"))
            return name if name in names else None
    return None


def items_of_group(folder: Folder, names: tuple[str, ...]) -> Iterator[Item]:
    """Yield the trace of one session, and what could not be read of its files."""
    lines = SessionLines()
    timed: list[tuple[int, Event]] = []
    for name in names:
        if name.endswith(_META):
            continue
        before = len(lines.events)
        yield from _take_file(folder, name, lines)
        latest = 0
        for event in lines.events[before:]:
            latest = event.at if event.at is not None else latest
            timed.append((latest, event))
    # What the agents did is put in one order by time; each file keeps its own order
    # where lines have no time or the same.
    timed.sort(key=lambda pair: pair[0])
    lines.events[:] = [event for _, event in timed]
    for name in names:
        if name.endswith(_META):
            _take_meta(folder, name, lines)
    trace = trace_of_session(lines, name=PurePosixPath(names[0]).stem)
    if trace.steps:
        yield trace


def _take_file(folder: Folder, name: str, lines: SessionLines) -> Iterator[Item]:
    file = PurePosixPath(name).name
    agent_id = _agent_in(file)
    for item in records(folder.source(name), unroll=True):
        if not isinstance(item, Record):
            yield _placed(item, file)
            continue
        try:
            line = as_line(item.value)
            if agent_id and not line.get("agentId"):
                # Older files say only in their name whose lines they hold.
                line = {**line, "agentId": agent_id, "isSidechain": True}
            own = line.get("sessionId")
            if lines.session is None and isinstance(own, str):
                lines.session = own
            lines.take(line)
        except RefusedRecord as refusal:
            place = f"{file}, {item.place}, {refusal.path}"
            yield Rejected(place, refusal.reason, excerpt(str(item.value)[:300]))


def _agent_in(file: str) -> str:
    """Return the id of the subagent that a file is named after, else ""."""
    stem = file.removesuffix(".jsonl")
    return stem.removeprefix("agent-") if stem.startswith("agent-") else ""


def _placed(item: Item, file: str) -> Item:
    if isinstance(item, Rejected):
        return Rejected(f"{file}, {item.place}", item.reason, item.excerpt)
    return item


def _take_meta(folder: Folder, name: str, lines: SessionLines) -> None:
    """Name the agent of a subagent's file by the type that its meta file says."""
    values = first_values(folder.source(name))
    meta: Any = values[0] if values else None
    agent_id = _agent_in(PurePosixPath(name).name.removesuffix(_META))
    one = lines.subagents.setdefault(f"agent {agent_id}", Subagent(agent_id=agent_id))
    if isinstance(meta, dict):
        one.agent = one.agent or meta.get("agentType")
        one.tool = one.tool or meta.get("toolUseId")
