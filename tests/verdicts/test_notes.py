"""Notes of reviewers on trials: one counts, none is ever changed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.traces.models import Trace
from apps.verdicts.models import TrialNote
from apps.verdicts.notes import (
    LONGEST_NOTE,
    Noted,
    WrongNote,
    current_note,
    history_of,
    note_trial,
    withdraw_note,
)
from tests.desks import FAIL, PASS, UNKNOWN, desk_trace
from tests.factories import NOW, upload_traces
from tests.scored import scored

pytestmark = pytest.mark.django_db


@pytest.fixture
def trials(project):
    acts = ("triage", [("says", {"route": "billing"})])
    outcomes = (PASS, FAIL, UNKNOWN)
    upload_traces(
        project,
        *(desk_trace(acts, trial=n, outcome=one) for n, one in enumerate(outcomes, 1)),
    )
    return list(Trace.objects.order_by("trial"))


def note(trace, kind, user, **more):
    later = NOW + timedelta(minutes=TrialNote.objects.count())
    return note_trial(
        trace=trace, noted=Noted(kind, **more), user_id=user.pk, now=later
    )


def test_the_newest_note_counts_and_the_others_stay(trials, owner, reviewer):
    _, failed, _ = trials
    note(failed, "sound_but_wrong", owner, step=1, note="The policy is out of date.")
    note(failed, "sound_but_wrong", reviewer, step=0)
    history = history_of([failed.pk])[failed.pk]
    assert [(one.step, one.noted_by) for one in history] == [(0, reviewer), (1, owner)]
    assert current_note(history) == history[0]


def test_withdrawing_is_one_more_row_and_can_not_be_done_twice(trials, owner):
    passed, *_ = trials
    note(passed, "right_by_luck", owner)
    withdraw_note(trace=passed, user_id=owner.pk, now=NOW)
    history = history_of([passed.pk])[passed.pk]
    assert [one.kind for one in history] == ["withdrawn", "right_by_luck"]
    assert current_note(history) is None
    with pytest.raises(WrongNote, match="no note"):
        withdraw_note(trace=passed, user_id=owner.pk, now=NOW)
    note(passed, "right_by_luck", owner)
    assert current_note(history_of([passed.pk])[passed.pk]).kind == "right_by_luck"


def test_the_same_note_again_is_the_note_that_is_there(trials, owner, reviewer):
    passed, *_ = trials
    first = note(passed, "right_by_luck", owner, note=" guessed ")
    assert note(passed, "right_by_luck", owner, note="guessed") == first
    assert note(passed, "right_by_luck", reviewer, note="guessed") != first


def test_a_note_fits_the_outcome_of_its_trial(trials, owner, project):
    passed, failed, unknown = trials
    for is_scored in (False, True):
        if is_scored:
            scored(project)
        with pytest.raises(WrongNote, match="this one passed"):
            note(passed, "sound_but_wrong", owner)
        with pytest.raises(WrongNote, match="this one failed"):
            note(failed, "right_by_luck", owner)
    assert note(unknown, "right_by_luck", owner).pk
    assert note(unknown, "sound_but_wrong", owner).pk


@pytest.mark.parametrize(
    ("kind", "more", "said"),
    [
        ("withdrawn", {}, "sound but wrong"),
        ("guess", {}, "sound but wrong"),
        ("right_by_luck", {"step": 2}, "steps 1 to 2"),
        ("right_by_luck", {"step": -1}, "steps 1 to 2"),
        ("right_by_luck", {"note": "x" * (LONGEST_NOTE + 1)}, "2,000 characters"),
    ],
)
def test_a_wrong_note_is_refused_in_words(trials, owner, kind, more, said):
    with pytest.raises(WrongNote, match=said):
        note(trials[0], kind, owner, **more)
    assert not TrialNote.objects.exists()


def test_a_text_with_a_zero_byte_is_kept_without_it(trials, owner):
    assert note(trials[0], "right_by_luck", owner, note="a\x00b").note == "ab"


def test_histories_of_many_trials_are_one_query(
    trials, owner, django_assert_num_queries
):
    for trace in trials:
        kind = "sound_but_wrong" if trace.outcome == "fail" else "right_by_luck"
        note(trace, kind, owner)
    with django_assert_num_queries(1):
        found = history_of([one.pk for one in trials])
        assert {one[0].noted_by.username for one in found.values()} == {"olga"}
