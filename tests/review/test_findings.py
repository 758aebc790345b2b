"""What is a finding and what stays a signal; what never enters the queue."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.engine.check import Answer, Level, configured, percent
from apps.engine.checks import by_slug
from apps.engine.nulls import association
from apps.engine.trace import Outcome, OutcomeKind
from apps.pipeline.lineups import catch_up
from apps.reports.operations import freeze
from apps.reports.queries import document_of
from apps.review import operations as review
from apps.review.findings import (
    LARGEST_P,
    LEAST_TASKS,
    RULE,
    standings_of,
    supports,
)
from apps.review.models import Signal
from apps.review.operations import DecisionInput
from apps.review.queries import QueueFilter, with_rows
from apps.review.transitions import SignalState, Verdict
from apps.screening.lineup import Choice, adopt
from apps.screening.models import CheckState, Screening
from apps.web.templatetags.evidence import tied
from tests.factories import NOW, decay_trace, make_project, upload_traces

PASS, FAIL = Outcome(kind=OutcomeKind.PASS), Outcome(kind=OutcomeKind.FAIL)
UNKNOWN = Outcome(kind=OutcomeKind.UNKNOWN)
CONFIRM = DecisionInput(verdict=Verdict.CONFIRM)
DISMISS = DecisionInput(verdict=Verdict.DISMISS, reason="converged")


def falling(n, outcome, task):
    lengths = (100 + n, 90, 80, 70, 40)
    return decay_trace(*lengths, name=f"f{n}", outcome=outcome, task=task)


def level(n, outcome, task):
    lengths = (50 + n, 60, 55, 58, 61)
    return decay_trace(*lengths, name=f"l{n}", outcome=outcome, task=task)


def group(*, tasks=12, fired=FAIL, others=PASS):
    """Six traces that fired and six that did not, of as many tasks."""
    return [
        *[falling(n, fired, f"t{n % tasks}") for n in range(6)],
        *[level(n, others, f"t{(n + 6) % tasks}") for n in range(6)],
    ]


def kinds(project):
    signals = list(with_rows(Signal.objects.filter(project=project)))
    return [standings_of(signals)[signal.pk].kind for signal in signals]


def decide(signal, user, decision):
    return review.decide(
        signal_id=signal.pk, user=user, decision=decision, base_version=signal.version
    )


def table(fired, others, *, tasks=12):
    return association(fired=fired, not_fired=others, tasks=tasks, without_task=0)


def test_a_signal_that_goes_with_failing_over_enough_tasks_is_supported(project):
    upload_traces(project, *group())
    assert kinds(project) == ["supported"] * 6


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (group(tasks=LEAST_TASKS - 1), "too few distinct tasks"),
        (group(fired=PASS, others=FAIL), "it goes with passing"),
        (group(fired=UNKNOWN), "its outcome is not recorded"),
        (group(others=FAIL), "the others fail as well"),
        ([falling(n, FAIL, f"t{n}") for n in range(12)], "nothing to compare with"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_it_stays_a_signal_when(project, made, why):
    upload_traces(project, *made)
    assert set(kinds(project)) == {"signal"}, why


def test_only_the_signals_of_traces_that_failed_are_supported(project):
    more = [level(n, PASS, f"t{n}") for n in range(30, 33)]
    fallen = [falling(20, PASS, "t20"), falling(21, UNKNOWN, "t21")]
    upload_traces(project, *group(), *fallen, *more)
    found = dict(
        zip(Signal.objects.values_list("outcome"), kinds(project), strict=True)
    )
    assert found == {
        ("fail",): "supported",
        ("pass",): "signal",
        ("unknown",): "signal",
    }


def test_another_upload_or_project_supports_nothing(project, owner):
    upload_traces(project, *group()[:6], name="fired.jsonl")
    upload_traces(project, *group()[6:], name="others.jsonl")
    upload_traces(make_project(owner=owner), *group())
    assert kinds(project) == ["signal"] * 6


def test_a_decision_says_more_than_the_outcome(project, reviewer):
    upload_traces(project, *group())
    first, second, third = Signal.objects.order_by("pk")[:3]
    decide(first, reviewer, CONFIRM)
    decide(second, reviewer, DISMISS)
    decide(third, reviewer, DecisionInput(verdict=Verdict.CANNOT_TELL))
    signals = list(with_rows(Signal.objects.order_by("pk")[:3]))
    found = standings_of(signals)
    said = [found[signal.pk].words for signal in signals]
    assert said == [
        "finding: confirmed by rana",
        "signal",
        "finding: supported by a second measure",
    ]


def test_a_decision_that_is_taken_back_makes_no_finding(project, reviewer):
    upload_traces(project, falling(0, FAIL, "t"))
    decided = decide(Signal.objects.get(), reviewer, CONFIRM)
    assert kinds(project) == ["confirmed"]
    review.undo(signal_id=decided.pk, user=reviewer, base_version=decided.version)
    assert kinds(project) == ["signal"]


def test_a_superseded_signal_is_supported_by_nothing(project):
    upload_traces(project, *group())
    Signal.objects.update(state=SignalState.SUPERSEDED)
    assert set(kinds(project)) == {"signal"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, False),
        (table((0, 6), (6, 0)), True),
        (table((6, 0), (0, 6)), False),
        (table((0, 6), (6, 0), tasks=LEAST_TASKS), True),
        (table((0, 6), (6, 0), tasks=LEAST_TASKS - 1), False),
        (table((2, 4), (4, 2)), False),
        (table((0, 6), (0, 6)), False),
        # The airline file: 2.2 %, one of many tables that were looked at.
        (table((1, 21), (12, 27), tasks=25), False),
    ],
)
def test_support_needs_more_failing_a_small_p_and_tasks(found, expected):
    assert supports(found) is expected


def test_the_rule_is_told_with_its_numbers(web_owner, project):
    upload_traces(project, *group())
    assert f"at least {LEAST_TASKS} distinct" in RULE
    assert f"at most {percent(LARGEST_P)}" in RULE
    assert LARGEST_P < 0.05 / 10
    signal = Signal.objects.first()
    for address in (
        reverse("signal", args=[project.slug, signal.pk]),
        reverse("queue", args=[project.slug]),
    ):
        page = web_owner.get(address).content.decode()
        assert tied(RULE) in page
        assert "supported by a second measure" in page


@pytest.fixture
def web_owner(client, owner):
    client.force_login(owner)
    return client


def test_more_signals_cost_no_more_queries(project):
    upload_traces(project, *group())
    signals = list(with_rows(Signal.objects.filter(project=project)))
    with CaptureQueriesContext(connection) as caught:
        standings_of(signals)
        standings_of([])
    assert len(caught) == 1


def test_a_report_sets_findings_apart_and_calls_no_signal_a_finding(project, owner):
    more = [level(n, PASS, f"t{n}") for n in range(30, 33)]
    upload_traces(project, *group(), falling(20, PASS, "t20"), *more)
    report = freeze(
        project=project,
        user=owner,
        title="Weekly",
        where=QueueFilter(view="all"),
        now=NOW,
    )
    document = document_of(report)
    standing = {part["trace"]["name"]: part["standing"] for part in document["signals"]}
    assert standing == {**{f"f{n}": "supported" for n in range(6)}, "f20": "signal"}


class TestTelemetry:
    """What nobody can act on never enters the queue, by whichever door."""

    @pytest.fixture
    def shape(self, project):
        """A falling order of ties: a signal by its shape, telemetry by its chance."""
        upload_traces(project, decay_trace(100, 100, 100, 100, 60))
        row = Screening.objects.get(check_slug="output-decay")
        assert (row.answer, row.level) == (Answer.SIGNAL, Level.TELEMETRY)
        return row

    def signal_of(self, screening, **more):
        return Signal(
            project_id=screening.project_id,
            screening=screening,
            trace_id=screening.trace_id,
            check_slug=screening.check_slug,
            check_version=screening.check_version,
            chance=screening.chance,
            outcome="pass",
            headline=screening.headline,
            created_at=NOW,
            **more,
        )

    def test_the_screening_opens_none(self, shape):
        assert not Signal.objects.exists()

    @pytest.mark.parametrize("state", SignalState.values)
    def test_the_database_refuses_one_in_any_state(self, shape, state):
        with (
            pytest.raises(IntegrityError, match="Only an answer of the level review"),
            transaction.atomic(),
        ):
            self.signal_of(shape, state=state).save()

    def test_the_database_refuses_many_at_once(self, shape):
        with (
            pytest.raises(IntegrityError, match="Only an answer of the level review"),
            transaction.atomic(),
        ):
            Signal.objects.bulk_create([self.signal_of(shape)])

    def test_a_queued_signal_cannot_be_pointed_at_telemetry(self, project, shape):
        upload_traces(project, decay_trace(100, 90, 80, 70, 60), name="rare")
        signal = Signal.objects.get()
        with (
            pytest.raises(IntegrityError, match="Only an answer of the level review"),
            transaction.atomic(),
        ):
            Signal.objects.filter(pk=signal.pk).update(screening=shape)

    @pytest.mark.parametrize("answer", [Answer.QUIET, Answer.NOT_APPLICABLE])
    def test_the_database_refuses_what_is_no_signal(self, shape, answer):
        Screening.objects.filter(pk=shape.pk).update(answer=answer)
        shape.refresh_from_db()
        with (
            pytest.raises(IntegrityError, match="Only an answer of the level review"),
            transaction.atomic(),
        ):
            self.signal_of(shape).save()

    @pytest.mark.parametrize("largest", [0.01, 0.1, 0.2])
    def test_adoption_queues_it_only_when_the_project_says_it_is_rare_enough(
        self, project, owner, shape, largest
    ):
        check = configured(by_slug("output-decay"), {"max_chance": largest})
        self.adopt(project, owner, Choice(check))
        answers = Screening.objects.filter(check_slug="output-decay")
        assert answers.count() == 2
        queued = Signal.objects.filter(check_slug="output-decay")
        assert queued.count() == (largest >= shape.chance)
        for signal in queued:
            assert signal.screening.level == Level.REVIEW_SIGNAL

    def test_a_pause_and_its_end_queue_no_telemetry(self, project, owner, shape):
        for state in (CheckState.PAUSED, CheckState.ACTIVE):
            self.adopt(project, owner, Choice(by_slug("output-decay"), state=state))
            assert not Signal.objects.exists()

    def adopt(self, project, owner, choice):
        adopt(project_id=project.pk, choice=choice, user_id=owner.pk, now=NOW)
        while catch_up(project_id=project.pk, clock=lambda: NOW):
            pass
