"""What becomes of signals when another key of their check counts."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.review import operations as review
from apps.review.adopting import settle
from apps.review.models import Draft, HistoryEntry, Signal
from apps.review.operations import Conflict, DecisionInput
from apps.review.transitions import NotPossibleNow, SignalState, Verdict
from apps.screening.lineup import lineup_of
from apps.screening.models import Screening
from apps.traces.models import Trace, Upload
from tests.adopting import FALLING, STEEP, acts, adopt, caught_up, pause
from tests.factories import NOW, decay_trace, upload_traces

CONFIRM = DecisionInput(verdict=Verdict.CONFIRM, note="Lost the order number.")
DISMISS = DecisionInput(verdict=Verdict.DISMISS, reason="converged")


@pytest.fixture
def two(project):
    """A signal that only a loose bound gives, and one that a tight bound gives too."""
    upload_traces(
        project,
        decay_trace(*FALLING, name="falling"),
        decay_trace(*STEEP, name="steep"),
    )
    return signal_on("falling"), signal_on("steep")


def signal_on(name: str) -> Signal:
    return Signal.objects.select_related("screening").get(
        trace__name=name, check_slug="output-decay"
    )


def decide(signal, user, decision) -> None:
    review.decide(
        signal_id=signal.pk,
        user=user,
        decision=decision,
        base_version=Signal.objects.get(pk=signal.pk).version,
    )


def note_of(signal, act) -> str:
    rows = HistoryEntry.objects.filter(signal=signal, act=act)
    return rows.order_by("-base_version")[0].note


class TestUndecidedSignals:
    """What nobody decided follows the line-up."""

    def test_one_that_is_given_again_shows_the_answer_that_counts(self, project, two):
        _, steep = two
        adopt(project, last_percent=30)
        after = signal_on("steep")
        assert after.pk == steep.pk
        assert after.state == SignalState.OPEN
        assert after.screening.evidence["parameters"]["last_percent"] == 30
        assert after.screening.input_hash == steep.screening.input_hash
        assert acts(after) == ["opened", "adopted"]
        assert "v1 (fewest calls: 5, last of the first output: 30 %" in note_of(
            after, "adopted"
        )

    def test_one_that_is_not_given_any_more_is_superseded(self, project, two):
        falling, _ = two
        adopt(project, last_percent=30)
        after = signal_on("falling")
        assert (after.pk, after.state) == (falling.pk, SignalState.SUPERSEDED)
        assert after.screening_id == falling.screening_id
        assert "gives no signal here" in note_of(after, "superseded")

    def test_a_claim_is_released_and_the_draft_is_kept(self, project, two, reviewer):
        falling, _ = two
        review.claim(signal_id=falling.pk, user=reviewer)
        review.save_draft(
            signal_id=falling.pk, user=reviewer, fields={"note": "half a"}, now=NOW
        )
        adopt(project, last_percent=30)
        after = signal_on("falling")
        assert (after.state, after.claimed_by, after.claimed_until) == (
            SignalState.SUPERSEDED,
            None,
            None,
        )
        assert Draft.objects.get(signal=after).fields == {"note": "half a"}

    def test_a_claim_on_one_that_stands_is_kept(self, project, two, reviewer):
        _, steep = two
        held = review.claim(signal_id=steep.pk, user=reviewer)
        adopt(project, last_percent=30)
        after = signal_on("steep")
        assert after.state == SignalState.CLAIMED
        assert after.claimed_by == reviewer
        assert after.claimed_until == held.claimed_until

    def test_a_decision_on_the_page_of_before_is_refused(self, project, two, reviewer):
        _, steep = two
        held = review.claim(signal_id=steep.pk, user=reviewer)
        adopt(project, last_percent=30)
        with pytest.raises(Conflict, match="changed since you opened it"):
            review.decide(
                signal_id=steep.pk,
                user=reviewer,
                decision=CONFIRM,
                base_version=held.version,
            )

    def test_a_superseded_one_cannot_be_claimed_or_decided(
        self, project, two, reviewer
    ):
        falling, _ = two
        adopt(project, last_percent=30)
        with pytest.raises(NotPossibleNow, match="superseded"):
            review.claim(signal_id=falling.pk, user=reviewer)
        with pytest.raises(NotPossibleNow, match="superseded"):
            decide(falling, reviewer, CONFIRM)

    def test_a_key_that_gives_more_opens_what_is_new(self, project):
        upload_traces(project, decay_trace(100, 95, 90, 85, 80, name="gentle"))
        assert not Signal.objects.exists()
        adopt(project, last_percent=90)
        signal = signal_on("gentle")
        assert (signal.state, signal.agent, signal.outcome) == (
            "open",
            "planner",
            "pass",
        )
        assert (signal.length, signal.chance) == (5, pytest.approx(1 / 120))
        assert acts(signal) == ["opened"]


class TestDecidedSignals:
    """A decision is never lost, whatever counts now."""

    def test_it_stays_with_its_evidence_when_the_key_gives_it_too(
        self, project, two, reviewer
    ):
        _, steep = two
        decide(steep, reviewer, CONFIRM)
        adopt(project, last_percent=30)
        after = signal_on("steep")
        assert (after.state, after.verdict) == (SignalState.DECIDED, "confirm")
        assert after.screening_id == steep.screening_id
        assert "gives this signal too. The decision stays." in note_of(after, "adopted")
        assert Signal.objects.filter(trace=after.trace).count() == 1

    def test_it_stays_when_the_key_gives_no_signal_there(self, project, two, reviewer):
        falling, _ = two
        decide(falling, reviewer, DISMISS)
        adopt(project, last_percent=30)
        after = signal_on("falling")
        assert (after.state, after.reason) == (SignalState.DECIDED, "converged")
        assert "gives no signal here. The decision stays." in note_of(after, "adopted")

    def test_one_that_was_undone_follows_the_line_up_again(
        self, project, two, reviewer
    ):
        falling, _ = two
        decide(falling, reviewer, DISMISS)
        version = Signal.objects.get(pk=falling.pk).version
        review.undo(signal_id=falling.pk, user=reviewer, base_version=version)
        adopt(project, last_percent=30)
        assert signal_on("falling").state == SignalState.SUPERSEDED

    def test_one_that_was_undone_leaves_with_its_claim_if_nothing_gives_it(
        self, project, two, reviewer, django_capture_on_commit_callbacks
    ):
        falling, steep = two
        for signal in two:
            decide(signal, reviewer, DISMISS)
        adopt(project, last_percent=30)
        for signal in two:
            version = Signal.objects.get(pk=signal.pk).version
            review.undo(signal_id=signal.pk, user=reviewer, base_version=version)
        with django_capture_on_commit_callbacks(execute=True):
            review.release(signal_id=falling.pk, user=reviewer)
        Signal.objects.filter(pk=steep.pk).update(claimed_until=NOW)
        with django_capture_on_commit_callbacks(execute=True):
            assert review.release_expired_claims() == 1
        caught_up(project)
        assert signal_on("falling").state == SignalState.SUPERSEDED
        assert signal_on("steep").state == SignalState.OPEN
        assert signal_on("steep").screening.evidence["parameters"]["last_percent"] == 30
        assert Trace.objects.get(name="falling").signal_count == 0

    def test_the_same_is_not_told_twice(self, project, two, reviewer):
        for signal in two:
            decide(signal, reviewer, CONFIRM)
        adopt(project, last_percent=30)
        told = [acts(signal) for signal in two]
        adopt(project, "tool-drift", window=5)
        assert [acts(signal) for signal in two] == told


class TestGoingBack:
    """Adopting the earlier key brings everything back."""

    def test_superseded_signals_are_open_again_and_decisions_are_there(
        self, project, two, reviewer
    ):
        falling, steep = two
        decide(steep, reviewer, CONFIRM)
        adopt(project, last_percent=30)
        adopt(project, last_percent=60)
        back, same = signal_on("falling"), signal_on("steep")
        assert (back.pk, back.state) == (falling.pk, SignalState.OPEN)
        assert back.screening_id == falling.screening_id
        assert acts(back) == ["opened", "superseded", "reopened"]
        assert (same.state, same.verdict) == (SignalState.DECIDED, "confirm")
        assert same.screening_id == steep.screening_id
        assert Signal.objects.count() == 2

    def test_nothing_is_screened_twice(self, project, two):
        adopt(project, last_percent=30)
        before = set(Screening.objects.values_list("pk", flat=True))
        adopt(project, last_percent=60)
        assert set(Screening.objects.values_list("pk", flat=True)) == before


class TestPausing:
    """A paused check answers, and nothing of it is queued."""

    def test_its_open_signals_leave_the_queue_and_come_back(self, project, two):
        pause(project, is_paused=True)
        assert {s.state for s in Signal.objects.all()} == {"superseded"}
        assert "is paused, so nothing of it is queued" in note_of(two[0], "superseded")
        pause(project, is_paused=False)
        assert {s.state for s in Signal.objects.all()} == {"open"}

    def test_its_decisions_stay_without_a_word(self, project, two, reviewer):
        decide(two[0], reviewer, CONFIRM)
        pause(project, is_paused=True)
        after = signal_on("falling")
        assert (after.state, after.verdict) == ("decided", "confirm")
        assert acts(after) == ["opened", "claimed", "decided"]

    def test_new_traces_are_answered_and_not_queued(self, project, two):
        pause(project, is_paused=True)
        upload_traces(project, decay_trace(*STEEP, name="later"), name="later.jsonl")
        later = Screening.objects.filter(
            trace__name="later", check_slug="output-decay", level="review_signal"
        )
        assert later.exists()
        assert not Signal.objects.filter(trace__name="later").exists()
        pause(project, is_paused=False)
        assert signal_on("later").state == "open"


def test_the_counts_of_traces_and_uploads_follow(project, two, reviewer):
    def counted():
        [upload] = Upload.objects.all()
        traces = dict(Trace.objects.values_list("name", "signal_count"))
        return upload.signal_count, traces

    assert counted() == (2, {"falling": 1, "steep": 1})
    adopt(project, last_percent=30)
    assert counted() == (1, {"falling": 0, "steep": 1})
    adopt(project, last_percent=60)
    assert counted() == (2, {"falling": 1, "steep": 1})


def test_settling_twice_changes_nothing_the_second_time(project, two, reviewer):
    decide(two[1], reviewer, CONFIRM)
    adopt(project, last_percent=30)
    ids = list(Trace.objects.values_list("pk", flat=True))
    before = list(HistoryEntry.objects.order_by("pk").values())
    signals = list(Signal.objects.order_by("pk").values())
    settle(trace_ids=ids, lineup=lineup_of(project.pk), now=NOW)
    assert list(HistoryEntry.objects.order_by("pk").values()) == before
    assert list(Signal.objects.order_by("pk").values()) == signals


def test_settling_takes_the_same_number_of_queries_for_many_traces(project):
    def queries(prefix: str, count: int) -> int:
        traces = [decay_trace(*STEEP, name=f"{prefix}{n}") for n in range(count)]
        traces += [decay_trace(*FALLING, name=f"{prefix}f{n}") for n in range(count)]
        upload_traces(project, *traces, name=f"{prefix}.jsonl")
        ids = list(
            Trace.objects.filter(name__startswith=prefix).values_list("pk", flat=True)
        )
        lineup = lineup_of(project.pk)
        # As if another key had counted when they came.
        Signal.objects.filter(trace_id__in=ids).delete()
        with CaptureQueriesContext(
            connection,
        ) as seen:
            settle(trace_ids=ids, lineup=lineup, now=NOW)
        assert Signal.objects.filter(trace_id__in=ids).count() == 2 * count
        return len(seen)

    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('evalsite.erasing', 'yes', true)")
    few = queries("a", 2)
    assert queries("b", 20) == few


def test_nobody_is_named_for_what_the_line_up_did(project, two):
    adopt(project, last_percent=30)
    assert HistoryEntry.objects.filter(act="superseded").get().by is None
