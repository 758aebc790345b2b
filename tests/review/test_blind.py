"""Blind looks: claims, decisions, undo, turns, what is revealed, and what stays."""

from __future__ import annotations

import inspect
from functools import partial
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from apps.accounts.operations import set_blind_percent
from apps.accounts.permissions import Role
from apps.review import blind, blind_sample
from apps.review import operations as review
from apps.review.blind import NOT_BLIND, BlindInput
from apps.review.blind_sample import offered_to
from apps.review.blind_states import BLIND_NEXT, BlindAct, following
from apps.review.erasing import lock_decided, lock_undecided
from apps.review.models import BlindDraft, BlindEntry, BlindLook, Signal
from apps.review.operations import AlreadySubmitted, Conflict, DecisionInput
from apps.review.queries import QueueFilter
from apps.review.transitions import (
    BlindVerdict,
    NotPossibleNow,
    SignalState,
    Verdict,
)
from apps.review.turns import SIGNALS_BETWEEN, claim_next_turn
from apps.traces.operations import allow_erasing_history
from tests.at_once import at_once
from tests.factories import NOW, make_member, upload_traces
from tests.review.test_blind_sample import FAILURE, acts, furnish, traces


@pytest.fixture
def look(project):
    furnish(project)
    return BlindLook.objects.get(was_flagged=False)


class TestActs:
    """Claims, decisions, undo, and the end of blindness."""

    def test_a_look_is_claimed_decided_undone_and_decided_again(self, look, reviewer):
        held = blind.claim(look_id=look.pk, user=reviewer)
        decided = blind.decide(
            look_id=look.pk,
            user=reviewer,
            decision=FAILURE,
            base_version=held.version,
        )
        assert (decided.state, decided.verdict) == ("decided", "failure")
        undone = blind.undo(
            look_id=look.pk, user=reviewer, base_version=decided.version
        )
        assert (undone.state, undone.verdict) == ("claimed", "")
        assert undone.claimed_by == reviewer
        again = blind.decide(
            look_id=look.pk,
            user=reviewer,
            decision=BlindInput(
                verdict=BlindVerdict.NO_FAILURE, failure_kind="tool", where_step=2
            ),
            base_version=undone.version,
        )
        assert again.verdict == BlindVerdict.NO_FAILURE
        assert acts(look) == ["drawn", "claimed", "decided", "undone", "decided"]
        last = blind.history_of(look).last()
        # Where and of which kind belongs to a failure only.
        assert (last.failure_kind, last.where_step) == ("", None)

    def test_after_the_answers_were_shown_there_is_no_undo(self, look, reviewer):
        decided = blind.decide(
            look_id=look.pk, user=reviewer, decision=FAILURE, base_version=0
        )
        blind.reveal(look_id=look.pk, user=reviewer)
        blind.reveal(look_id=look.pk, user=reviewer)
        assert acts(look).count("revealed") == 1
        with pytest.raises(NotPossibleNow, match="have seen what the checks said"):
            blind.undo(look_id=look.pk, user=reviewer, base_version=decided.version + 1)
        assert blind.last_decided_by(project=look.project, user=reviewer) is None

    def test_nothing_is_revealed_before_the_decision_or_to_another(
        self, project, look, reviewer
    ):
        with pytest.raises(NotPossibleNow, match="no decision"):
            blind.reveal(look_id=look.pk, user=reviewer)
        blind.decide(look_id=look.pk, user=reviewer, decision=FAILURE, base_version=0)
        other = make_member(project, Role.REVIEWER, "sven")
        with pytest.raises(Conflict, match="Only the reviewer who decided"):
            blind.reveal(look_id=look.pk, user=other)

    def test_a_second_reviewer_is_told_who_has_it_but_not_what_was_said(
        self, project, look, reviewer
    ):
        blind.claim(look_id=look.pk, user=reviewer)
        other = make_member(project, Role.REVIEWER, "sven")
        with pytest.raises(Conflict, match="rana is looking at this trace"):
            blind.claim(look_id=look.pk, user=other)
        blind.decide(look_id=look.pk, user=reviewer, decision=FAILURE, base_version=1)
        with pytest.raises(Conflict, match="rana has decided meanwhile") as told:
            blind.decide(look_id=look.pk, user=other, decision=FAILURE, base_version=0)
        assert "failure" not in str(told.value)

    def test_a_claim_that_ended_can_be_taken_and_ends_by_itself(
        self, project, look, reviewer
    ):
        blind.claim(look_id=look.pk, user=reviewer)
        BlindLook.objects.filter(pk=look.pk).update(claimed_until=Now())
        other = make_member(project, Role.REVIEWER, "sven")
        assert blind.claim(look_id=look.pk, user=other).claimed_by == other
        BlindLook.objects.filter(pk=look.pk).update(claimed_until=Now())
        assert blind.release_expired_looks() == 1
        assert acts(look) == ["drawn", "claimed", "expired", "claimed", "expired"]
        assert blind.renew(look_id=look.pk, user=other) is None

    def test_ones_own_claim_is_renewed_and_given_back(self, look, reviewer):
        first = blind.claim(look_id=look.pk, user=reviewer).claimed_until
        assert blind.claim(look_id=look.pk, user=reviewer).claimed_until > first
        assert blind.renew(look_id=look.pk, user=reviewer) > first
        blind.release(look_id=look.pk, user=reviewer)
        blind.release(look_id=look.pk, user=reviewer)
        assert acts(look) == ["drawn", "claimed", "released"]

    def test_who_decided_a_signal_of_the_trace_is_not_blind(self, project, reviewer):
        furnish(project, falling=1, quiet=0)
        flagged = Signal.objects.get()
        set_blind_percent(project=project, percent=100)
        look = BlindLook.objects.create(
            project=project,
            trace=flagged.trace,
            was_flagged=True,
            place=0.5,
            created_at=NOW,
        )
        decided = review.decide(
            signal_id=flagged.pk,
            user=reviewer,
            decision=DecisionInput(verdict=Verdict.CONFIRM),
            base_version=0,
        )
        review.undo(signal_id=flagged.pk, user=reviewer, base_version=decided.version)
        assert not offered_to(project=project, user=reviewer).exists()
        assert blind.claim_next(project=project, user=reviewer) is None
        for act in (
            lambda: blind.claim(look_id=look.pk, user=reviewer),
            lambda: blind.decide(
                look_id=look.pk, user=reviewer, decision=FAILURE, base_version=0
            ),
        ):
            with pytest.raises(NotPossibleNow) as told:
                act()
            assert str(told.value) == NOT_BLIND
        other = make_member(project, Role.REVIEWER, "sven")
        assert blind.claim_next(project=project, user=other) == look

    def test_the_same_submission_twice_is_one_decision(self, look, reviewer):
        submission = uuid4()
        for _ in range(2):
            try:
                blind.decide(
                    look_id=look.pk,
                    user=reviewer,
                    decision=FAILURE,
                    base_version=0,
                    submission=submission,
                )
            except AlreadySubmitted:
                assert acts(look).count("decided") == 1
                return
        pytest.fail("The second submission was taken.")

    def test_a_decision_on_what_has_changed_since_is_refused(self, look, reviewer):
        decided = blind.decide(
            look_id=look.pk, user=reviewer, decision=FAILURE, base_version=0
        )
        blind.undo(look_id=look.pk, user=reviewer, base_version=decided.version)
        with pytest.raises(Conflict, match="has changed since"):
            blind.decide(
                look_id=look.pk, user=reviewer, decision=FAILURE, base_version=0
            )

    def test_a_draft_is_kept_until_the_decision(self, look, reviewer):
        blind.save_draft(look_id=look.pk, user=reviewer, fields={"note": "a"}, now=NOW)
        blind.save_draft(look_id=look.pk, user=reviewer, fields={"note": "b"}, now=NOW)
        assert blind.draft_of(look=look, user=reviewer).fields == {"note": "b"}
        blind.decide(look_id=look.pk, user=reviewer, decision=FAILURE, base_version=0)
        assert not BlindDraft.objects.exists()

    @pytest.mark.parametrize("state", SignalState)
    @pytest.mark.parametrize("act", BlindAct)
    def test_what_may_not_follow_is_refused_in_a_sentence(self, state, act):
        if (state, act) in BLIND_NEXT:
            assert following(state, act) is BLIND_NEXT[state, act]
            return
        with pytest.raises(NotPossibleNow, match=r"cannot be .+\."):
            following(state, act)

    def test_every_act_has_an_operation_that_does_it(self):
        source = inspect.getsource(blind) + inspect.getsource(blind_sample)
        assert {a for a in BlindAct if f"BlindAct.{a.name}" not in source} == set()


class TestTurns:
    """Blind looks come between signals at a fixed rate."""

    def test_after_four_signals_comes_a_blind_look_and_at_the_end_the_rest(
        self, project, reviewer
    ):
        furnish(project, percent=100, falling=0, quiet=3)
        set_blind_percent(project=project, percent=0)
        upload_traces(
            project, *traces(falling=9, quiet=0, first=30), name="falling.jsonl"
        )
        served = []
        while got := claim_next_turn(
            project=project, user=reviewer, where=QueueFilter()
        ):
            served.append("signal" if isinstance(got, Signal) else "look")
        four = ["signal"] * SIGNALS_BETWEEN
        assert served == [*four, "look", *four, "look", "signal", "look"]

    @pytest.mark.parametrize(
        "where", [QueueFilter(agent="planner"), QueueFilter(view="mine")]
    )
    def test_a_narrowed_view_serves_no_blind_look(self, project, reviewer, where):
        furnish(project, falling=0, quiet=2)
        assert claim_next_turn(project=project, user=reviewer, where=where) is None


class TestKeeping:
    """History stays, and goes together with its trace or project only."""

    def test_the_history_of_a_look_can_neither_be_changed_nor_removed(self, look):
        for change in (
            lambda: BlindEntry.objects.update(note="other"),
            lambda: BlindEntry.objects.all().delete(),
        ):
            with (
                pytest.raises(IntegrityError, match="append-only"),
                transaction.atomic(),
            ):
                change()

    @pytest.mark.parametrize("what", ["trace", "project"])
    def test_erasing_a_trace_or_its_project_takes_its_looks_along(
        self, project, look, reviewer, what
    ):
        blind.decide(look_id=look.pk, user=reviewer, decision=FAILURE, base_version=0)
        with transaction.atomic():
            allow_erasing_history()
            (look.trace if what == "trace" else project).delete()
        assert not BlindEntry.objects.filter(look_id=look.pk).exists()
        assert BlindLook.objects.count() == (1 if what == "trace" else 0)

    def test_a_trace_that_was_decided_about_blindly_is_never_taken_away(
        self, look, reviewer
    ):
        with transaction.atomic():
            assert lock_undecided(upload_id=look.trace.upload_id)
            assert lock_decided(trace_ids=[look.trace_id]) == set()
        blind.decide(look_id=look.pk, user=reviewer, decision=FAILURE, base_version=0)
        with transaction.atomic():
            assert not lock_undecided(upload_id=look.trace.upload_id)
            assert lock_decided(trace_ids=[look.trace_id]) == {look.trace_id}

    def test_removing_an_account_keeps_what_was_decided(self, look, reviewer):
        blind.decide(look_id=look.pk, user=reviewer, decision=FAILURE, base_version=0)
        reviewer.delete()
        look.refresh_from_db()
        assert (look.verdict, look.decided_by) == ("failure", None)
        assert blind.history_of(look).last().by is None


@pytest.mark.django_db(transaction=True)
def test_eight_reviewers_at_once_never_get_the_same_look(project):
    furnish(project, falling=0, quiet=16)
    people = [make_member(project, Role.REVIEWER) for _ in range(8)]

    def work(user):
        taken = []
        while held := blind.claim_next(project=project, user=user):
            taken.append(held.pk)
            blind.decide(
                look_id=held.pk,
                user=user,
                decision=FAILURE,
                base_version=held.version,
            )
        return taken

    answers = at_once(*(partial(work, user) for user in people))
    taken = [pk for part in answers for pk in part]
    assert len(taken) == len(set(taken)) == 16
    decided = BlindEntry.objects.filter(act=BlindAct.DECIDED.value)
    assert decided.count() == 16


@pytest.mark.django_db(transaction=True)
def test_of_many_decisions_on_one_look_exactly_one_wins(project):
    furnish(project, falling=0, quiet=1)
    look = BlindLook.objects.get()
    people = [make_member(project, Role.REVIEWER) for _ in range(8)]

    def work(user):
        try:
            blind.decide(look_id=look.pk, user=user, decision=FAILURE, base_version=0)
        except Conflict as error:
            return str(error)
        return ""

    answers = at_once(*(partial(work, user) for user in people))
    assert answers.count("") == 1
    assert acts(look).count("decided") == 1
