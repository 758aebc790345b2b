"""Figures of evidence: valid for Plotly, missing never drawn as nothing."""

from __future__ import annotations

import msgspec
import plotly.graph_objects as go
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.check import Series
from apps.figures import sequence_figure

TOKENS = "output tokens"


def series(*values, unit=TOKENS, **fields):
    return Series(
        unit=unit, steps=tuple(range(0, 2 * len(values), 2)), values=values, **fields
    )


def trace_named(figure, name):
    (found,) = [trace for trace in figure["data"] if trace["name"] == name]
    return found


def test_counts_are_bars_with_the_bound_as_a_dotted_line():
    figure = sequence_figure(series(100, 90, 60, threshold=60.0))
    bars = trace_named(figure, TOKENS)
    assert (bars["type"], bars["x"], bars["y"]) == ("bar", [1, 2, 3], [100, 90, 60])
    (line,) = figure["layout"]["shapes"]
    assert (line["y0"], line["line"]["dash"]) == (60, "dot")
    assert figure["layout"]["annotations"][0]["text"] == "bound<br>60"


def test_the_note_of_the_bound_stands_beside_the_values_and_covers_none():
    layout = sequence_figure(series(100, 90, 67, threshold=67.2))["layout"]
    (note,) = layout["annotations"]
    assert (note["xref"], note["x"], note["xanchor"]) == ("paper", 1, "left")
    assert layout["margin"]["r"] >= 50
    assert "margin" not in sequence_figure(series(100, 90))["layout"]


def test_a_value_that_is_not_reported_is_a_hatched_bar_with_words_and_never_zero():
    figure = sequence_figure(series(100, None, 60))
    missing = trace_named(figure, "not reported")
    assert missing["x"] == [2]
    assert missing["y"] == [100]
    assert missing["marker"]["pattern"]["shape"] == "/"
    assert missing["text"] == ["not reported"]
    assert trace_named(figure, TOKENS)["x"] == [1, 3]


def test_a_series_without_any_value_is_all_hatched():
    figure = sequence_figure(series(None, None))
    missing = trace_named(figure, "not reported")
    assert min(missing["y"]) > 0
    assert go.Figure(figure)


def test_entropies_are_a_line():
    figure = sequence_figure(series(1.39, 0.0, unit="entropy of tool names (nats)"))
    assert figure["data"][0]["type"] == "scatter"


def test_what_was_left_out_stands_between_its_neighbours_with_its_reason():
    figure = sequence_figure(series(9, 8, 7), excluded={3: "retried attempt"})
    crosses = trace_named(figure, "left out")
    assert crosses["x"] == [2.5]
    assert crosses["hovertext"] == ["step 4: retried attempt, left out"]
    assert crosses["meta"] == "mute"


def test_stored_evidence_gives_the_same_figure_as_the_engine():
    given = series(9, None, 7, labels=("stop", None, "length"), threshold=5.4)
    assert sequence_figure(msgspec.to_builtins(given)) == sequence_figure(given)


def test_texts_of_a_trace_are_inert_in_hover_texts():
    figure = sequence_figure(series(1, labels=("<a href='x'>tool</a>",)))
    assert "&lt;a" in figure["data"][0]["hovertext"][0]


def test_colours_are_left_to_the_theme():
    figure = sequence_figure(series(9, None, threshold=5.0))
    assert {trace["meta"] for trace in figure["data"]} == {"accent", "amber"}
    assert figure["layout"]["paper_bgcolor"] == "rgba(0,0,0,0)"


def test_what_is_no_series_is_refused():
    with pytest.raises(msgspec.ValidationError):
        sequence_figure({"unit": 3})


values = st.lists(st.one_of(st.none(), st.floats(0, 1e6)), min_size=1, max_size=40)


@given(values, st.sampled_from([TOKENS, "nats"]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_every_figure_is_one_that_plotly_accepts(items, unit, has_excluded):
    given = series(*items, unit=unit, threshold=3.5)
    excluded = {1: "retry", 5: "placeholder"} if has_excluded else None
    figure = sequence_figure(given, excluded=excluded)
    go.Figure(figure)
    assert msgspec.json.encode(figure)
    shown = sum(len(t["x"]) for t in figure["data"] if t["name"] != "left out")
    assert shown == len(items)
