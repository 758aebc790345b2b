"""Reader of iFlow CLI sessions: lines like those of Claude Code, without usage.

iFlow writes one answer as several overlapping lines with ids of their own, and counts
of zero where nothing was counted.

Version 2 keeps an answer without content as an empty one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.format import Item, Source
from apps.engine.reading.claude_code.sessions import Sessions
from apps.engine.reading.json_gate import demand_a_trace, read_each
from apps.engine.reading.json_peek import first_items
from apps.engine.reading.recorded import kind_of

_SESSION: Final = re.compile(
    r"session-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE
)


class IFlow:
    """The format `iflow`."""

    slug = "iflow"
    label = "iFlow CLI session"
    version = 2
    description = (
        "A session file of iFlow CLI (session-<id>.jsonl). Its token counts are always "
        "zero and are read as suspect; overlapping lines of one answer are one model "
        "call and placeholders."
    )

    def recognises(self, source: Source) -> bool:
        """Whether the first lines are of a session whose id is `session-` and a UUID."""
        return any(map(_is_line, first_items(source)))

    def read(self, source: Source) -> Iterator[Item]:
        """Yield one trace for each session; `UnreadableTrace` when there is none."""
        return demand_a_trace(
            _items(source), nothing="The file holds no line of an iFlow session."
        )


def _is_line(value: Any) -> bool:
    return (
        kind_of(value) in {"user", "assistant"}
        and isinstance(value.get("message"), dict)
        and isinstance(value.get("sessionId"), str)
        and _SESSION.fullmatch(value["sessionId"]) is not None
        and "uuid" in value
    )


def _items(source: Source) -> Iterator[Item]:
    sessions = Sessions(merge_attempts=True)
    yield from read_each(source, sessions, unroll=True)
    yield from sessions.traces()
