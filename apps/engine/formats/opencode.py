"""Reader of opencode sessions as `opencode export` writes them: {info, messages}.

A message is made of parts; a step of the model ends with a part of type step-finish,
which has its own tokens. Input tokens stand beside what the cache holds.
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
from apps.engine.reading.json_peek import first_record
from apps.engine.reading.opencode_parts import Answer
from apps.engine.reading.recorded import remark_unread, text_in
from apps.engine.reading.session_traces import session_trace
from apps.engine.reading.text_limits import Remarks
from apps.engine.reading.transcript import Draft, Transcript
from apps.engine.trace import StepKind, Trace

_NOTHING: Final = "The file holds no opencode session with messages."


class OpenCode:
    """The format `opencode`."""

    slug = "opencode"
    label = "opencode session"
    version = 1
    description = (
        "A session of opencode as opencode export writes it, {info, messages: [{info, "
        "parts}]}, or the list of its messages. Each step of the model has its tokens."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first record is a session, or a message with parts."""
        record = first_record(source)
        return _is_session(record) or _is_message(record)

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each session; `UnreadableTrace` when there is none."""
        return demand_a_trace(_items(source), nothing=_NOTHING)


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("parts"), list):
        return False
    info = value.get("info")
    return isinstance(info, dict) and text_in(info, "role") in {"user", "assistant"}


def _is_session(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("info"), dict):
        return False
    messages = value.get("messages")
    return isinstance(messages, list) and (not messages or _is_message(messages[0]))


def _items(source: Source) -> Iterator[Item]:
    loose: list[Any] = []

    def take(record: Record) -> Iterator[Item]:
        if _is_session(record.value):
            trace = _trace(record.value["info"], record.value["messages"])
            if trace.steps:
                yield trace
        elif _is_message(record.value):
            loose.append(record.value)
        else:
            raise RefusedRecord("This is no session and no message of opencode.", "$")

    yield from read_each(source, take, unroll=True)
    if loose:
        yield _trace({}, loose)


def _trace(info: dict[str, Any], messages: list[Any]) -> Trace:
    made = Transcript(Remarks())
    unread: Counter[str] = Counter()
    for message in messages:
        if not _is_message(message):
            unread["message"] += 1
        elif message["info"]["role"] == "assistant":
            unread.update(Answer(made, message["info"]).take(message["parts"]))
        else:
            _add_prompt(made, message)
    remark_unread(made.remarks, "Parts", unread)
    made.invocations[0].agent = _agent_of(messages)
    return session_trace(
        made,
        session=info.get("id") or _session_of(messages),
        otherwise="opencode session",
        metadata={
            key: info[key]
            for key in ("title", "version", "directory", "parentID")
            if info.get(key) is not None
        },
    )


def _session_of(messages: list[Any]) -> Any:
    infos = [one["info"] for one in messages if _is_message(one)]
    return next((info.get("sessionID") for info in infos), None)


def _agent_of(messages: list[Any]) -> str | None:
    """The name of the agent, where all answers name the same one."""
    infos = [one["info"] for one in messages if _is_message(one)]
    names = {text_in(info, "agent") or text_in(info, "mode") for info in infos}
    names.discard(None)
    return names.pop() if len(names) == 1 else None


def _add_prompt(made: Transcript, message: dict[str, Any]) -> None:
    info = message["info"]
    times = info.get("time")
    time = any_time_ns(times.get("created")) if isinstance(times, dict) else None
    parts = [part for part in message["parts"] if isinstance(part, dict)]
    texts = [part.get("text") for part in parts if part.get("type") == "text"]
    readable = [text for text in texts if isinstance(text, str)]
    made.add(
        Draft(
            kind=StepKind.USER_MESSAGE,
            start_ns=time,
            end_ns=time,
            native_id=info.get("id"),
            native_kind="user",
            output="\n".join(readable) if len(readable) == len(parts) else parts,
        )
    )
