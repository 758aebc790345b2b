"""What reviewers note on trials: sound but wrong, right by luck. Append-only.

A note is a person's word on how a trial came to its outcome. It changes no outcome and
no verdict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

import msgspec
from django.db import transaction

from apps.engine.trace import OutcomeKind
from apps.scoring.models import TraceScore
from apps.traces.models import Trace
from apps.verdicts.models import TrialNote, TrialNoteKind

LONGEST_NOTE: Final = 2_000
_KINDS: Final = (TrialNoteKind.SOUND_BUT_WRONG, TrialNoteKind.RIGHT_BY_LUCK)
_OUTCOMES: Final = {OutcomeKind.PASS.value: "green", OutcomeKind.FAIL.value: "red"}
_AGAINST: Final = {
    (TrialNoteKind.SOUND_BUT_WRONG, "green"): (
        "“Sound but wrong” is for trials that failed; this one passed."
    ),
    (TrialNoteKind.RIGHT_BY_LUCK, "red"): (
        "“Right by luck” is for trials that passed; this one failed."
    ),
}


class WrongNote(Exception):
    """A note cannot be taken; the message is a sentence for a person."""


class Noted(msgspec.Struct, frozen=True):
    """What a person notes: `step` counts from 0, `None` for the whole trial."""

    kind: str
    step: int | None = None
    note: str = ""


def note_trial(
    *, trace: Trace, noted: Noted, user_id: int | None, now: datetime
) -> TrialNote:
    """Add a note to a trial; from now on it is the one that counts.

    The same note by the same person again is the note that is there. Raises
    `WrongNote` with a sentence, `Trace.DoesNotExist` where the trial is gone.
    """
    text = noted.note.replace("\x00", "").strip()
    kind = _checked(trace, noted, text)
    with transaction.atomic():
        _hold(trace)
        current = current_note(history_of([trace.pk]).get(trace.pk, ()))
        if current is not None and _is_same(current, noted, text, user_id):
            return current
        return TrialNote.objects.create(
            trace=trace,
            kind=kind,
            step=noted.step,
            note=text,
            noted_by_id=user_id,
            noted_at=now,
        )


def _hold(trace: Trace) -> None:
    """Let nobody else note on a trial or erase it until the transaction ends.

    Two that send a note at the same moment each see what the other has written. Raises
    `Trace.DoesNotExist` where it is gone.
    """
    rows = Trace.objects.select_for_update(of=("self",), no_key=True)
    rows.only("pk").get(pk=trace.pk)


def withdraw_note(*, trace: Trace, user_id: int | None, now: datetime) -> TrialNote:
    """Take back the note that counts, as one more row. Raises `WrongNote` for none."""
    with transaction.atomic():
        _hold(trace)
        current = current_note(history_of([trace.pk]).get(trace.pk, ()))
        if current is None:
            raise WrongNote("There is no note on this trial to withdraw.")
        return TrialNote.objects.create(
            trace=trace,
            kind=TrialNoteKind.WITHDRAWN,
            noted_by_id=user_id,
            noted_at=now,
        )


def history_of(trace_ids: Collection[int]) -> dict[int, tuple[TrialNote, ...]]:
    """All notes on traces, the newest first, with who wrote them. One query."""
    found: dict[int, list[TrialNote]] = defaultdict(list)
    rows = TrialNote.objects.filter(trace_id__in=trace_ids)
    for row in rows.select_related("noted_by").order_by("-pk"):
        found[row.trace_id].append(row)
    return {pk: tuple(notes) for pk, notes in found.items()}


def current_note(history: Sequence[TrialNote]) -> TrialNote | None:
    """The note that counts: the newest, unless it withdraws the one before."""
    if not history or history[0].kind == TrialNoteKind.WITHDRAWN:
        return None
    return history[0]


def recorded_outcome(trace: Trace) -> str:
    """The colour of an outcome as it was recorded, before a trace is scored."""
    return _OUTCOMES.get(trace.outcome, "unknown")


def _checked(trace: Trace, noted: Noted, text: str) -> TrialNoteKind:
    if noted.kind not in {kind.value for kind in _KINDS}:
        raise WrongNote("A note says “sound but wrong” or “right by luck”.")
    if noted.step is not None and not 0 <= noted.step < trace.step_count:
        raise WrongNote(f"This trial has the steps 1 to {trace.step_count}.")
    if len(text) > LONGEST_NOTE:
        raise WrongNote(f"A note has at most {LONGEST_NOTE:,} characters.")
    kind = TrialNoteKind(noted.kind)
    against = _AGAINST.get((kind, _outcome_of(trace)))
    if against:
        raise WrongNote(against)
    return kind


def _outcome_of(trace: Trace) -> str:
    """The outcome under what is expected, or as it was recorded if not scored yet."""
    scored = TraceScore.objects.filter(trace=trace).values_list("outcome", flat=True)
    return scored.first() or recorded_outcome(trace)


def _is_same(row: TrialNote, noted: Noted, text: str, user_id: int | None) -> bool:
    before = (row.kind, row.step, row.note, row.noted_by_id)
    return before == (noted.kind, noted.step, text, user_id)
