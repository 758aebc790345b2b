"""Recall by depth as a figure and as a table that says the same."""

from __future__ import annotations

import json

import plotly.graph_objects as go
import pytest

from apps.engine.memory_tests import burial_of, planned, run_memory_test
from apps.engine.replay.run import ErrorKind
from apps.figures.burial import STANDING_WORDS, burial_figure, burial_rows
from tests.engine.memory_tests.agents import (
    COLOUR,
    LOCKER,
    Agent,
    Breaking,
    a_test,
    at_a_probe,
    last,
)


def burial_by(agent_of, *facts, kept=None, **fields):
    test = a_test(*facts, **fields)
    records = run_memory_test(planned(test), agent_of(test))
    return burial_of(
        test, [r for r in records if kept is None or r.trial.depth in kept]
    )


def windowed(test):
    return Agent(test, hands=last(4))


SINGLE = burial_by(windowed, COLOUR, depths=[0, 3, 8, 20], kept=[0, 3, 8])
SEVERAL = burial_by(windowed, COLOUR, LOCKER, depths=[2, 9])


@pytest.mark.parametrize("burial", [SINGLE, SEVERAL], ids=["one fact", "two facts"])
def test_the_figure_is_json_that_plotly_takes(burial):
    figure = burial_figure(burial)
    assert json.loads(json.dumps(figure)) == figure
    assert len(go.Figure(figure).data) == len(figure["data"])


def test_a_depth_that_was_not_tested_is_a_gap_with_a_mark_of_its_own():
    whole, *marks = burial_figure(SINGLE)["data"]
    assert whole["x"] == ["0", "3", "8", "20"]
    assert whole["y"] == [100.0, 100.0, 0.0, None]
    assert whole["connectgaps"] is False
    [untested] = [one for one in marks if one["name"] == "not tested"]
    assert (untested["x"], untested["mode"]) == (["20"], "markers")
    assert burial_rows(SINGLE)[3].recalled == "not tested"
    assert burial_rows(SINGLE)[3].interval == ""


def test_the_bars_end_where_the_intervals_do():
    whole = burial_figure(SINGLE)["data"][0]
    point = SINGLE.whole.points[0]
    assert whole["error_y"]["array"] == [
        0.0,
        0.0,
        100 * SINGLE.whole.points[2].interval.high,
        0.0,
    ]
    assert whole["error_y"]["arrayminus"][0] == pytest.approx(
        100 - 100 * point.interval.low
    )


def test_what_was_lost_where_has_a_symbol_a_count_and_a_word():
    figure = burial_figure(SINGLE)
    [lost, _] = figure["data"][1:]
    assert (lost["name"], lost["x"], lost["text"]) == (
        "stored and not retrieved",
        ["8"],
        ["5"],
    )
    assert lost["marker"]["symbol"] == "diamond-open"
    assert figure["layout"]["yaxis2"]["categoryarray"] == ["not tested", lost["name"]]
    assert burial_rows(SINGLE)[2].not_recalled == ("5 stored and not retrieved",)


def test_the_first_uncertain_depth_is_marked_in_both():
    [share, arrow] = burial_figure(SINGLE)["layout"]["annotations"]
    assert share["text"] == "declared: 80 %"
    assert (arrow["x"], arrow["text"]) == (2, "no longer certain")
    assert arrow["y"] == 100 * SINGLE.whole.points[2].interval.high
    marked = [row.depth for row in burial_rows(SINGLE) if row.is_first_uncertain]
    assert marked == [8]
    words = [row.standing for row in burial_rows(SINGLE)]
    assert words[2] == "no longer certain"
    assert set(words) <= set(STANDING_WORDS.values())


def test_several_facts_are_steps_told_apart_without_colour():
    figure = burial_figure(SEVERAL)
    whole, *steps = [one for one in figure["data"] if one.get("yaxis") != "y2"]
    assert whole["name"] == "all facts recalled"
    assert [one["name"] for one in steps] == ["colour", "locker"]
    looks = {(one["marker"]["symbol"], one["line"]["dash"]) for one in steps}
    assert len(looks) == 2
    assert figure["layout"]["showlegend"] is True
    assert burial_rows(SEVERAL)[1].facts == (
        "colour: 0 of 5 (0 % to 43.4 %)",
        "locker: 0 of 5 (0 % to 43.4 %)",
    )


def test_where_all_is_well_there_are_no_marks_and_no_second_axis():
    figure = burial_figure(burial_by(Agent, COLOUR, depths=[0, 1]))
    assert len(figure["data"]) == 1
    assert "yaxis2" not in figure["layout"]
    assert len(figure["layout"]["annotations"]) == 1


def test_where_no_trial_came_to_an_answer_there_is_no_curve_and_no_red():
    burial = burial_by(
        lambda test: Breaking(test, "restart", ErrorKind.TARGET),
        COLOUR,
        LOCKER,
        depths=[1, 3],
    )
    figure = burial_figure(burial)
    *curves, marks = figure["data"]
    assert [one["y"] for one in curves] == [[None, None]] * 3
    assert curves[0]["error_y"]["array"] == [0.0, 0.0]
    assert curves[0]["hovertext"][0] == "depth 1: no answer in 5"
    assert (marks["name"], marks["meta"]) == ("no answer, it failed", "amber")
    assert len(figure["layout"]["annotations"]) == 1
    for row in burial_rows(burial):
        assert (row.recalled, row.interval) == ("no answer in 5", "")
        assert row.standing == "not known, no trial came to an answer"
        assert not row.is_first_uncertain
        assert row.facts == ("colour: no answer in 5", "locker: no answer in 5")


def test_answers_that_are_no_loss_have_rows_of_their_own():
    both = burial_by(
        lambda test: Agent(test, says=at_a_probe(test, "X9-4417 or X9-4418")),
        LOCKER,
        depths=[0, 3],
    )
    assert burial_figure(both)["data"][1]["name"] == "several candidates"
    assert burial_rows(both)[0].not_recalled == ("5 several candidates",)
    assert burial_rows(both)[0].stored == "5 of 5"
