"""Late spans re-screen a trace; what reviewers said about it is never lost."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.live.models import LiveTrace
from apps.review.models import Draft, HistoryEntry, Signal
from apps.review.operations import (
    Conflict,
    DecisionInput,
    claim,
    decide,
    save_draft,
    undo,
)
from apps.review.transitions import Verdict
from apps.screening.models import Screening
from apps.traces.models import Trace, Upload
from tests.factories import NOW
from tests.formats.otlp_files import agent, call, span
from tests.live.conftest import billing_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_once")]

CONFIRM = DecisionInput(verdict=Verdict.CONFIRM)


@pytest.fixture
def signal(come) -> Signal:
    come(*billing_run())
    return Signal.objects.get()


def history(signal: Signal) -> list[tuple[str, str]]:
    rows = HistoryEntry.objects.filter(signal=signal).order_by("base_version")
    return list(rows.values_list("act", "note"))


def evidence_texts(signal: Signal) -> list[str]:
    """The spans that the evidence points at, by their ids."""
    signal.refresh_from_db()
    places = signal.screening.evidence["series"]["steps"]
    rows = dict(signal.trace.step_set.values_list("seq", "native_id"))
    return [rows[place] for place in places]


def test_the_trace_keeps_its_id_and_gets_the_new_steps(come):
    first = come(*billing_run(112, 100))
    again = come(*billing_run())
    assert again.pk == first.pk
    assert again.step_count == 8
    assert again.step_set.count() == 8
    assert again.content_hash != first.content_hash
    assert LiveTrace.objects.get().trace_id == first.pk


def test_a_signal_appears_when_late_spans_make_it_one(come):
    trace = come(*billing_run(112, 100, 86))
    assert Signal.objects.count() == 0
    come(*billing_run())
    signal = Signal.objects.get()
    assert signal.trace_id == trace.pk
    assert [act for act, _ in history(signal)] == ["opened"]


def test_an_open_signal_that_is_none_any_more_goes(come, signal):
    come(call(20, 2, 500))
    assert Signal.objects.count() == 0
    assert Trace.objects.get().signal_count == 0
    assert Upload.objects.get().signal_count == 0
    answers = Screening.objects.filter(check_slug="output-decay")
    assert [one.answer for one in answers] == ["quiet"]


def test_spans_that_leave_the_evidence_as_it_is_touch_nothing(come, signal, reviewer):
    claim(signal_id=signal.pk, user=reviewer)
    before = history(signal)
    spans = evidence_texts(signal)
    come(span(30, 1, name="earlier", at=0.5))
    signal.refresh_from_db()
    assert (signal.state, signal.claimed_by) == ("claimed", reviewer)
    assert history(signal) == before
    assert evidence_texts(signal) == spans


def test_a_claimed_signal_with_new_evidence_keeps_its_claim_and_says_so(
    come, signal, reviewer
):
    claimed = claim(signal_id=signal.pk, user=reviewer)
    headline = signal.headline
    come(call(20, 2, 30))
    signal.refresh_from_db()
    assert (signal.state, signal.claimed_by) == ("claimed", reviewer)
    assert signal.length == 7
    assert signal.screening.evidence["length"] == 7
    act, note = history(signal)[-1]
    assert act == "rescreened"
    assert headline in note
    with pytest.raises(Conflict, match="has changed since"):
        decide(
            signal_id=signal.pk,
            user=reviewer,
            decision=CONFIRM,
            base_version=claimed.version,
        )


def test_what_a_reviewer_typed_is_kept_when_the_check_fires_no_longer(
    come, signal, reviewer
):
    save_draft(signal_id=signal.pk, user=reviewer, fields={"note": "hm"}, now=NOW)
    come(call(20, 2, 500))
    assert Draft.objects.get().signal == signal
    assert "gives no signal here any more" in history(signal)[-1][1]


class TestADecidedSignal:
    @pytest.fixture
    def decided(self, signal, reviewer):
        return decide(
            signal_id=signal.pk, user=reviewer, decision=CONFIRM, base_version=0
        )

    @pytest.mark.parametrize("output", [30, 500])
    def test_it_keeps_decision_and_evidence_and_tells_what_the_check_says_now(
        self, come, decided, output
    ):
        evidence = decided.screening.evidence
        come(call(20, 2, output))
        decided.refresh_from_db()
        assert (decided.state, decided.verdict) == ("decided", "confirm")
        assert decided.screening.evidence == evidence
        act, note = history(decided)[-1]
        assert act == "rescreened"
        assert note.startswith("Late spans changed this trace.")
        assert "the check now says" in note
        assert Signal.objects.count() == 1
        assert Trace.objects.get().signal_count == 1

    def test_its_evidence_points_at_the_same_spans_after_steps_have_moved(
        self, come, decided
    ):
        spans = evidence_texts(decided)
        come(span(30, 1, name="earlier", at=0.5), call(20, 2, 500))
        assert evidence_texts(decided) == spans

    def test_it_stays_when_its_part_of_the_trace_is_another_one_now(
        self, come, decided
    ):
        come(agent(40, 1, "earlier", at=0.1), call(41, 40, 9, at=0.2))
        decided.refresh_from_db()
        assert decided.verdict == "confirm"
        assert history(decided)[-1][0] == "rescreened"

    def test_the_same_news_is_told_once(self, come, decided):
        come(call(20, 2, 500))
        told = len(history(decided))
        come(span(31, 1, name="afterwards", at=70))
        assert len(history(decided)) == told

    def test_a_decision_that_was_taken_back_is_not_lost_either(
        self, come, decided, reviewer
    ):
        undo(signal_id=decided.pk, user=reviewer, base_version=decided.version)
        come(call(20, 2, 500))
        acts = [act for act, _ in history(decided)]
        assert acts[-3:] == ["decided", "undone", "rescreened"]

    def test_the_page_says_it_in_words(self, come, decided, client, owner, project):
        come(call(20, 2, 500))
        client.force_login(owner)
        page = client.get(reverse("signal", args=[project.slug, decided.pk]))
        assert page.status_code == 200
        text = page.content.decode()
        assert "Late spans changed this trace" in text
        assert "A removed account" not in text
