"""Claims, decisions, undo and history."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from apps.accounts.permissions import Role
from apps.review import operations as review
from apps.review.models import Draft, HistoryEntry, Signal
from apps.review.operations import AlreadySubmitted, Conflict, DecisionInput
from apps.review.queries import QueueFilter, last_decided_by, neighbours
from apps.review.transitions import NotPossibleNow, SignalState, Verdict
from tests.at_once import at_once
from tests.factories import NOW, decay_trace, make_member, upload_traces

FALLING = (100, 90, 80, 70, 60)
CONFIRM = DecisionInput(verdict=Verdict.CONFIRM, where_agent="planner", where_step=4)


@pytest.fixture
def signal(project):
    upload_traces(project, decay_trace(*FALLING))
    return Signal.objects.get(project=project)


def acts(signal):
    rows = HistoryEntry.objects.filter(signal=signal).order_by("base_version")
    return list(rows.values_list("act", flat=True))


def test_a_signal_is_claimed_decided_undone_and_decided_again(signal, reviewer):
    held = review.claim(signal_id=signal.pk, user=reviewer)
    assert held.state == SignalState.CLAIMED
    decided = review.decide(
        signal_id=signal.pk, user=reviewer, decision=CONFIRM, base_version=held.version
    )
    assert (decided.state, decided.verdict) == (SignalState.DECIDED, Verdict.CONFIRM)
    undone = review.undo(
        signal_id=signal.pk, user=reviewer, base_version=decided.version
    )
    assert (undone.state, undone.verdict) == (SignalState.CLAIMED, "")
    dismiss = DecisionInput(verdict=Verdict.DISMISS, reason="converged", note="done")
    again = review.decide(
        signal_id=signal.pk,
        user=reviewer,
        decision=dismiss,
        base_version=undone.version,
    )
    assert (again.verdict, again.reason) == (Verdict.DISMISS, "converged")
    assert acts(signal) == ["opened", "claimed", "decided", "undone", "decided"]


def test_a_signal_comes_back_from_its_experiment_with_the_result(signal, reviewer):
    back = partial(review.return_from_experiment, signal_id=signal.pk)
    assert not back(said="Nobody asked for one.")
    wanted = DecisionInput(verdict=Verdict.NEEDS_EXPERIMENT)
    review.decide(signal_id=signal.pk, user=reviewer, decision=wanted, base_version=0)
    assert back(said="Alone it fails in 5 of 5 runs.")
    assert not back(said="Twice.")
    signal.refresh_from_db()
    assert (signal.state, signal.verdict) == (SignalState.OPEN, "")
    assert acts(signal) == ["opened", "claimed", "decided", "returned"]
    last = HistoryEntry.objects.filter(signal=signal).latest("base_version")
    assert (last.by, last.note) == (None, "Alone it fails in 5 of 5 runs.")


def test_an_experiment_overrules_nobody_who_has_decided_meanwhile(signal, reviewer):
    review.decide(signal_id=signal.pk, user=reviewer, decision=CONFIRM, base_version=0)
    assert not review.return_from_experiment(signal_id=signal.pk, said="Late.")
    assert not review.return_from_experiment(signal_id=0, said="Removed.")


def test_deciding_an_open_signal_claims_it_on_the_way(signal, reviewer):
    review.decide(signal_id=signal.pk, user=reviewer, decision=CONFIRM, base_version=0)
    assert acts(signal) == ["opened", "claimed", "decided"]


def test_a_second_reviewer_is_told_who_has_the_signal(project, signal, reviewer):
    review.claim(signal_id=signal.pk, user=reviewer)
    other = make_member(project, Role.REVIEWER, "sven")
    with pytest.raises(Conflict, match="rana is looking at this signal"):
        review.claim(signal_id=signal.pk, user=other)


def test_a_decision_on_an_old_version_is_refused(project, signal, reviewer):
    other = make_member(project, Role.REVIEWER, "sven")
    review.decide(signal_id=signal.pk, user=other, decision=CONFIRM, base_version=0)
    with pytest.raises(Conflict, match="sven has decided meanwhile: confirm"):
        review.decide(
            signal_id=signal.pk, user=reviewer, decision=CONFIRM, base_version=0
        )


def test_only_the_reviewer_who_decided_may_undo(project, signal, reviewer):
    decided = review.decide(
        signal_id=signal.pk, user=reviewer, decision=CONFIRM, base_version=0
    )
    other = make_member(project, Role.REVIEWER, "sven")
    with pytest.raises(Conflict, match="Only the reviewer who decided"):
        review.undo(signal_id=signal.pk, user=other, base_version=decided.version)


def test_dismissing_needs_a_reason_and_other_needs_a_note(signal, reviewer):
    for decision in (
        DecisionInput(verdict=Verdict.DISMISS),
        DecisionInput(verdict=Verdict.DISMISS, reason="other", note="  "),
    ):
        with pytest.raises(NotPossibleNow):
            review.decide(
                signal_id=signal.pk, user=reviewer, decision=decision, base_version=0
            )
    assert acts(signal) == ["opened"]


def test_the_same_submission_twice_is_one_decision(signal, reviewer):
    def submit():
        return review.decide(
            signal_id=signal.pk,
            user=reviewer,
            decision=CONFIRM,
            base_version=0,
            submission=submission,
        )

    submission = uuid4()
    submit()
    with pytest.raises(AlreadySubmitted):
        submit()
    assert acts(signal).count("decided") == 1


def test_an_expired_claim_is_opened_again_and_can_be_taken(project, signal, reviewer):
    review.claim(signal_id=signal.pk, user=reviewer)
    Signal.objects.filter(pk=signal.pk).update(claimed_until=Now())
    other = make_member(project, Role.REVIEWER, "sven")
    held = review.claim(signal_id=signal.pk, user=other)
    assert held.claimed_by == other
    assert acts(signal) == ["opened", "claimed", "expired", "claimed"]


def test_a_claim_that_ended_does_not_stand_in_the_way_of_its_decision(signal, reviewer):
    held = review.claim(signal_id=signal.pk, user=reviewer)
    Signal.objects.filter(pk=signal.pk).update(claimed_until=Now())
    assert review.release_expired_claims() == 1
    review.decide(
        signal_id=signal.pk, user=reviewer, decision=CONFIRM, base_version=held.version
    )
    assert acts(signal) == ["opened", "claimed", "expired", "claimed", "decided"]


def test_the_dead_claim_of_another_does_not_stand_in_the_way(project, signal, reviewer):
    other = make_member(project, Role.REVIEWER, "sven")
    review.claim(signal_id=signal.pk, user=other)
    Signal.objects.filter(pk=signal.pk).update(claimed_until=Now())
    review.decide(signal_id=signal.pk, user=reviewer, decision=CONFIRM, base_version=0)
    assert acts(signal) == ["opened", "claimed", "expired", "claimed", "decided"]


def test_going_on_in_the_view_of_ones_own_stays_among_ones_own(project, reviewer):
    upload_traces(project, *(decay_trace(*FALLING, name=f"run {n}") for n in range(3)))
    first, second, _ = Signal.objects.order_by("id")
    for signal in (first, second):
        review.claim(signal_id=signal.pk, user=reviewer)
    mine = QueueFilter(view="mine")
    held = review.claim_next(project=project, user=reviewer, where=mine)
    review.decide(
        signal_id=held.pk,
        user=reviewer,
        decision=CONFIRM,
        base_version=held.version,
    )
    following = review.claim_next(project=project, user=reviewer, where=mine)
    assert {held, following} == {first, second}
    review.decide(
        signal_id=following.pk,
        user=reviewer,
        decision=CONFIRM,
        base_version=following.version,
    )
    assert review.claim_next(project=project, user=reviewer, where=mine) is None


def test_the_owner_of_a_claim_renews_it_and_nobody_else(project, signal, reviewer):
    review.claim(signal_id=signal.pk, user=reviewer)
    other = make_member(project, Role.REVIEWER, "sven")
    assert review.renew(signal_id=signal.pk, user=reviewer) is not None
    assert review.renew(signal_id=signal.pk, user=other) is None


def test_a_line_of_history_cannot_be_changed_or_removed(signal):
    entry = HistoryEntry.objects.get(signal=signal)
    for change in (
        lambda: HistoryEntry.objects.filter(pk=entry.pk).update(note="rewritten"),
        lambda: HistoryEntry.objects.filter(pk=entry.pk).delete(),
    ):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            change()


def test_a_draft_is_kept_until_the_decision(signal, reviewer):
    review.save_draft(
        signal_id=signal.pk, user=reviewer, fields={"note": "half a"}, now=NOW
    )
    review.save_draft(
        signal_id=signal.pk, user=reviewer, fields={"note": "half a thought"}, now=NOW
    )
    assert Draft.objects.get().fields == {"note": "half a thought"}
    review.decide(signal_id=signal.pk, user=reviewer, decision=CONFIRM, base_version=0)
    assert not Draft.objects.exists()


def test_the_last_decision_of_a_reviewer_is_the_one_to_undo(project, signal, reviewer):
    assert last_decided_by(project=project, user=reviewer) is None
    review.decide(signal_id=signal.pk, user=reviewer, decision=CONFIRM, base_version=0)
    assert last_decided_by(project=project, user=reviewer) == signal


def test_neighbours_follow_the_order_of_the_view(project, reviewer):
    upload_traces(project, *(decay_trace(*FALLING, name=f"run {n}") for n in range(5)))
    signals = list(Signal.objects.order_by("chance", "id"))
    where = QueueFilter()
    found = [
        neighbours(project=project, where=where, signal=s, user=reviewer)
        for s in signals
    ]
    ids = [s.pk for s in signals]
    assert found[0] == (None, ids[1])
    assert found[2] == (ids[1], ids[3])
    assert found[4] == (ids[3], None)


@pytest.mark.django_db(transaction=True)
def test_many_reviewers_at_once_never_get_the_same_signal(project):
    upload_traces(project, *(decay_trace(*FALLING, name=f"run {n}") for n in range(12)))
    people = [make_member(project, Role.REVIEWER) for _ in range(6)]

    def work(user):
        taken = []
        while held := review.claim_next(
            project=project, user=user, where=QueueFilter()
        ):
            taken.append(held.pk)
            review.decide(
                signal_id=held.pk,
                user=user,
                decision=CONFIRM,
                base_version=held.version,
            )
        return taken

    answers = at_once(*(partial(work, user) for user in people))
    taken = [pk for part in answers for pk in part]
    assert len(taken) == len(set(taken)) == 12


@pytest.mark.django_db(transaction=True)
def test_of_many_decisions_on_one_signal_exactly_one_wins(project):
    upload_traces(project, decay_trace(*FALLING))
    signal = Signal.objects.get(project=project)
    people = [make_member(project, Role.REVIEWER) for _ in range(8)]

    def work(user):
        try:
            review.decide(
                signal_id=signal.pk, user=user, decision=CONFIRM, base_version=0
            )
        except Conflict as error:
            return str(error)
        return ""

    answers = at_once(*(partial(work, user) for user in people))
    assert answers.count("") == 1
    assert all("decided meanwhile" in answer for answer in answers if answer)
    assert acts(signal).count("decided") == 1
