"""What files hold, without a database: the facts that `manage.py describe` prints.

Reads as the worker reads, and keeps of each trace only its description.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path

import msgspec

from apps.engine.description import TraceDescription, describe
from apps.engine.format import Item, Note, Opened, Rejected, UnreadableTrace
from apps.engine.formats import ARCHIVE, TooLarge, read_file, read_folder
from apps.engine.trace import Trace
from evalsite.walking import folder_files, name_in_words

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


_Items = Callable[["_Reading"], Generator[Item, None, None]]


def describe_file(path: Path, *, slug: str | None = None) -> FileDescription:
    """Read one file and describe what was found; never raises for what is in it.

    `slug` names the format to read it as, instead of the one that is recognised.
    """

    def items(_reading: _Reading) -> Generator[Item, None, None]:
        with path.open("rb") as stream:
            yield from read_file(stream, name=path.name, format_override=slug or "")

    return _described(path, items)


def describe_folder(path: Path, *, slug: str | None = None) -> FileDescription:
    """Read the files of a folder together, as a zip of them would be read.

    The `member` of a trace is the file below the folder. Else as `describe_file`.
    """

    def items(reading: _Reading) -> Generator[Item, None, None]:
        found = folder_files(path)
        if found.left_out:
            words = found.left_out_in_words()
            reading.take(Note("left_out", words))
        if not found.files:
            raise UnreadableTrace("The folder holds no files.")
        yield from read_folder(found.files, format_override=slug or "")

    return _described(path, items)


def _described(path: Path, items_of: _Items) -> FileDescription:
    found = FileDescription(file=name_in_words(path))
    reading = _Reading(found)
    try:
        with closing(items_of(reading)) as items:
            for item in items:
                reading.take(item)
    except TooLarge as error:
        each = " With --each the files are read one by one." if path.is_dir() else ""
        found.error = f"{error}{each}"
    except UnreadableTrace as error:
        found.error = str(error)
    except OSError as error:
        found.error = _why_not_opened(path, error)
    except Exception as error:  # noqa: BLE001 - the next file is to be read all the same
        found.error = (
            f"Evalsite's reader broke on this file ({type(error).__name__}). That is our "
            "fault, and a bug worth reporting."
        )
    if not found.trace_count and found.error is None:
        found.error = _nothing_found(found)
    found.warnings = list(reading.notes.values())
    return found


def _why_not_opened(path: Path, error: OSError) -> str:
    reason = error.strerror or str(error)
    if error.filename and Path(error.filename) != path:
        return f"{name_in_words(Path(error.filename))} cannot be opened: {reason}."
    return f"This file cannot be opened: {reason}."


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


def _nothing_found(found: FileDescription) -> str:
    if not found.rejected:
        return "There is no trace in this file."
    first = found.rejected[0]
    if found.rejected_count == 1:
        return f"The only record could not be read. {first.place}: {first.reason}"
    return (
        f"None of the {found.rejected_count:,} records could be read. The first, "
        f"{first.place}: {first.reason}"
    )
