"""Every answer of every check about the traces of a file, one trace at a time.

Nothing is kept of a trace once its answers are out, so a large file takes no more
memory than its largest trace.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from apps.engine.check import Answer, Check, Level, Screening
from apps.engine.format import Note, Opened, Rejected
from apps.engine.trace import Trace
from evalsite.reading_paths import items_of, nothing_found, why_not_read
from evalsite.walking import name_in_words

# A file of nothing but broken lines would otherwise be printed as complaints.
MOST_REJECTED = 1_000


class Answered(msgspec.Struct, frozen=True):
    """One answer, and where it was found.

    `trace` is the name of the trace. `trace_id` is unique in the file: the trace's own
    id where its format has one, else its number in the order of reading ("3").
    """

    file: str
    member: str | None
    format: str
    trace: str
    trace_id: str
    check: Check
    screening: Screening

    @property
    def is_signal(self) -> bool:
        """Whether the check fired."""
        return self.screening.answer is Answer.SIGNAL

    @property
    def wants_review(self) -> bool:
        """Whether it is a signal that a project would queue."""
        return self.is_signal and self.screening.level is Level.REVIEW_SIGNAL


class Complaint(msgspec.Struct, frozen=True):
    """What could not be read or answered, or was decided while reading.

    `place` is where in the file, "" for the whole of it. `is_incomplete` is set when a
    file was not read (to its end) or a check gave no answer.
    """

    file: str
    sentence: str
    place: str = ""
    is_incomplete: bool = False


class Screened(msgspec.Struct, frozen=True):
    """A trace has been screened; its answers came before."""

    format: str


Found = Answered | Complaint | Screened


def screen_path(
    path: Path, checks: Sequence[Check], *, slug: str = ""
) -> Generator[Found, None, None]:
    """Yield every answer about the traces of a file or folder, and what went wrong.

    A folder is read as its zip would be. `slug` names the format to read it as. Never
    raises for what is in the file: traces before a break keep their answers.
    """
    reading = _Reading(name_in_words(path), checks)
    error = ""
    try:
        with closing(items_of(path, slug=slug)) as items:
            for item in items:
                yield from reading.take(item)
    except Exception as broken:  # noqa: BLE001 - the next file is to be read all the same
        error = why_not_read(path, broken)
    if not error and not reading.traces:
        error = nothing_found(reading.first_rejected, reading.rejected)
    yield from reading.remarks()
    if error:
        yield Complaint(reading.file, error, is_incomplete=True)


class _Reading:
    """One reading of one file."""

    def __init__(self, file: str, checks: Sequence[Check]) -> None:
        self.file = file
        self.checks = checks
        self.opened = Opened("", "", 0)
        self.traces = 0
        self.rejected = 0
        self.first_rejected: Rejected | None = None
        self.notes: dict[str, Note] = {}
        self.ids: set[str] = set()

    def take(self, item: object) -> Generator[Found, None, None]:
        """Yield what follows from what was read."""
        if isinstance(item, Trace):
            yield from self._answers(item)
        elif isinstance(item, Rejected):
            self.rejected += 1
            self.first_rejected = self.first_rejected or item
            if self.rejected <= MOST_REJECTED:
                yield Complaint(self.file, item.reason, item.place)
        elif isinstance(item, Note):
            earlier = self.notes.get(item.code, Note(item.code, item.sentence, 0))
            count = earlier.count + item.count
            self.notes[item.code] = Note(item.code, earlier.sentence, count)
        elif isinstance(item, Opened):
            self.opened = item

    def remarks(self) -> Generator[Complaint, None, None]:
        """Yield what is to be said once about the whole file."""
        if self.rejected > MOST_REJECTED:
            more = self.rejected - MOST_REJECTED
            yield Complaint(self.file, f"{more:,} more records were not read.")
        for note in self.notes.values():
            times = f" ({note.count:,} times)" if note.count > 1 else ""
            yield Complaint(self.file, f"{note.sentence}{times}")

    def _answers(self, trace: Trace) -> Generator[Found, None, None]:
        self.traces += 1
        own_id = self._id_of(trace)
        for check in self.checks:
            try:
                screenings = list(check.run(trace))
            except Exception as broken:  # noqa: BLE001 - other checks can still answer
                yield self._broke(check, trace, broken)
                continue
            for screening in screenings:
                yield Answered(
                    file=self.file,
                    member=self.opened.member or None,
                    format=self.opened.format,
                    trace=trace.name,
                    trace_id=own_id,
                    check=check,
                    screening=screening,
                )
        yield Screened(self.opened.format)

    def _id_of(self, trace: Trace) -> str:
        native = trace.native_id
        if native is None:
            return str(self.traces)
        own_id = native if native not in self.ids else f"{native} ({self.traces})"
        self.ids.add(native)
        return own_id

    def _broke(self, check: Check, trace: Trace, error: Exception) -> Complaint:
        return Complaint(
            self.file,
            f"The check {check.slug} broke on this trace ({type(error).__name__}) and "
            "gave no answer. That is our fault, and a bug worth reporting.",
            f"trace {trace.name}",
            is_incomplete=True,
        )
