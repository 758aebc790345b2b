"""Reader of Gemini CLI sessions: chat files as JSON or JSON lines, and checkpoints.

A newer chat file is a log: a message that changes is written again under its id,
`$set` changes the session and `$rewindTo` takes it back to a message. Gemini counts
thoughts beside the output; both are kept and not added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.gemini_cli.contents import add_contents, contents_in
from apps.engine.reading.gemini_cli.messages import add_message
from apps.engine.reading.json_gate import (
    Record,
    RefusedRecord,
    demand_a_trace,
    read_each,
)
from apps.engine.reading.json_peek import first_values
from apps.engine.reading.recorded import listed, remark_unread
from apps.engine.reading.session_traces import session_trace
from apps.engine.reading.text_limits import Remarks
from apps.engine.reading.transcript import Transcript
from apps.engine.trace import Trace, Via

_REWOUND: Final = (
    "Times the conversation was taken back; the messages that were left out of it are "
    "kept: {n}."
)


class GeminiCLI:
    """The format `gemini-cli`."""

    slug = "gemini-cli"
    label = "Gemini CLI session"
    version = 1
    description = (
        "A chat file of Gemini CLI (session-<time>.json or .jsonl) with the tokens of "
        "each answer, or a checkpoint of /chat save, which records no tokens."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the file begins with a session's head or with Gemini contents."""
        values = first_values(source)
        first = values[0] if values else None
        return _is_head(first) or contents_in(first) is not None

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each session; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source), nothing="The file holds no message of a Gemini CLI session."
        )


def _is_head(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("sessionId"), str)
        and "projectHash" in value
    )


def _items(source: Source) -> Iterator[Item]:
    chats = _Chats()
    yield from read_each(source, chats, unroll=False)
    yield from chats.finished()


class _Chats:
    """Replays the log of a session, or takes sessions and checkpoints whole."""

    def __init__(self) -> None:
        self._open = _Chat({})
        self._number = 0

    def __call__(self, record: Record) -> Iterator[Trace]:
        value = record.value
        contents = contents_in(value)
        if contents is not None:
            self._number += 1
            yield _checkpoint(contents, self._number)
        elif _is_head(value):
            yield from self.finished()
            self._open = _Chat(value)
            for message in listed(value.get("messages")):
                self._open.keep(message)
        elif isinstance(value, dict):
            self._open.take(value)
        else:
            raise RefusedRecord("A line of a session is an object.", "$")

    def finished(self) -> Iterator[Trace]:
        """Yield the trace of the open session, if it has steps."""
        trace = self._open.trace()
        if trace.steps:
            yield trace


class _Chat:
    """The messages of one session by id, in the order in which they first came."""

    def __init__(self, head: dict[str, Any]) -> None:
        self._head = {key: item for key, item in head.items() if key != "messages"}
        self._messages: dict[str, dict[str, Any]] = {}
        self._resets: set[str] = set()
        self._rewound = False
        self._rewinds = 0
        self._unread: Counter[str] = Counter()

    def take(self, line: dict[str, Any]) -> None:
        """Take one line of a log after its head."""
        changes = line.get("$set")
        if isinstance(changes, dict):
            for message in listed(changes.get("messages")):
                self.keep(message)
            self._head |= {k: v for k, v in changes.items() if k != "messages"}
        elif "$rewindTo" in line:
            self._rewound = True
            self._rewinds += 1
        elif isinstance(line.get("type"), str) and "content" in line:
            self.keep(line)
        elif any(key.startswith("$") for key in line):
            self._unread[next(iter(line))[:40]] += 1
        else:
            raise RefusedRecord("This is no line of a Gemini CLI session.", "$")

    def keep(self, message: Any) -> None:
        """Keep a message; a later one under the same id replaces it."""
        if not isinstance(message, dict):
            self._unread["message that is no object"] += 1
            return
        own_id = message.get("id")
        key = own_id if isinstance(own_id, str) else f"message {len(self._messages)}"
        if key not in self._messages and self._rewound:
            self._resets.add(key)
            self._rewound = False
        self._messages[key] = message

    def trace(self) -> Trace:
        """Return the trace; call it once."""
        remarks = Remarks()
        made = Transcript(remarks)
        resets = False
        for key, message in self._messages.items():
            resets = resets or key in self._resets
            kind = add_message(made, message, resets=resets)
            if kind is None:
                self._unread[str(message.get("type"))[:40]] += 1
            elif kind == "gemini":
                resets = False
        if self._rewinds:
            remarks.add(_REWOUND, self._rewinds)
        remark_unread(remarks, "Records", self._unread)
        if self._head.get("kind") == "subagent":
            made.invocations[0].via = Via.SUBAGENT
        return session_trace(
            made,
            session=self._head.get("sessionId"),
            otherwise="Gemini CLI session",
            metadata={
                key: self._head[key]
                for key in ("kind", "directories", "summary")
                if self._head.get(key) is not None
            },
        )


def _checkpoint(contents: list[Any], number: int) -> Trace:
    made = Transcript(Remarks())
    add_contents(made, contents)
    return session_trace(made, otherwise=f"checkpoint {number}")
