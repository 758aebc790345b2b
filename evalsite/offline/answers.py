"""Every answer of every check about the traces of a file, one trace at a time.

Nothing is kept of a trace once its answers are out, so a large file takes no more
memory than its largest trace.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path

import msgspec

from apps.engine.check import Answer, Check, Level, Screening
from evalsite.offline.reading import Complaint, ReadTrace, traces_at


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
    for item in traces_at(path, slug=slug):
        if isinstance(item, Complaint):
            yield item
        else:
            yield from _answers(item, checks)


def _answers(read: ReadTrace, checks: Sequence[Check]) -> Generator[Found, None, None]:
    for check in checks:
        try:
            screenings = list(check.run(read.trace))
        except Exception as broken:  # noqa: BLE001 - other checks can still answer
            yield _broke(check, read, broken)
            continue
        for screening in screenings:
            yield Answered(
                file=read.file,
                member=read.member or None,
                format=read.format,
                trace=read.trace.name,
                trace_id=read.trace_id,
                check=check,
                screening=screening,
            )
    yield Screened(read.format)


def _broke(check: Check, read: ReadTrace, error: Exception) -> Complaint:
    return Complaint(
        read.file,
        f"The check {check.slug} broke on this trace ({type(error).__name__}) and "
        "gave no answer. That is our fault, and a bug worth reporting.",
        f"trace {read.trace.name}",
        is_incomplete=True,
    )
