"""Which traces are drawn for blind looks, and how they are taken back."""

from __future__ import annotations

import pytest
from django.db import transaction

from apps.accounts.operations import set_blind_percent
from apps.review import blind, blind_sample
from apps.review.blind import BlindInput
from apps.review.blind_sample import undecided_count, withdraw
from apps.review.models import BlindEntry, BlindLook
from apps.review.transitions import BlindVerdict, NotPossibleNow, SignalState
from apps.traces.models import Trace
from apps.traces.operations import allow_erasing_history
from tests.factories import NOW, decay_trace, upload_traces

FALLING = (100, 90, 80, 70, 60)
QUIET = (50, 60, 55, 58, 61)
FAILURE = BlindInput(
    verdict=BlindVerdict.FAILURE, note="It stops too early.", where_step=3
)


def acts(look):
    rows = BlindEntry.objects.filter(look=look).order_by("base_version")
    return list(rows.values_list("act", flat=True))


def traces(*, falling: int, quiet: int, first: int = 0):
    made = [
        decay_trace(*FALLING, name=f"falls {first + number}")
        for number in range(falling)
    ]
    return made + [
        decay_trace(*QUIET, name=f"holds {first + number}") for number in range(quiet)
    ]


def furnish(project, *, percent: int = 100, falling: int = 1, quiet: int = 1):
    set_blind_percent(project=project, percent=percent)
    return upload_traces(project, *traces(falling=falling, quiet=quiet))


class TestDrawing:
    """Which traces are looked at blindly."""

    def test_none_are_drawn_where_no_share_is_set(self, project):
        furnish(project, percent=0, falling=2, quiet=5)
        assert not BlindLook.objects.exists()

    def test_about_the_share_of_unflagged_traces_and_as_many_flagged_ones(
        self, project
    ):
        furnish(project, percent=20, falling=120, quiet=280)
        drawn = BlindLook.objects.filter(project=project)
        unflagged = drawn.filter(was_flagged=False).count()
        flagged = drawn.filter(was_flagged=True).count()
        # 56 are expected of each; four standard deviations of the draw on either side.
        assert abs(unflagged - 56) < 4 * (280 * 0.2 * 0.8) ** 0.5
        assert abs(flagged - 56) < 4 * (120 * 56 / 120 * 64 / 120) ** 0.5
        for look in drawn.select_related("trace"):
            assert look.was_flagged == (look.trace.signal_count > 0)

    def test_what_was_flagged_stays_as_it_was_when_it_was_drawn(self, project):
        furnish(project)
        look = BlindLook.objects.get(was_flagged=False)
        Trace.objects.filter(pk=look.trace_id).update(signal_count=1)
        look.refresh_from_db()
        assert look.was_flagged is False

    def test_the_same_traces_are_drawn_in_the_same_order_again(self, project):
        furnish(project, percent=50, falling=10, quiet=30)
        ids = list(Trace.objects.order_by("pk").values_list("pk", flat=True))
        flagged = set(
            Trace.objects.filter(signal_count__gt=0).values_list("pk", flat=True)
        )
        before = list(BlindLook.objects.order_by("pk").values("trace_id", "place"))
        with transaction.atomic():
            allow_erasing_history()
            BlindLook.objects.all().delete()
        project.refresh_from_db()
        blind_sample.draw_blind_looks(
            project=project, trace_ids=ids, flagged=flagged, now=NOW
        )
        after = list(BlindLook.objects.order_by("pk").values("trace_id", "place"))
        assert 10 < len(before) < 36
        assert after == before

    def test_another_share_changes_only_what_comes_later(self, project):
        furnish(project, percent=0, falling=2, quiet=4)
        set_blind_percent(project=project, percent=100)
        assert not BlindLook.objects.exists()
        upload_traces(
            project, *traces(falling=1, quiet=2, first=10), name="later.jsonl"
        )
        assert BlindLook.objects.count() == 3
        set_blind_percent(project=project, percent=0)
        upload_traces(project, *traces(falling=1, quiet=2, first=20), name="last.jsonl")
        assert BlindLook.objects.count() == 3

    def test_what_nobody_decided_can_be_taken_back_and_is_not_drawn_again(
        self, project, reviewer, owner
    ):
        furnish(project, falling=1, quiet=3)
        decided = blind.claim_next(project=project, user=reviewer)
        blind.decide(
            look_id=decided.pk,
            user=reviewer,
            decision=FAILURE,
            base_version=decided.version,
        )
        held = blind.claim_next(project=project, user=reviewer)
        assert withdraw(project=project, user=owner) == 3
        assert undecided_count(project=project) == 0
        assert acts(held) == ["drawn", "claimed", "withdrawn"]
        decided.refresh_from_db()
        assert decided.state == SignalState.DECIDED
        with pytest.raises(NotPossibleNow, match="withdrawn"):
            blind.decide(
                look_id=held.pk,
                user=reviewer,
                decision=FAILURE,
                base_version=held.version + 1,
            )
        assert withdraw(project=project, user=owner) == 0
