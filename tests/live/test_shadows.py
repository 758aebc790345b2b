"""Late spans change a trace while a shadow runs over it, and after another adoption."""

from __future__ import annotations

import pytest

from apps.pipeline.shadows import Wish, adopt_key
from apps.review.models import HistoryEntry, Signal
from apps.review.operations import DecisionInput, decide
from apps.review.shadow_results import Pair, compare
from apps.review.transitions import Verdict
from apps.screening.lineup import lineup_of
from apps.screening.models import Screening
from apps.screening.shadows import check_of
from apps.traces.models import Trace
from tests.adopting import adopt, caught_up, key, pause, shadowed
from tests.factories import NOW
from tests.formats.otlp_files import agent, call
from tests.live.conftest import billing_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_once")]
LATE = call(9, 2, 30)
RISING = call(9, 2, 900)
CONFIRM = DecisionInput(verdict=Verdict.CONFIRM)


@pytest.fixture
def signal(come) -> Signal:
    come(*billing_run())
    return Signal.objects.get(check_slug="output-decay")


def of_decay() -> list[Signal]:
    return list(Signal.objects.filter(check_slug="output-decay").order_by("pk"))


def test_the_answers_of_a_shadow_go_and_the_result_counts_the_trace(
    project, come, signal
):
    shadow = shadowed(project, last_percent=20)
    come(LATE)
    own = Screening.objects.filter(parameters_hash=shadow.parameters_hash)
    assert not own.exists()
    lineup = lineup_of(project.pk)
    pair = Pair(project, lineup.by_slug["output-decay"].check, check_of(shadow, lineup))
    found = compare(pair)
    assert (found.compared, found.unanswered) == (0, 1)
    adopt(project, last_percent=20)
    assert own.count() == 1


def test_a_decision_under_the_key_of_before_stays_and_what_is_new_is_a_signal(
    project, come, signal, reviewer
):
    decide(signal_id=signal.pk, user=reviewer, decision=CONFIRM, base_version=0)
    adopt(project, last_percent=50)
    assert [one.state for one in of_decay()] == ["decided"]
    come(LATE)
    old, new = of_decay()
    assert (old.pk, old.state, old.verdict) == (signal.pk, "decided", "confirm")
    assert old.screening_id == signal.screening_id
    assert (new.state, new.length) == ("open", 7)
    assert new.screening.evidence["parameters"]["last_percent"] == 50
    before = HistoryEntry.objects.count()
    Trace.objects.update(screened_as="")
    caught_up(project)
    assert [one.pk for one in of_decay()] == [old.pk, new.pk]
    assert HistoryEntry.objects.count() == before


def test_a_decided_signal_that_stands_is_not_doubled_by_other_late_spans(
    project, come, signal, reviewer
):
    decide(signal_id=signal.pk, user=reviewer, decision=CONFIRM, base_version=0)
    adopt(project, last_percent=50)
    come(call(30, 1, 70, model="other-model"))
    assert [(one.pk, one.state) for one in of_decay()] == [(signal.pk, "decided")]


def test_late_spans_before_the_catch_up_bring_the_signal_to_the_key_that_counts(
    project, come, signal
):
    adopt_key(
        project_id=project.pk,
        wish=Wish(key(project, last_percent=50)),
        user_id=None,
        now=NOW,
    )
    come(LATE)
    [after] = of_decay()
    assert (after.pk, after.state, after.length) == (signal.pk, "open", 7)
    assert after.screening.evidence["parameters"]["last_percent"] == 50


def test_a_superseded_signal_that_the_new_content_gives_is_open_again(
    project, come, signal
):
    adopt(project, last_percent=30)
    assert [one.state for one in of_decay()] == ["superseded"]
    come(LATE)
    [after] = of_decay()
    assert (after.pk, after.state, after.length) == (signal.pk, "open", 7)
    assert Trace.objects.get().signal_count == 1


def test_a_superseded_signal_goes_when_nothing_is_left_of_it(project, come, signal):
    adopt(project, last_percent=30)
    come(RISING)
    assert of_decay() == []


def test_a_paused_check_queues_nothing_of_the_new_content(project, come, signal):
    pause(project, is_paused=True)
    come(LATE)
    assert [one for one in of_decay() if one.state != "superseded"] == []
    pause(project, is_paused=False)
    [after] = [one for one in of_decay() if one.state == "open"]
    assert after.length == 7


def test_a_kept_decision_does_not_stand_for_the_other_answers_of_its_key(
    project, come, signal, reviewer
):
    outputs = (112, 100, 86, 78, 70, 43)
    other = [call(21 + n, 20, output) for n, output in enumerate(outputs)]
    come(agent(20, 1, "refunds", lasts=50), *other)
    first, second = of_decay()
    scopes = [one.screening.scope for one in (first, second)]
    decide(
        signal_id=first.pk,
        user=reviewer,
        decision=CONFIRM,
        base_version=first.version,
    )
    adopt(project, last_percent=30)
    assert [one.state for one in of_decay()] == ["decided", "superseded"]
    come(LATE)
    shadow = shadowed(project, last_percent=60)
    own = Screening.objects.filter(
        check_slug="output-decay", parameters_hash=shadow.parameters_hash
    )
    assert sorted(own.values_list("scope", flat=True)) == sorted(scopes)
    adopt(project, last_percent=60)
    waits = [one for one in of_decay() if one.state == "open"]
    assert [one.screening.scope for one in waits] == scopes[1:]
    assert [one.verdict for one in of_decay() if one.pk == first.pk] == ["confirm"]
    assert Trace.objects.get().signal_count == 2


def test_new_evidence_is_kept_where_the_history_says_the_same_of_it_twice(
    project, come, signal
):
    """Each time another key counts, and the headline of the new answer is the same."""
    hashes = []
    for place, percent in enumerate([60, 70, 80, 90]):
        wish = Wish(key(project, last_percent=percent, max_chance=0.04))
        adopt_key(project_id=project.pk, wish=wish, user_id=None, now=NOW)
        come(call(40 + place, 1, 70, model=f"other-model-{place}"))
        [after] = of_decay()
        assert (after.pk, after.version) == (signal.pk, place + 1)
        assert after.screening.evidence["parameters"]["last_percent"] == percent
        hashes.append(after.screening.parameters_hash)
    assert len(set(hashes)) == 4
    notes = HistoryEntry.objects.filter(signal=signal, act="rescreened")
    assert len(set(notes.values_list("note", flat=True))) == 1
