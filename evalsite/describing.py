"""What files hold, without a database: the facts that `manage.py describe` prints.

Reads as the worker reads, and keeps of each trace only its description.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec

from apps.engine.description import TraceDescription, describe
from apps.engine.format import Item, Note, Opened, Rejected
from apps.engine.formats import ARCHIVE
from apps.engine.trace import Trace
from evalsite.reading_paths import items_of, nothing_found, why_not_read
from evalsite.walking import name_in_words

# A file of nothing but broken lines would otherwise come back as a list of itself.
MOST_REJECTED = 1_000


class FoundTrace(TraceDescription, frozen=True, kw_only=True):
    """A trace with the member of the archive that it is in, and its format."""

    member: str | None
    format: str


class FileDescription(msgspec.Struct, kw_only=True):
    """What one file, or one folder, holds: its format, its traces, what was not read, and remarks.

    `format` is `None` when nothing could be read; `error` then says why. It is
    `archive` when the traces of an archive have several. `traces` are encoded
    `FoundTrace`s, because a file may hold a hundred thousand of them. `rejected` has
    the first `MOST_REJECTED` records of `rejected_count`.
    """

    file: str
    format: str | None = None
    reader_version: int | None = None
    error: str | None = None
    trace_count: int = 0
    traces: list[msgspec.Raw] = []
    rejected_count: int = 0
    rejected: list[Rejected] = []
    warnings: list[Note] = []


def describe_path(path: Path, *, slug: str = "") -> FileDescription:
    """Read a file or a folder and say what was found; never raises for what is in it.

    A folder is read as its zip would be: the `member` of a trace is the file below
    it. `slug` names the format to read as, instead of the one that is recognised.
    """
    found = FileDescription(file=name_in_words(path))
    reading = _Reading(found)
    try:
        with closing(items_of(path, slug=slug)) as items:
            for item in items:
                reading.take(item)
    except Exception as error:  # noqa: BLE001 - the next file is to be read all the same
        found.error = why_not_read(path, error)
    if not found.trace_count and found.error is None:
        first = found.rejected[0] if found.rejected else None
        found.error = nothing_found(first, found.rejected_count)
    found.warnings = list(reading.notes.values())
    return found


class _Reading:
    """One reading of one file."""

    def __init__(self, found: FileDescription) -> None:
        self.found = found
        self.notes: dict[str, Note] = {}
        self.opened = Opened("", "", 0)

    def take(self, item: Item) -> None:
        """Take what comes next."""
        if isinstance(item, Trace):
            self._take_trace(item)
        elif isinstance(item, Rejected):
            self.found.rejected_count += 1
            if len(self.found.rejected) < MOST_REJECTED:
                self.found.rejected.append(item)
        elif isinstance(item, Note):
            earlier = self.notes.get(item.code, Note(item.code, item.sentence, 0))
            count = earlier.count + item.count
            self.notes[item.code] = Note(item.code, earlier.sentence, count)
        elif isinstance(item, Opened):
            self.opened = item

    def _take_trace(self, trace: Trace) -> None:
        found, opened = self.found, self.opened
        reader = (opened.format, opened.version)
        if found.traces and reader != (found.format, found.reader_version):
            reader = (ARCHIVE, 1)
        found.format, found.reader_version = reader
        facts = FoundTrace(
            member=opened.member or None,
            format=opened.format,
            **msgspec.structs.asdict(describe(trace)),
        )
        found.traces.append(msgspec.Raw(msgspec.json.encode(facts)))
        found.trace_count += 1
