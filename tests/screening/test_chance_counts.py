"""Signals beside what chance alone gives: counts, intervals and words."""

from __future__ import annotations

from itertools import product

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.engine.check import Answer
from apps.engine.checks import CHECKS
from apps.engine.nulls import count_null
from apps.reports.chance_words import (
    beside_chance,
    comparison,
    expected_with_interval,
    group_p,
    q_in_words,
)
from apps.screening.chance_counts import (
    ChanceCount,
    chance_count,
    chance_counts,
    distribution,
)
from apps.screening.lineup import lineup_of
from apps.screening.models import Screening
from apps.screening.queries import CheckCounts, counts_per_check
from apps.traces.models import Trace
from tests.factories import decay_trace, make_project, upload_traces

FALLS = [(100, 90, 80, 70, 60), (100, 100, 90, 80, 60), (100, 100, 100, 100, 60)]
RISES = [(10, 90, 30, 20, 40), (50, 60, 55, 58, 61), (9, 8)]


def traces(shapes):
    return [decay_trace(*shape, name=str(n)) for n, shape in enumerate(shapes)]


def decay(project, **more) -> CheckCounts:
    found = counts_per_check(project, **more)
    return next(entry for entry in found if entry.slug == "output-decay")


def count(signals, *, low=0, high=2, tested=10, p=0.5) -> ChanceCount:
    return ChanceCount(signals, tested, 1.0, low, high, p, "exact")


def test_the_number_by_chance_is_that_of_all_applicable_answers(project):
    upload_traces(project, *traces(FALLS + RISES))
    found = chance_count(decay(project))
    rows = Screening.objects.filter(check_slug="output-decay").exclude(
        answer=Answer.NOT_APPLICABLE
    )
    chances = [row.chance_of_signal for row in rows]
    assert (found.signals, found.tested) == (3, len(chances)) == (3, 5)
    assert found.expected == pytest.approx(sum(chances))
    # By hand: every way in which three signals or more may come about.
    by_hand = 0.0
    for fires in product([True, False], repeat=5):
        if sum(fires) < 3:
            continue
        share = 1.0
        for fired, chance in zip(fires, chances, strict=True):
            share *= chance if fired else 1 - chance
        by_hand += share
    assert found.p == pytest.approx(by_hand)


def test_telemetry_is_among_the_observed_and_apart_from_the_queued(project):
    upload_traces(project, *traces(FALLS))
    counts = decay(project)
    assert (counts.signals, counts.tested_signals, counts.queued) == (3, 3, 2)


def test_only_current_keys_this_project_and_these_traces_count(project, owner):
    upload_traces(project, *traces(FALLS))
    upload_traces(make_project(owner=owner), *traces(FALLS))
    for row in Screening.objects.filter(project=project, check_slug="output-decay"):
        row.pk, row.parameters_hash = None, "another"
        row.save()
    assert chance_count(decay(project)).tested == 3
    one = Trace.objects.filter(project=project)[:1].values("pk")
    assert chance_count(decay(project, trace_ids=one)).tested == 1


def test_a_fact_and_a_check_that_applied_to_nothing_have_no_number_by_chance(project):
    upload_traces(project, decay_trace(9, None, name="gap"))
    found = chance_counts(project, lineup=lineup_of(project.pk))
    assert "missing-usage" not in found
    assert "output-decay" not in found


def test_all_checks_are_counted_in_one_query(project):
    upload_traces(project, *traces(FALLS + RISES))
    lineup = lineup_of(project.pk)
    with CaptureQueriesContext(connection) as caught:
        found = counts_per_check(project, lineup=lineup)
        [chance_count(entry) for entry in found]
    assert len(caught) == 1
    assert len(found) == len(CHECKS)


def test_the_distribution_adds_up_and_stands_around_its_mean():
    null = count_null([(0.3, 61)])
    shares = distribution(null)
    numbers = [number for number, _ in shares]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert sum(share for _, share in shares) == pytest.approx(1, abs=0.002)
    assert sum(n * share for n, share in shares) == pytest.approx(18.3, abs=0.05)
    assert distribution(count_null([(1.0, 4)])) == [(4, 1.0)]
    assert distribution(count_null([(0.0, 4)])) == [(0, 1.0)]


@pytest.mark.parametrize(
    ("signals", "low", "high", "said"),
    [
        (3, 0, 2, "more than chance gives"),
        (2, 0, 2, "within what chance gives"),
        (0, 0, 2, "within what chance gives"),
        (1, 2, 4, "fewer than chance gives"),
    ],
)
def test_it_says_in_words_whether_chance_gives_as_many(signals, low, high, said):
    found = count(signals, low=low, high=high)
    assert comparison(found) == said


def test_the_sentence_is_the_same_everywhere():
    found = ChanceCount(22, 61, 19.34, 12, 27, 0.269, "exact")
    assert beside_chance(22, 61, found) == (
        "22 signals from 61 applicable sequences; chance alone would give about 19.3 "
        "(12 to 27): within what chance gives"
    )
    assert group_p(found) == "chance alone gives 22 or more in 26.9\u202f% of cases"
    assert beside_chance(1, 1, None) == (
        "1 signal from 1 applicable sequence; no null model: a fact, counted, not "
        "expected"
    )
    assert beside_chance(0, 0, None) == "applied to nothing here"
    assert "among the 61 that have a null probability" in beside_chance(30, 80, found)
    assert expected_with_interval(count(1)) == "about 1 (0 to 2)"
    assert group_p(count(0)) == "chance alone gives 0 or more always"
    assert q_in_words(0.042) == "q = 4.2\u202f%"
    assert q_in_words(None) == "no q: a fact"
