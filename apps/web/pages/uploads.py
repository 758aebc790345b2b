"""What the page of uploads needs: rows with their state in words."""

from __future__ import annotations

import msgspec

from apps.accounts.permissions import Permission
from apps.engine.formats import labels
from apps.traces.models import Upload
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


class UploadsPage(msgspec.Struct, frozen=True):
    """The drop zone and one page of uploads."""

    place: Place
    rows: list[UploadRow]
    next_url: str
    refusal: str
    when_it_breaks: str


def _times(count: int, one: str, many: str) -> str:
    return f"{number_in_words(count)} {one if count == 1 else many}"


def _sentence(upload: Upload) -> str:
    state = UploadState(upload.state)
    if state is UploadState.FAILED:
        return upload.failure
    if state is UploadState.RECEIVED:
        return f"Received {size_in_words(upload.size)}; waiting for a worker."
    traces = _times(upload.trace_count, "trace", "traces")
    if state is UploadState.READING:
        total = upload.bytes_total
        share = (
            f", {size_in_words(upload.bytes_read)} of {size_in_words(total)}"
            if total
            else ""
        )
        return f"Reading: {traces} so far{share}."
    parts = [f"{traces}, {_times(upload.step_count, 'step', 'steps')}"]
    if upload.duplicate_count:
        parts.append(f"{number_in_words(upload.duplicate_count)} here already")
    if upload.rejected_count:
        parts.append(f"{number_in_words(upload.rejected_count)} not read")
    parts.append(_times(upload.signal_count, "signal", "signals") + " to review")
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
        bytes_total=upload.bytes_total,
        upload=upload,
    )


def uploads_page(place: Place, *, before: str) -> UploadsPage:
    """One page of uploads, newest first."""
    rows = list(uploads_of(place.project, before=whole(before))[: PAGE_SIZE + 1])
    shown = rows[:PAGE_SIZE]
    return UploadsPage(
        place=place,
        rows=[upload_row(upload) for upload in shown],
        next_url=f"?before={shown[-1].pk}" if len(rows) > PAGE_SIZE else "",
        refusal=place.refusal(Permission.UPLOAD),
        when_it_breaks=(
            _SEALED_PIECES if place.project.structure_only else _KEPT_PIECES
        ),
    )
