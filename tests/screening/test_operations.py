"""Every answer is stored, whole: signal, quiet and not applicable."""

from __future__ import annotations

from fractions import Fraction

import pytest
from django.db import IntegrityError, transaction

from apps.engine.check import Answer, Level
from apps.engine.checks import CHECKS, by_slug
from apps.review.models import Signal
from apps.screening.lineup import lineup_of
from apps.screening.models import Screening
from apps.screening.operations import parameters_hash, screen_traces
from apps.screening.queries import answers_about, counts_per_check
from apps.traces.copying import StoredTrace
from apps.traces.models import Trace
from tests.factories import (
    decay_trace,
    make_project,
    tools_trace,
    upload_bytes,
    upload_traces,
)

FALLING = decay_trace(100, 90, 80, 70, 60, name="falls")
TIED = decay_trace(100, 100, 100, 60, 60, name="ties")
SHORT = decay_trace(784, 700, 646, name="too short")
LEVEL = decay_trace(50, 60, 55, 58, 61, name="level")


def answers(project, check="output-decay") -> dict[str, Screening]:
    rows = Screening.objects.filter(project=project, check_slug=check)
    return {row.trace.name: row for row in rows.select_related("trace")}


def test_all_three_answers_are_stored_with_all_that_is_needed_to_repeat_them(project):
    upload_traces(project, FALLING, LEVEL, SHORT)
    found = answers(project)
    assert {name: row.answer for name, row in found.items()} == {
        "falls": Answer.SIGNAL,
        "level": Answer.QUIET,
        "too short": Answer.NOT_APPLICABLE,
    }
    check = by_slug("output-decay")
    for row in found.values():
        assert row.check_version == check.version
        assert row.parameters_hash == parameters_hash(check)
        assert row.evidence["parameters"] == check.parameters
        assert len(row.input_hash) == 64
        assert row.evidence["reason"]
        assert row.headline


def test_every_check_answers_about_every_trace(project):
    upload_traces(project, FALLING, LEVEL, SHORT, tools_trace(*"ab"), TIED)
    for trace in Trace.objects.all():
        found = set(
            answers_about(trace.pk, lineup=lineup_of(project.pk)).values_list(
                "check_slug", flat=True
            )
        )
        assert found == {check.slug for check in CHECKS}


def test_three_calls_are_not_enough_and_the_answer_says_how_many_are(project):
    upload_traces(project, SHORT)
    row = answers(project)["too short"]
    assert row.answer == Answer.NOT_APPLICABLE
    assert row.chance_of_signal is None
    assert "3" in row.headline + row.evidence["reason"]
    assert not Signal.objects.exists()


def test_a_fall_that_chance_gives_too_often_is_telemetry_and_not_queued(project):
    upload = upload_traces(project, TIED, FALLING)
    tied, falls = answers(project)["ties"], answers(project)["falls"]
    chance = tied.evidence["chance"]
    assert Fraction(int(chance["numerator"]), int(chance["denominator"])) == Fraction(
        1, 10
    )
    assert (tied.answer, tied.level) == (Answer.SIGNAL, Level.TELEMETRY)
    assert (falls.answer, falls.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
    assert [signal.trace.name for signal in Signal.objects.all()] == ["falls"]
    assert upload.signal_count == 1


def test_an_exact_fraction_beyond_64_bits_survives_storage(project):
    upload_traces(project, decay_trace(*range(400, 375, -1), name="long fall"))
    chance = answers(project)["long fall"].evidence["chance"]
    numerator, denominator = int(chance["numerator"]), int(chance["denominator"])
    assert denominator > 2**64
    assert Fraction(numerator, denominator) == Fraction(1, 1) / _factorial(25)
    assert float(Fraction(numerator, denominator)) == chance["value"]


def _factorial(number: int) -> int:
    return 1 if number < 2 else number * _factorial(number - 1)


def test_a_missing_count_is_telemetry_and_no_decay_is_claimed_around_it(project):
    upload_traces(project, decay_trace(100, 90, None, 70, 60, name="gap"))
    usage = answers(project, "missing-usage")["gap"]
    assert (usage.answer, usage.level) == (Answer.SIGNAL, Level.TELEMETRY)
    decay = answers(project)["gap"]
    assert decay.answer == Answer.NOT_APPLICABLE
    assert (decay.evidence["usage_known"], decay.evidence["usage_missing"]) == (4, 1)
    assert not Signal.objects.exists()


def test_counts_per_check_are_the_counts_of_the_rows(project):
    upload_traces(project, FALLING, LEVEL, SHORT, TIED)
    decay = next(c for c in counts_per_check(project) if c.slug == "output-decay")
    assert (decay.signals, decay.queued, decay.quiet) == (2, 1, 1)
    assert (decay.not_applicable, decay.applicable, decay.screened) == (1, 3, 4)
    rows = answers(project).values()
    expected = sum(row.chance_of_signal or 0 for row in rows)
    assert decay.expected == pytest.approx(expected)
    assert sum(decay.reasons.values()) == 4


def test_counts_stay_inside_the_project_and_the_chosen_traces(project, owner):
    upload_traces(project, FALLING, LEVEL)
    elsewhere = make_project(owner=owner)
    upload_traces(elsewhere, FALLING, FALLING, FALLING)
    assert [c.screened for c in counts_per_check(project)] == [2] * len(CHECKS)
    one = Trace.objects.filter(project=project, name="level").values_list("pk")
    assert [c.screened for c in counts_per_check(project, trace_ids=one)] == [1] * len(
        CHECKS
    )


def test_a_check_that_applied_to_nothing_expects_nothing(project):
    assert [c.expected for c in counts_per_check(project)] == [None] * len(CHECKS)
    upload_traces(project, SHORT)
    decay = next(c for c in counts_per_check(project) if c.slug == "output-decay")
    assert decay.expected is None


def test_the_same_question_is_never_answered_twice(project):
    upload_traces(project, FALLING)
    row = Trace.objects.get()
    again = StoredTrace(row.pk, row.content_hash, FALLING)
    with (
        pytest.raises(IntegrityError, match="one_answer_per_check_and_scope"),
        transaction.atomic(),
    ):
        screen_traces(
            project_id=project.pk, traces=[again], lineup=lineup_of(project.pk)
        )


def test_parameters_have_the_same_name_whatever_their_order():
    class Made:
        def __init__(self, parameters):
            self.parameters = parameters

    one = parameters_hash(Made({"a": 1, "b": 2}))
    assert one == parameters_hash(Made({"b": 2, "a": 1}))
    assert one != parameters_hash(Made({"a": 1, "b": 3}))
    assert len(one) == 16


class TestTheAirlineFile:
    """The real file on which the published figures rest."""

    @pytest.fixture
    def airline(self, project, shared_data):
        path = shared_data / "tau_bench_results/gpt-4o-airline.json"
        return upload_bytes(project, path.read_bytes(), name=path.name)

    def test_its_figures_are_the_published_ones(self, project, airline):
        assert (airline.trace_count, airline.usage_known) == (200, 0)
        by = {entry.slug: entry for entry in counts_per_check(project)}
        drift, decay = by["tool-drift"], by["output-decay"]
        assert (drift.applicable, drift.not_applicable) == (61, 139)
        assert drift.expected == pytest.approx(19.3, abs=0.05)
        hard = drift.reasons[Answer.SIGNAL, "hard_collapse"]
        soft = drift.reasons[Answer.SIGNAL, "collapse"]
        assert (drift.signals, hard + soft, hard) == (22, 22, 10)
        assert drift.reasons[Answer.QUIET, "broadened"] == 12
        assert (decay.signals, decay.quiet, decay.not_applicable) == (0, 0, 200)
        assert decay.expected is None
        outcomes = list(Trace.objects.values_list("outcome", flat=True))
        assert (outcomes.count("pass"), outcomes.count("fail")) == (84, 116)

    def test_only_its_rare_collapses_are_queued(self, airline):
        rows = Screening.objects.filter(answer=Answer.SIGNAL, check_slug="tool-drift")
        queued = [row for row in rows if row.level == Level.REVIEW_SIGNAL]
        assert {row.pk for row in queued} == set(
            Signal.objects.filter(check_slug="tool-drift").values_list(
                "screening_id", flat=True
            )
        )
        assert all((row.chance <= 0.05) == (row in queued) for row in rows)
        assert len(queued) == 4
        assert airline.signal_count == Signal.objects.count()
