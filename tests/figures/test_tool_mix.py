"""The tool mixes of two sets as bars: shares in percent, nothing drawn for nothing."""

from __future__ import annotations

from apps.engine.comparison import ToolShare
from apps.figures import tool_mix_figure

SEARCH = ToolShare(name="search", first=3, second=1, first_share=0.75, second_share=0.5)
HOSTILE = ToolShare(
    name="<b>look</b>", first=1, second=1, first_share=0.25, second_share=0.5
)


def test_the_first_tool_and_the_first_set_stand_on_top():
    figure = tool_mix_figure([SEARCH, HOSTILE], names=("one", "two"))
    second, first = figure["data"]
    assert (first["name"], first["meta"], second["meta"]) == ("one", "accent", "mute")
    assert first["y"] == [0, 1]
    names = figure["layout"]["yaxis"]["ticktext"]
    assert names == ["&lt;b&gt;look&lt;/b&gt;", "search"]
    assert first["x"] == [25.0, 75.0]
    assert second["x"] == [50.0, 50.0]


def test_names_of_tools_and_sets_are_texts():
    long = "x" * 60
    row = ToolShare(name=long, first=1, second=0, first_share=1.0, second_share=0.0)
    figure = tool_mix_figure([row, HOSTILE], names=("<i>one</i>", "two"))
    first = figure["data"][1]
    assert first["name"] == "&lt;i&gt;one&lt;/i&gt;"
    names = figure["layout"]["yaxis"]["ticktext"]
    assert names[1] == "x" * 27 + "…"
    for text in (*first["hovertext"], *names):
        assert "<b>" not in text
        assert "<i>" not in text


def test_a_set_without_tool_calls_has_no_bars():
    row = ToolShare(name="a", first=2, second=0, first_share=1.0, second_share=None)
    second, first = tool_mix_figure([row], names=("one", "two"))["data"]
    assert (first["x"], second["x"], second["y"]) == ([100.0], [], [])
