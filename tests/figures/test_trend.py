"""Rates over time: gaps where nothing was counted, intervals, inert names."""

from __future__ import annotations

from apps.figures import TrendLine, TrendPoint, trend_figure

FILLED = TrendPoint("2026-03-02", 25.0, 10.0, 50.0, "1 of 4")
EMPTY = TrendPoint("2026-03-09", None, None, None, "no traces yet")


def test_a_period_without_counts_is_a_gap_and_never_zero():
    [trace] = trend_figure([TrendLine("v1", [FILLED, EMPTY])], unit="fire rate")["data"]
    assert trace["y"] == [25.0, None]
    assert trace["connectgaps"] is False
    assert trace["hovertext"][1].endswith("no traces yet")


def test_the_ends_of_an_interval_are_drawn_from_its_rate():
    [trace] = trend_figure([TrendLine("v1", [FILLED, EMPTY])], unit="fire rate")["data"]
    assert trace["error_y"]["array"] == [25.0, 0.0]
    assert trace["error_y"]["arrayminus"] == [15.0, 0.0]


def test_two_lines_differ_in_shape_besides_colour_and_are_named():
    lines = [TrendLine("v2", [FILLED]), TrendLine("v1", [FILLED])]
    figure = trend_figure(lines, unit="fire rate")
    looks = [(one["meta"], one["marker"]["symbol"]) for one in figure["data"]]
    assert len({tone for tone, _ in looks}) == len({shape for _, shape in looks}) == 2
    assert figure["layout"]["showlegend"] is True


def test_names_of_files_are_inert_and_short_on_the_axis():
    point = TrendPoint("<b>" + "x" * 40, 1.0, 0.0, 3.0, "1 of 90")
    [trace] = trend_figure([TrendLine("v<1>", [point])], unit="fire rate")["data"]
    assert trace["x"] == ["&lt;b&gt;" + "x" * 22 + "…"]
    assert trace["name"] == "v&lt;1&gt;"
    assert "<" not in trace["hovertext"][0]
