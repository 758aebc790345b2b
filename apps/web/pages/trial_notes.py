"""The form by which reviewers note on a trial that it was sound but wrong, or luck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from apps.accounts.permissions import Permission
from apps.verdicts.notes import LONGEST_NOTE
from apps.web.access import Place
from apps.web.numbers import whole
from apps.web.pages.task_trials import KINDS, TrialLine


class NoteForm(msgspec.Struct, frozen=True):
    """The trials to choose from, the one that the address names, and who may not."""

    trials: list[TrialLine]
    chosen: int | None
    kind: str
    step: int | None
    kinds: dict[str, str]
    longest: int
    refusal: str


def note_form(
    place: Place, trials: Sequence[TrialLine], query: Mapping[str, str]
) -> NoteForm:
    """The form, with the trial and the step (from 1) that the address asks for."""
    chosen = whole(query.get("note", ""))
    line = next((one for one in trials if one.trace.pk == chosen), None)
    current = line.note if line else None
    likely = "right_by_luck" if line and not line.may_be_sound else "sound_but_wrong"
    step = whole(query.get("step", ""))
    if step is None and current is not None and current.step is not None:
        step = current.step + 1
    return NoteForm(
        trials=list(trials),
        chosen=chosen,
        kind=current.kind if current else likely,
        step=step,
        kinds=KINDS,
        longest=LONGEST_NOTE,
        refusal=place.refusal(Permission.REVIEW),
    )
