"""What reading an upload again does otherwise: look at all of it first, then write over.

The first look reads everything and stores nothing. Only when it found a trace does the
second one, and what it finds takes the place of what was there, id by id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from django.db import transaction

from apps.engine.format import Item, Note, Rejected, UnreadableTrace
from apps.engine.formats import labels
from apps.engine.trace import Trace
from apps.pipeline.privacy import Privacy
from apps.review.adopting import locked_signals
from apps.review.erasing import lock_decided
from apps.review.rescreening import READ_AGAIN, rescreen
from apps.traces.batches import Batch, Receipt
from apps.traces.codec import content_hash
from apps.traces.locking import lock_whole_traces
from apps.traces.matching import Found
from apps.traces.operations import Claim, hold
from apps.traces.rereading import (
    Plan,
    Rewritten,
    Writer,
    finish_rereading,
    keep_as_it_was,
    plan_rereading,
)
from apps.traces.streams import count_signals


class FoundNothing(Exception):
    """The new reading found no trace; the message says why."""


class Rereading:
    """One attempt at reading an upload again that has traces already."""

    def __init__(self, claim: Claim, clock: Callable[[], datetime]) -> None:
        self._claim = claim
        self._clock = clock
        self._plan: Plan | None = None
        self._ended = "did not come to its end"

    @property
    def has_begun(self) -> bool:
        """Whether the first look found something, so that traces are written over."""
        return self._plan is not None

    def look(self, items: Iterator[Item], privacy: Privacy) -> None:
        """Read everything and store nothing; raises `FoundNothing`, and as a reader."""
        found: list[Found] = []
        receipt = Receipt()
        failure = ""
        try:
            for item in items:
                if isinstance(item, Trace):
                    kept = privacy.keep(item)
                    found.append(Found(kept.native_id, content_hash(kept)))
                elif isinstance(item, Rejected):
                    receipt.reject(item)
        except UnreadableTrace as error:
            failure = str(error)
        if not found:
            self._ended = "found nothing"
            raise FoundNothing(failure or why_nothing(receipt))
        self._plan = plan_rereading(claim=self._claim, found=found)

    def write_over(self, batch: Batch) -> Batch:
        """Write what was here before under its id; returns what is new.

        Runs inside the caller's transaction.
        """
        writer = Writer(self._claim)
        matches = self._plan.matches if self._plan else {}
        found = [matches[place] for place, _ in batch.traces if place in matches]
        changed = [one.known.trace_id for one in found if not one.is_same]
        # Those that stay as they are too: who read them may be written.
        lock_whole_traces([one.known.trace_id for one in found])
        locked_signals(changed)
        for ordinal, trace in batch.traces:
            if ordinal not in matches:
                continue
            rewritten = writer.write(
                match=matches[ordinal],
                trace=trace,
                opened=batch.readers[ordinal],
                input_hash=batch.input_hashes[ordinal],
            )
            if rewritten is not None:
                self._rescreen(rewritten)
        return Batch(
            traces=[one for one in batch.traces if one[0] not in matches],
            readers=batch.readers,
            input_hashes=batch.input_hashes,
            rejected=batch.rejected,
            progress=batch.progress,
        )

    def _rescreen(self, rewritten: Rewritten) -> None:
        signals = rescreen(
            project_id=self._claim.project_id,
            stored=rewritten.stored,
            moved=rewritten.moved,
            now=self._clock(),
            why=READ_AGAIN,
        )
        count_signals(trace_id=rewritten.stored.trace_id, signals=signals)

    def keep_as_it_was(self, why: str) -> None:
        """End without a change, and say why."""
        slug = self._claim.format_override
        how = f"as {labels().get(slug, slug)}" if slug else "by its content"
        keep_as_it_was(
            claim=self._claim,
            sentence=(
                f"Reading it again {how} {self._ended}, so what was read before "
                f"stays. {why}"
            ),
        )

    def finish(self, receipt: Receipt, *, is_whole: bool) -> None:
        """End with the receipt; what was not found again goes, unless it was decided.

        Nothing goes when the reading did not come to the end of the file.
        """
        missing = set(self._plan.missing) if self._plan else set()
        with transaction.atomic():
            hold(self._claim)
            lock_whole_traces(missing)
            stays = lock_decided(trace_ids=missing) if is_whole else missing
            if stays:
                receipt.note(_stay(len(stays), is_whole=is_whole))
            finish_rereading(
                claim=self._claim,
                receipt=receipt,
                gone=missing - stays,
                stays=stays if is_whole else (),
            )


def why_nothing(receipt: Receipt) -> str:
    """Why a file had no trace."""
    if receipt.rejected:
        first = receipt.rejected[0]
        return (
            f"None of the {receipt.rejected_count} records could be read. "
            f"The first, {first.place}: {first.reason}"
        )
    return "There is no trace in this file."


def _stay(count: int, *, is_whole: bool) -> Note:
    traces = "1 trace" if count == 1 else f"{count} traces"
    why = (
        "because reviewers decided about them"
        if is_whole
        else "because this reading did not come to the end of the file"
    )
    return Note(
        code="not_found_again",
        sentence=f"Of an earlier reading {traces} not found again stay here, {why}.",
        count=count,
    )
