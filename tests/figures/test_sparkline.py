"""Sparklines: inside their box, with gaps where nothing was reported."""

from __future__ import annotations

import re

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.check import Series
from apps.figures import sparkline_of


def series(*values, threshold=None):
    return Series(
        unit="output tokens",
        steps=tuple(range(len(values))),
        values=values,
        threshold=threshold,
    )


def test_the_line_runs_from_edge_to_edge_over_a_base_of_zero():
    spark = sparkline_of(series(100, 50, 0, threshold=50.0))
    assert spark.line == "M4 4h0L70 22L136 40"
    assert spark.ends == ((4, 4), (136, 40))
    assert spark.limit == 22
    assert spark.missing == ()
    assert spark.label == "3 values, from 100 to 0 output tokens"


def test_a_value_that_is_not_reported_is_a_gap_with_a_mark_at_half_height():
    spark = sparkline_of(series(100, None, 50))
    assert spark.line == "M4 4h0M136 22h0"
    assert spark.missing == ((70, 22),)
    assert spark.label.endswith("1 not reported")


def test_one_value_stands_in_the_middle_and_none_is_said_in_words():
    assert sparkline_of(series(7)).ends == ((70, 4),)
    nothing = sparkline_of(series(None, None))
    assert (nothing.line, nothing.ends) == ("", ())
    assert nothing.label == "2 values, none reported"


def test_stored_evidence_gives_the_same_sparkline():
    given = series(9, None, 7, threshold=5.4)
    assert sparkline_of(msgspec.to_builtins(given)) == sparkline_of(given)


def test_a_long_series_keeps_its_ends_and_its_extremes():
    heights = [500.0] * 5_000
    heights[2_345], heights[3_456] = 1_000.0, 0.0
    heights[0], heights[-1] = 400.0, 300.0
    spark = sparkline_of(series(*heights))
    assert len(spark.line) < 1_500
    ys = [float(y) for y in re.findall(r"[ML]\S+ ([\d.]+)", spark.line)]
    assert (min(ys), max(ys)) == (4, 40)
    assert [x for x, _ in spark.ends] == [4, 136]


heights = st.lists(st.one_of(st.none(), st.floats(0, 1e9)), min_size=1, max_size=200)


@given(heights, st.one_of(st.none(), st.floats(0, 1e9)))
@settings(max_examples=80, deadline=None)
def test_everything_lies_inside_the_box(values, threshold):
    spark = sparkline_of(series(*values, threshold=threshold))
    points = [*spark.ends, *spark.missing]
    points += [
        (float(x), float(y))
        for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", spark.line)
    ]
    assert all(4 <= x <= 136 and 4 <= y <= 40 for x, y in points)
    assert bool(spark.missing) == (None in values)
    assert spark.limit is None or 4 <= spark.limit <= 40
