"""Rates over time with their intervals, as a Plotly figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

_HOVER: Final = "%{hovertext}<extra></extra>"
_LONGEST: Final = 26
# A shape besides the colour tells the lines apart.
_LOOKS: Final = (("accent", "circle"), ("mute", "square-open"))


class TrendPoint(msgspec.Struct, frozen=True):
    """One period: its rate and interval in percent, None where nothing was counted."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    words: str


class TrendLine(msgspec.Struct, frozen=True):
    """The rate of one thing over all periods, in their order."""

    name: str
    points: Sequence[TrendPoint]


def trend_figure(lines: Sequence[TrendLine], *, unit: str) -> dict[str, Any]:
    """A Plotly figure (`data` and `layout`, JSON values) of at most two lines.

    A period in which nothing was counted is a gap, never a point at 0. Periods are told
    apart by the first 26 characters of their labels.
    """
    return {
        "data": [
            _trace(line, tone, symbol)
            for line, (tone, symbol) in zip(lines, _LOOKS, strict=False)
        ],
        "layout": {
            "showlegend": len(lines) > 1,
            "legend": {"orientation": "h", "y": 1.14, "x": 0},
            "xaxis": {"type": "category", "showgrid": False},
            "yaxis": {
                "title": {"text": unit},
                "range": [0, 104],
                "ticksuffix": " %",
                "dtick": 20,
            },
        },
    }


def _trace(line: TrendLine, tone: str, symbol: str) -> dict[str, Any]:
    def from_value(point: TrendPoint, end: float | None) -> float:
        if point.value is None or end is None:
            return 0.0
        return abs(end - point.value)

    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": _inert(line.name),
        "meta": tone,
        "x": [_inert(_short(point.label)) for point in line.points],
        "y": [point.value for point in line.points],
        "connectgaps": False,
        "marker": {"symbol": symbol, "size": 8},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [from_value(point, point.high) for point in line.points],
            "arrayminus": [from_value(point, point.low) for point in line.points],
            "thickness": 1.2,
            "width": 4,
        },
        "hovertext": [_inert(f"{point.label}: {point.words}") for point in line.points],
        "hovertemplate": _HOVER,
    }


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"


def _inert(text: str) -> str:
    # Plotly reads a few tags in texts; a file may be called `<b>`.
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
