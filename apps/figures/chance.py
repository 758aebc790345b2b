"""Pictures of a check over a project: how many signals chance gives, and which sizes.

Plotly figures as plain values; the page colours them by the word in `meta`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

_HOVER: Final = "%{hovertext}<extra></extra>"
_LAYOUT: Final = {
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "showlegend": False,
    "bargap": 0.25,
}


def chance_figure(
    distribution: Sequence[tuple[int, float]], *, observed: int
) -> dict[str, Any]:
    """How likely each number of signals is by chance, with the observed one marked.

    `distribution` holds (number of signals, probability) in order.
    """
    numbers = [number for number, _ in distribution]
    shares = [share for _, share in distribution]
    low = min([*numbers, observed])
    high = max([*numbers, observed])
    top = max(shares, default=1.0)
    bars = {
        "type": "bar",
        "name": "by chance",
        "meta": "mute",
        "x": numbers,
        "y": [100 * share for share in shares],
        "hovertext": [
            f"chance gives {number}: {100 * share:.1f} %"
            for number, share in distribution
        ],
        "hovertemplate": _HOVER,
    }
    layout = _LAYOUT | {
        "xaxis": {
            "title": {"text": "number of signals"},
            "range": [low - 0.8, high + 0.8],
            "tickformat": "d",
            "showgrid": False,
        },
        "yaxis": {
            "title": {"text": "chance of that number (%)"},
            "range": [0, 118 * top],
            "rangemode": "tozero",
        },
        "shapes": [_upright(observed, "accent", "solid")],
        "annotations": [
            {
                "x": observed,
                "y": 1,
                "yref": "paper",
                "yanchor": "top",
                "text": f"observed: {observed}",
                "showarrow": False,
                "name": "accent",
            }
        ],
    }
    return {"data": [bars], "layout": layout}


def lattice_figure(
    sizes: Sequence[tuple[float, int]],
    *,
    lattice: Sequence[float],
    bound: float,
    unit: str,
) -> dict[str, Any]:
    """How often each size was observed, over all the sizes that are possible at all.

    `sizes` holds (size, how often); `lattice` the possible sizes from 0 on, which may
    have either sign. `bound` is where a signal begins.
    """
    possible = sorted({sign * size for size in lattice for sign in (1, -1)})
    top = max([number for _, number in sizes], default=1)
    data = [
        {
            "type": "bar",
            "name": "observed",
            "meta": "accent",
            "width": 0.07,
            "x": [size for size, _ in sizes],
            "y": [number for _, number in sizes],
            "text": [str(number) for _, number in sizes],
            "textposition": "outside",
            "cliponaxis": False,
            "hovertext": [f"{size:.4f} {unit}: {number}" for size, number in sizes],
            "hovertemplate": _HOVER,
        },
        {
            "type": "scatter",
            "mode": "markers",
            "name": "possible",
            "meta": "mute",
            "x": possible,
            "y": [0] * len(possible),
            "marker": {"symbol": "line-ns-open", "size": 9},
            "cliponaxis": False,
            "hovertext": [f"possible: {size:.4f} {unit}" for size in possible],
            "hovertemplate": _HOVER,
        },
    ]
    layout = _LAYOUT | {
        "xaxis": {"title": {"text": f"drop ({unit})"}, "showgrid": False},
        "yaxis": {
            "title": {"text": "sequences"},
            "range": [0, 1.15 * top],
            "rangemode": "tozero",
        },
        "shapes": [_upright(bound, "red", "dot")],
    }
    return {"data": data, "layout": layout}


def _upright(x: float, tone: str, dash: str) -> dict[str, Any]:
    return {
        "type": "line",
        "name": tone,
        "x0": x,
        "x1": x,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"dash": dash},
    }
