"""What the page of uploads needs: rows with their state in words."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from apps.accounts.permissions import Permission
from apps.engine.formats import labels
from apps.traces.models import Upload
from apps.traces.parts import Gone, Part, parts_of
from apps.traces.queries import PAGE_SIZE, uploads_of
from apps.traces.storage import size_in_words
from apps.traces.transitions import UploadSource, UploadState
from apps.web.access import Place
from apps.web.numbers import whole
from apps.web.words import number_in_words

FORMAT_LABELS = labels()

_KEPT_PIECES = (
    "A broken upload goes on by itself, and where it stopped when you drop it again "
    "within a day."
)
_SEALED_PIECES = (
    "Only the structure of what you send is kept. Until it is whole it lies here sealed "
    "with a key that only this tab has: a lost connection does no harm, a closed tab "
    "means starting again."
)
_GOES_ON = "Drop the same file again to go on."
_GOES_ON_IN_ITS_TAB = (
    "Only the tab that sends it can go on; if it is closed, send the file again."
)


class UploadRow(msgspec.Struct, frozen=True):
    """One upload in a list, its state in a word and a sentence."""

    id: int
    name: str
    state: str
    sentence: str
    is_live: bool
    format: str
    size: int
    traces: int
    signals: int
    rejected: int
    bytes_read: int
    bytes_total: int | None
    upload: Upload

    @property
    def share(self) -> str:
        """How much has been read, as a number from 0 to 1 for a progress bar."""
        return f"{self.bytes_read / self.bytes_total:.3f}" if self.bytes_total else "0"

    @property
    def tone(self) -> str:
        """The colour that goes with the state's word."""
        return {"done": "green", "live": "green", "failed": "red"}.get(
            self.state, "blue"
        )


class UnfinishedRow(msgspec.Struct, frozen=True):
    """A file of this user of which a part has arrived: how much, and until when."""

    id: str
    name: str
    sentence: str
    until: datetime
    share: str


class UploadsPage(msgspec.Struct, frozen=True):
    """The drop zone, what of this user's files has arrived in part, and the uploads."""

    place: Place
    unfinished: list[UnfinishedRow]
    rows: list[UploadRow]
    next_url: str
    refusal: str
    when_it_breaks: str


def times(count: int, one: str, many: str) -> str:
    """`1 trace`, `12 345 traces`."""
    return f"{number_in_words(count)} {one if count == 1 else many}"


def doubled_in_words(count: int) -> str:
    """`12 stood twice in this upload`."""
    return f"{number_in_words(count)} stood twice in this upload"


def _sentence(upload: Upload) -> str:
    state = UploadState(upload.state)
    if state is UploadState.FAILED:
        return upload.failure
    if state is UploadState.DONE:
        return _done(upload)
    traces = times(upload.trace_count, "trace", "traces")
    if upload.reread_as is not None:
        being = "Is being" if state is UploadState.READING else "Waits to be"
        return f"{being} read again; what was read before stays until then: {traces}."
    if state is UploadState.RECEIVED:
        return f"Received {size_in_words(upload.size)}; waiting for a worker."
    share = (
        f", {size_in_words(upload.bytes_read)} of {size_in_words(upload.bytes_total)}"
        if upload.bytes_total
        else ""
    )
    return f"Reading: {traces} so far{share}."


def _done(upload: Upload) -> str:
    others = upload.duplicate_count - upload.doubled_count
    if upload.trace_count:
        traces = times(upload.trace_count, "trace", "traces")
        parts = [f"{traces}, {times(upload.step_count, 'step', 'steps')}"]
    else:
        parts = ["Nothing new"]
    if others:
        parts.append(f"{number_in_words(others)} here already")
    if upload.doubled_count:
        parts.append(doubled_in_words(upload.doubled_count))
    if upload.rejected_count:
        parts.append(f"{number_in_words(upload.rejected_count)} not read")
    if upload.trace_count:
        parts.append(times(upload.signal_count, "signal", "signals") + " to review")
    return "; ".join(parts) + "."


def upload_row(upload: Upload) -> UploadRow:
    """One upload with its state in words."""
    state = UploadState(upload.state)
    return UploadRow(
        id=upload.pk,
        name=upload.name or "unnamed",
        state="live" if upload.source == UploadSource.LIVE else state.value,
        sentence=_sentence(upload),
        is_live=state in {UploadState.RECEIVED, UploadState.READING},
        format=FORMAT_LABELS.get(upload.format, upload.format),
        size=upload.size,
        traces=upload.trace_count,
        signals=upload.signal_count,
        rejected=upload.rejected_count,
        bytes_read=upload.bytes_read,
        # How far the first of two readings is says nothing about the end.
        bytes_total=upload.bytes_total if upload.reread_as is None else None,
        upload=upload,
    )


def _unfinished(place: Place) -> list[UnfinishedRow]:
    """Files that this user began to send; newest first."""
    if place.refusal(Permission.UPLOAD):
        return []
    rows = []
    for part in parts_of(project_id=place.project.pk, user_id=place.user.pk):
        with suppress(Gone):
            rows.append(_unfinished_row(part))
    return sorted(rows, key=lambda row: row.until, reverse=True)


def _unfinished_row(part: Part) -> UnfinishedRow:
    about, here = part.about, part.offset()
    return UnfinishedRow(
        id=part.id,
        name=about.name,
        sentence=(
            f"{size_in_words(here)} of {size_in_words(about.size)} have arrived. "
            + (_GOES_ON_IN_ITS_TAB if about.needs_key else _GOES_ON)
        ),
        until=datetime.fromtimestamp(part.expires, tz=UTC),
        share=f"{here / about.size:.3f}",
    )


def uploads_page(place: Place, *, before: str) -> UploadsPage:
    """One page of uploads, newest first."""
    rows = list(uploads_of(place.project, before=whole(before))[: PAGE_SIZE + 1])
    shown = rows[:PAGE_SIZE]
    return UploadsPage(
        place=place,
        unfinished=_unfinished(place),
        rows=[upload_row(upload) for upload in shown],
        next_url=f"?before={shown[-1].pk}" if len(rows) > PAGE_SIZE else "",
        refusal=place.refusal(Permission.UPLOAD),
        when_it_breaks=(
            _SEALED_PIECES if place.project.structure_only else _KEPT_PIECES
        ),
    )
