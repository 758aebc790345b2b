from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from apps.engine.check import Series
from apps.figures.series_svg import series_svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(**fields) -> ET.Element:
    values = fields.pop("values")
    series = Series(
        unit="tokens", steps=tuple(range(len(values))), values=values, **fields
    )
    return ET.fromstring(series_svg(series))  # noqa: S314


def dots(root: ET.Element, fill: str) -> list[ET.Element]:
    return [c for c in root.iter(f"{SVG}circle") if c.get("fill") == fill]


def test_a_missing_value_is_hollow_and_a_question_mark_at_middle_height():
    root = drawn(values=(100.0, None, 50.0))
    (hollow,) = dots(root, "#fff")
    lowest = max(float(line.get("y1")) for line in root.iter(f"{SVG}line"))
    assert float(hollow.get("cy")) < lowest - 20
    assert "?" in [t.text for t in root.iter(f"{SVG}text")]
    assert len(dots(root, "#2c5fc7")) == 2


def test_no_line_crosses_a_missing_value():
    root = drawn(values=(5.0, 4.0, None, 2.0, 1.0))
    lines = [p.get("points").count(",") for p in root.iter(f"{SVG}polyline")]
    assert lines == [2, 2]


def test_a_recorded_zero_lies_on_the_ground():
    root = drawn(values=(10.0, 0.0))
    lowest = max(float(line.get("y1")) for line in root.iter(f"{SVG}line"))
    assert [float(c.get("cy")) for c in dots(root, "#2c5fc7")][1] == lowest


def test_the_threshold_is_drawn_at_its_height():
    root = drawn(values=(100.0, 0.0), threshold=50.0)
    (dashed,) = [e for e in root.iter(f"{SVG}line") if e.get("stroke-dasharray")]
    heights = [float(c.get("cy")) for c in dots(root, "#2c5fc7")]
    assert float(dashed.get("y1")) == pytest.approx(sum(heights) / 2, abs=0.01)


@pytest.mark.parametrize(
    "values",
    [(), (None,), (None, None), (0.0,), (0.0, 0.0), (-3.0, 4.0), (1e300, 1.0)],
)
def test_odd_values_still_give_a_picture(values):
    root = drawn(values=values)
    assert "nan" not in ET.tostring(root, encoding="unicode").lower()


def test_labels_are_lanes_and_their_text_is_escaped():
    words = "<script>&\"'</script>\x00\u202e"
    root = drawn(values=(1.0, 1.0, 1.0), labels=(words, "b", words))
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert "<script>&\"'</script>\ufffd\ufffd" in texts
    heights = [c.get("cy") for c in dots(root, "#2c5fc7")]
    assert heights[0] == heights[2] != heights[1]


def test_more_names_than_lanes_share_the_last_one():
    labels = tuple(f"tool {n}" for n in range(20))
    root = drawn(values=(1.0,) * 20, labels=labels)
    assert "13 other names" in [t.text for t in root.iter(f"{SVG}text")]


def test_the_same_series_gives_the_same_text():
    series = Series(unit="t", steps=(1, 2), values=(1.0, None))
    assert series_svg(series) == series_svg(series)


def test_values_that_differ_are_a_line_even_with_labels():
    root = drawn(values=(1.4, 0.7), labels=("a, b", "b, b"))
    assert "a, b" not in [t.text for t in root.iter(f"{SVG}text")]
    assert len(list(root.iter(f"{SVG}polyline"))) == 1
