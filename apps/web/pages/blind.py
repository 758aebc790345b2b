"""What the page of one blind look needs: the run itself, and nothing a check said."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec
from django.conf import settings

from apps.accounts.permissions import Permission
from apps.review.blind import NOT_BLIND, draft_of, history_of, is_revealed
from apps.review.blind_sample import is_blind_to
from apps.review.models import BlindEntry, BlindLook
from apps.review.transitions import BlindVerdict, FailureKind, SignalState
from apps.traces.models import Trace
from apps.traces.queries import bodies_between, invocations_of, steps_of
from apps.web.access import Place
from apps.web.forms import BlindForm
from apps.web.pages.steps import StepLine, duration_between, step_lines
from apps.web.pages.trace import (
    WINDOW,
    AnswerRow,
    answer_rows,
    first_of_window,
    outcome_in_words,
    window_in_words,
)

BLIND_MEANINGS = {
    BlindVerdict.FAILURE: "something went wrong, whatever came out",
    BlindVerdict.NO_FAILURE: "the run did what it should",
    BlindVerdict.CANNOT_TELL: "what is recorded is not enough",
}


class BlindPage(msgspec.Struct, frozen=True):
    """One blind look; `answers` is None until they may be seen."""

    place: Place
    look: BlindLook
    trace: Trace
    duration_ns: int | None
    agents: list[str]
    steps: list[StepLine]
    window: str
    first_query: str
    next_query: str
    typed: dict[str, str]
    submission: str
    refusal: str
    is_mine: bool
    is_others: bool
    is_decided: bool
    is_own_decision: bool
    may_undo: bool
    claimed_until: datetime | None
    claim_seconds: int
    verdicts: list[tuple[str, str, str]]
    failure_kinds: list[tuple[str, str]]
    history: list[BlindEntry]
    decision: BlindEntry | None
    answers: list[AnswerRow] | None
    outcome_text: str
    fields: dict[str, str] = {}


def _refusal(place: Place, look: BlindLook) -> str:
    """Why this member may not decide; empty when they may."""
    if refused := place.refusal(Permission.REVIEW):
        return refused
    if look.state == SignalState.SUPERSEDED:
        return "This blind look was taken back before anybody decided it."
    return "" if is_blind_to(look=look, user=place.user) else NOT_BLIND


def blind_page(
    place: Place,
    look: BlindLook,
    query: Mapping[str, str],
    *,
    typed: Mapping[str, str] | None = None,
) -> BlindPage:
    """The page of a blind look with 100 steps of its trace; `typed` wins over drafts."""
    trace = look.trace
    first = first_of_window(query, trace.step_count)
    last = min(first + WINDOW, trace.step_count) - 1
    invocations = invocations_of(trace.pk)
    draft = draft_of(look=look, user=place.user)
    is_decided = look.state == SignalState.DECIDED
    is_own = is_decided and look.decided_by_id == place.user.pk
    is_open_to_see = is_decided and (not is_own or is_revealed(look))
    is_claimed = look.state == SignalState.CLAIMED
    # A decision that was undone is nobody's to read before the next one.
    history = list(history_of(look)) if is_decided else []
    decided = [entry for entry in history if entry.act == "decided"]
    return BlindPage(
        place=place,
        look=look,
        trace=trace,
        duration_ns=duration_between(trace.start_ns, trace.end_ns),
        agents=sorted({i.agent for i in invocations if i.agent}),
        steps=step_lines(
            steps_of(trace.pk, first=first, last=last),
            invocations=invocations,
            bodies=bodies_between(trace.pk, first=first, last=last),
            evidence={},
        ),
        window=window_in_words(first, last, trace.step_count),
        first_query="?from=1" if first else "",
        next_query=f"?from={last + 2}" if last + 1 < trace.step_count else "",
        typed=dict(typed or (draft.fields if draft else {})),
        submission=BlindForm.new_submission(),
        refusal=_refusal(place, look),
        is_mine=is_claimed and look.claimed_by_id == place.user.pk,
        is_others=is_claimed and look.claimed_by_id != place.user.pk,
        is_decided=is_decided,
        is_own_decision=is_own,
        may_undo=is_own and not is_open_to_see,
        claimed_until=look.claimed_until,
        claim_seconds=settings.CLAIM_SECONDS,
        verdicts=[
            (value, label, BLIND_MEANINGS[BlindVerdict(value)])
            for value, label in BlindVerdict.choices
        ],
        failure_kinds=list(FailureKind.choices),
        history=history,
        decision=decided[-1] if decided else None,
        answers=answer_rows(place, trace) if is_open_to_see else None,
        outcome_text=outcome_in_words(trace) if is_open_to_see else "",
    )
