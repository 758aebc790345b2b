"""What the receipt of an upload needs: what was read, what was not, what was decided."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from django.urls import reverse

from apps.accounts.permissions import Permission
from apps.engine.formats import labels, versions
from apps.engine.trace import UsageState
from apps.screening.queries import counts_per_check
from apps.traces.models import RejectedRecord, Trace, Upload
from apps.traces.queries import rejected_of
from apps.traces.trace_notes import is_of_traces
from apps.traces.transitions import RawKept, UploadSource
from apps.web.access import Place
from apps.web.pages.checks import CheckSummary, check_summaries
from apps.web.pages.privacy import RuleCount, rule_counts
from apps.web.pages.uploads import UploadRow, doubled_in_words, times, upload_row
from apps.web.words import number_in_words

# Notes about bytes and values that were changed so that they could be read.
CORRECTIONS: Final = frozenset(
    {
        "not_utf8",
        "decoded",
        "duplicate_keys",
        "not_finite",
        "out_of_range",
        "replaced_characters",
    }
)
USAGE_WORDS: Final = {
    UsageState.REPORTED: ("reported", "input and output counts are there"),
    UsageState.PARTIAL: ("partial", "some of the counts are there"),
    UsageState.MISSING: ("missing", "no count is there, which is not zero"),
    UsageState.ZERO_SUSPECT: (
        "zero, suspect",
        "all counts are 0 beside an answer, so nothing was recorded",
    ),
    UsageState.VENDOR_ESTIMATE: (
        "estimate of the vendor",
        "counted by the tracing tool and not by the provider; no check uses it",
    ),
    UsageState.AGGREGATE_ONLY: (
        "only in a total",
        "the file has a total for the run and nothing for the call",
    ),
}
_RAW_WORDS: Final = {
    RawKept.KEPT: "kept as they came",
    RawKept.ENCRYPTED: "kept encrypted",
    RawKept.UNTIL_READ: "kept until they are read, for a week at most",
    RawKept.GONE: "removed once they were read",
}
_STRUCTURE_WORDS: Final = {
    RawKept.KEPT: "only the structure is kept",
    RawKept.ENCRYPTED: "only the structure is kept, encrypted",
    RawKept.GONE: "removed once they were read",
}
_NUMBER: Final = re.compile(r"\d+(?:[,\u202f]\d{3})*")
_LIVE_WORDS: Final = (
    "Live spans are put together as they come; there is no file to keep or to read "
    "again."
)


class UsageLine(msgspec.Struct, frozen=True):
    """How many model calls have their usage in one state, and what that means."""

    label: str
    count: int
    meaning: str


class ReaderLine(msgspec.Struct, frozen=True):
    """One reader that found traces; `newer` is the version that is here now, if any.

    Of a structure-only upload it is who read the file that came, which is gone.
    """

    label: str
    version: int
    files: int
    traces: int
    newer: int | None


class NoteLine(msgspec.Struct, frozen=True):
    """A note, and how often it holds where its sentence does not say so itself."""

    sentence: str
    how_often: str


class ReceiptPage(msgspec.Struct, frozen=True):
    """What was read from one upload, what was not, and the signals.

    `nothing` says why there is no trace: what a page shows in place of false zeros.
    """

    place: Place
    row: UploadRow
    upload: Upload
    rejected: list[RejectedRecord]
    checks: list[CheckSummary]
    silent: list[CheckSummary]
    usage_missing: int
    usage: list[UsageLine]
    readers: list[ReaderLine]
    corrections: list[NoteLine]
    decisions: list[NoteLine]
    redactions: list[RuleCount]
    nothing: str
    traces_note: str
    unread_note: str
    raw_words: str
    raw_label: str
    has_raw: bool
    has_newer_reader: bool
    may_read_again: bool
    why_not_again: str
    refusal: str
    live_url: str


def _usage_lines(upload: Upload) -> list[UsageLine]:
    return [
        UsageLine(label, upload.usage_states[state.value], meaning)
        for state, (label, meaning) in USAGE_WORDS.items()
        if upload.usage_states.get(state.value)
    ]


def _readers(upload: Upload) -> list[ReaderLine]:
    known, now = labels(), versions()
    return [
        ReaderLine(
            label=known.get(one["format"], one["format"]),
            version=one["version"],
            files=one["files"],
            traces=one["traces"],
            newer=(
                None
                if upload.reduced
                else _newer(one["version"], now.get(one["format"]))
            ),
        )
        for one in upload.readers
    ]


def _newer(version: int, now: int | None) -> int | None:
    return now if now is not None and now > version else None


def _why_not_again(upload: Upload) -> str:
    if upload.source == UploadSource.LIVE:
        return _LIVE_WORDS
    if upload.raw_kept == RawKept.GONE:
        return (
            "The bytes of this upload were removed once they were read, as this project "
            "asks, so it cannot be read again. Send the file again to do so."
        )
    return ""


def _nothing(row: UploadRow) -> str:
    if row.traces:
        return ""
    if row.is_live:
        return "not read yet"
    return "read before, nothing new" if row.upload.duplicate_count else "not read"


def _traces_note(upload: Upload) -> str:
    others = upload.duplicate_count - upload.doubled_count
    parts = [doubled_in_words(upload.doubled_count)] if upload.doubled_count else []
    if others:
        parts.insert(0, f"{number_in_words(others)} more were here already")
    return ", ".join(parts) or "none was here before"


def _unread_note(upload: Upload) -> str:
    files = sum(one["count"] for one in upload.notes if one["code"] == "not_traces")
    parts = ["listed below"] if upload.rejected_count else []
    if files:
        parts.append(f"{times(files, 'file is no trace', 'files are no traces')}")
    return "; ".join(parts) or "everything was read"


def _note_lines(upload: Upload, *, corrections: bool) -> list[NoteLine]:
    return [
        NoteLine(note["sentence"], _how_often(note))
        for note in upload.notes
        if (note["code"] in CORRECTIONS) == corrections
    ]


def _how_often(note: dict[str, Any]) -> str:
    count: int = note["count"]
    if count < 2:
        return ""
    if is_of_traces(note["code"]):
        varies = "; the numbers are those of the first" if note.get("varies") else ""
        return f"in {number_in_words(count)} traces{varies}"
    said = {int(re.sub(r"\D", "", one)) for one in _NUMBER.findall(note["sentence"])}
    return "" if count in said else f"{number_in_words(count)} times in all"


def _raw_words(upload: Upload) -> str:
    if upload.source == UploadSource.LIVE:
        return ""
    kept = RawKept(upload.raw_kept)
    structure = upload.reduced is not None
    return (_STRUCTURE_WORDS if structure else _RAW_WORDS).get(kept, _RAW_WORDS[kept])


def receipt_page(place: Place, upload: Upload) -> ReceiptPage:
    """The receipt of one upload, as far as it has been read."""
    ids = Trace.objects.filter(upload=upload).values_list("pk", flat=True)
    row = upload_row(upload)
    readers = _readers(upload)
    is_live = upload.source == UploadSource.LIVE
    checked = check_summaries(
        place, counts_per_check(place.project, lineup=place.lineup, trace_ids=ids)
    )
    return ReceiptPage(
        place=place,
        row=row,
        upload=upload,
        rejected=list(rejected_of(upload)),
        checks=[row for row in checked if row.counts.signals],
        silent=[row for row in checked if not row.counts.signals],
        usage_missing=upload.model_call_count - upload.usage_known,
        usage=_usage_lines(upload),
        readers=readers,
        corrections=_note_lines(upload, corrections=True),
        decisions=_note_lines(upload, corrections=False),
        redactions=rule_counts(upload.redactions),
        nothing=_nothing(row),
        traces_note=_traces_note(upload),
        unread_note=_unread_note(upload),
        raw_words=_raw_words(upload),
        raw_label="Raw bytes" if upload.reduced is None else "What is kept",
        has_raw=not is_live and upload.raw_kept != RawKept.GONE,
        has_newer_reader=any(one.newer for one in readers),
        may_read_again=not row.is_live and not is_live,
        why_not_again=_why_not_again(upload),
        refusal=place.refusal(Permission.UPLOAD),
        live_url=reverse("upload", args=[place.project.slug, upload.pk]),
    )
