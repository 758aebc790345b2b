"""The shapes in which answers leave a command: a table, lines of JSON, or nothing."""

from __future__ import annotations

import json
from typing import Any, Protocol

from apps.engine.check import Chance, Evidence
from evalsite.offline.answers import Answered
from evalsite.offline.reading import Complaint
from evalsite.offline.sentences import plain, rounded
from evalsite.offline.tally import CheckTally, Tally


class Printer(Protocol):
    """Turns what was found into text, as soon as it is found."""

    def begin(self) -> str:
        """Return what stands before everything."""
        ...

    def answer(self, found: Answered) -> str:
        """Return what one answer prints."""
        ...

    def complaint(self, found: Complaint) -> str:
        """Return what is printed of something that was not read."""
        ...

    def end(self, tally: Tally, code: int) -> str:
        """Return what stands after everything; `code` is that of the command."""
        ...


class Silence:
    """Prints nothing: the summary stands on the error stream."""

    def begin(self) -> str:
        """Nothing."""
        return ""

    def answer(self, found: Answered) -> str:  # noqa: ARG002
        """Nothing."""
        return ""

    def complaint(self, found: Complaint) -> str:  # noqa: ARG002
        """Nothing: it stands on the error stream."""
        return ""

    def end(self, tally: Tally, code: int) -> str:  # noqa: ARG002
        """Nothing."""
        return ""


class Lines(Silence):
    """One JSON object a line for each answer, in the order in which they are found."""

    def answer(self, found: Answered) -> str:
        """The answer as one line."""
        return json.dumps(as_json(found), ensure_ascii=False, allow_nan=False) + "\n"


def as_json(found: Answered) -> dict[str, Any]:
    """One answer as JSON values; `None` is what there is none of.

    `expected` is how often the null model alone makes the check fire on these values.
    """
    one, evidence = found.screening, found.screening.evidence
    return {
        "file": found.file,
        "member": found.member,
        "format": found.format,
        "trace": found.trace,
        "trace_id": found.trace_id,
        "check": found.check.slug,
        "version": found.check.version,
        "answer": one.answer.value,
        "level": one.level.value,
        "headline": one.headline,
        "reason": one.reason,
        "reason_code": one.reason_code,
        "scope": evidence.scope,
        "agent": evidence.agent,
        "length": evidence.length,
        "first": evidence.first,
        "last": evidence.last,
        "usage_missing": evidence.usage_missing,
        "order": evidence.order,
        "boundary": _boundary(evidence),
        "steps": list(evidence.steps),
        "p": chance_as_json(evidence.chance),
        "expected": evidence.chance_of_signal,
        "input_hash": one.input_hash,
    }


def _boundary(evidence: Evidence) -> dict[str, str | None] | None:
    if evidence.began is None and evidence.ended is None:
        return None
    return {"began": evidence.began, "ended": evidence.ended}


def chance_as_json(chance: Chance | None) -> dict[str, Any] | None:
    """A probability with its fraction where one exists, and how it was computed."""
    if chance is None:
        return None
    return {
        "numerator": chance.numerator,
        "denominator": chance.denominator,
        "value": chance.value,
        "method": chance.method,
    }


class Table(Silence):
    """A table of the signals for review of each file, then one of the checks.

    With `with_telemetry` other signals have a row too.
    """

    def __init__(self, *, with_telemetry: bool = False) -> None:
        self._with_telemetry = with_telemetry
        self._file = ""

    def answer(self, found: Answered) -> str:
        """A row for a signal; the other answers are counted at the end."""
        is_shown = found.is_signal if self._with_telemetry else found.wants_review
        if not is_shown:
            return ""
        before = ""
        if found.file != self._file:
            before = f"{plain(found.file)}\n" + _row(_SIGNAL_WIDTHS, _SIGNAL_HEADINGS)
            self._file = found.file
        return before + _row(_SIGNAL_WIDTHS, _signal_cells(found))

    def end(self, tally: Tally, code: int) -> str:  # noqa: ARG002
        """The table of the checks."""
        rows = [_row(_CHECK_WIDTHS, _CHECK_HEADINGS)]
        rows += [
            _row(_CHECK_WIDTHS, _check_cells(one)) for one in tally.of_checks.values()
        ]
        return ("\n" if self._file else "") + "".join(rows)


_SIGNAL_HEADINGS = ("trace", "check", "level", "chance", "agent", "signal")
_SIGNAL_WIDTHS = (-24, -21, -13, 8, -16, 0)
_CHECK_HEADINGS = (
    *("check", "version", "for review", "telemetry", "quiet", "not applicable"),
    "by chance",
)
_CHECK_WIDTHS = (-21, 7, 10, 9, 7, 14, 9)


def _signal_cells(found: Answered) -> tuple[str, ...]:
    one = found.screening
    chance = one.evidence.chance
    return (
        f"{found.trace_id}: {found.trace}",
        found.check.slug,
        one.level.value,
        "-" if chance is None else f"{chance.value:.2g}",
        one.evidence.agent or "-",
        one.headline,
    )


def _check_cells(one: CheckTally) -> tuple[str, ...]:
    null = one.by_chance
    return (
        one.check.slug,
        str(one.check.version),
        f"{one.queued:,}",
        f"{one.signals - one.queued:,}",
        f"{one.quiet:,}",
        f"{one.not_applicable:,}",
        "-" if null is None else rounded(null.expected),
    )


def _row(widths: tuple[int, ...], cells: tuple[str, ...]) -> str:
    """One line; a negative width is aligned left, and 0 is as wide as its text."""
    fitted = [_fitted(cell, width) for cell, width in zip(cells, widths, strict=True)]
    return f"  {'  '.join(fitted).rstrip()}\n"


def _fitted(text: str, width: int) -> str:
    text, room = plain(text), abs(width)
    if room and len(text) > room:
        text = text[: room - 1] + "…"
    return text.rjust(room) if width > 0 else text.ljust(room)
