"""The values of one piece of evidence in order, as a Plotly figure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from apps.engine.check import Series

NOT_REPORTED: Final = "not reported"

_MOST_LABELLED: Final = 24
_HOVER: Final = "%{hovertext}<extra></extra>"


def sequence_figure(
    series: Series | Mapping[str, Any], *, excluded: Mapping[int, str] | None = None
) -> dict[str, Any]:
    """A Plotly figure (`data` and `layout`, JSON values) of `series`.

    Counts are bars, other units a line. A value that was not reported is a hatched
    hollow bar of full height that says so. `excluded` gives a reason for each step
    (`Step.seq`) that was left out; those stand as grey crosses between the values. A
    threshold is a dotted line. Raises `msgspec.ValidationError` for what is no series.
    """
    given = series if isinstance(series, Series) else msgspec.convert(series, Series)
    known = [value for value in given.values if value is not None]
    top = max([*known, given.threshold or 0.0], default=0.0) or 1.0
    traces = [_values(given)]
    if len(known) < len(given.values):
        traces.append(_missing(given, top))
    if excluded:
        traces.append(_excluded(given, excluded))
    return {"data": traces, "layout": _layout(given, top)}


def _is_count(series: Series) -> bool:
    return "token" in series.unit


def _values(series: Series) -> dict[str, Any]:
    places = [n for n, value in enumerate(series.values) if value is not None]
    trace = {
        "name": series.unit,
        "meta": "accent",
        "x": [place + 1 for place in places],
        "y": [series.values[place] for place in places],
        "hovertext": [_hover(series, place) for place in places],
        "hovertemplate": _HOVER,
    }
    if not _is_count(series):
        return trace | {"type": "scatter", "mode": "lines+markers"}
    bars = trace | {"type": "bar", "width": 0.72}
    if len(series.values) <= _MOST_LABELLED:
        bars |= {
            "text": [_number(series.values[place]) for place in places],
            "textposition": "outside",
            "cliponaxis": False,
        }
    return bars


def _missing(series: Series, top: float) -> dict[str, Any]:
    places = [n for n, value in enumerate(series.values) if value is None]
    trace = {
        "type": "bar",
        "name": NOT_REPORTED,
        "meta": "amber",
        "width": 0.72,
        "x": [place + 1 for place in places],
        "y": [top] * len(places),
        "marker": {
            "color": "rgba(0,0,0,0)",
            "pattern": {"shape": "/", "fillmode": "replace", "size": 6},
        },
        "hovertext": [_hover(series, place) for place in places],
        "hovertemplate": _HOVER,
    }
    if len(series.values) <= _MOST_LABELLED:
        trace |= {
            "text": [NOT_REPORTED] * len(places),
            "textposition": "inside",
            "insidetextanchor": "middle",
            "textangle": -90,
        }
    return trace


def _excluded(series: Series, excluded: Mapping[int, str]) -> dict[str, Any]:
    """Crosses on the base line between the values, where the steps took place."""
    steps = sorted(excluded)
    ordered = sorted(series.steps)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "left out",
        "meta": "mute",
        "x": [bisect_left(ordered, step) + 0.5 for step in steps],
        "y": [0] * len(steps),
        "marker": {"symbol": "x-thin-open", "size": 9},
        "cliponaxis": False,
        "hovertext": [f"step {step + 1}: {excluded[step]}, left out" for step in steps],
        "hovertemplate": _HOVER,
    }


def _hover(series: Series, place: int) -> str:
    """What a pointer over one value reads; the texts of a trace are made inert."""
    value = series.values[place]
    words = NOT_REPORTED if value is None else f"{_number(value)} {series.unit}"
    label = series.labels[place] if place < len(series.labels) else None
    parts = [f"step {series.steps[place] + 1}", words, *([label] if label else [])]
    return "<br>".join(map(inert, parts))


def inert(text: str) -> str:
    """`text` for a label or hover: Plotly reads tags there; a tool may be `<b>`."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _number(value: float | None) -> str:
    if value is None:
        return NOT_REPORTED
    if float(value).is_integer():
        return f"{int(value):,}".replace(",", "\u202f")
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _layout(series: Series, top: float) -> dict[str, Any]:
    layout: dict[str, Any] = {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "showlegend": False,
        "bargap": 0.25,
        "xaxis": {
            "title": {"text": "place in the sequence"},
            "range": [0.4, len(series.values) + 0.6],
            "tickformat": "d",
            "dtick": max(1, -(-len(series.values) // 12)),
            "tick0": 1,
            "showgrid": False,
        },
        "yaxis": {
            "title": {"text": series.unit},
            "range": [0, top * 1.12],
            "rangemode": "tozero",
        },
    }
    if series.threshold is not None:
        layout["shapes"] = [_line_at(series.threshold)]
        layout["annotations"] = [_note_at(series.threshold)]
        # Room beside the values, so that the note covers none of them.
        layout["margin"] = {"l": 44, "r": 58, "t": 12, "b": 36}
    return layout


def _line_at(threshold: float) -> dict[str, Any]:
    return {
        "type": "line",
        "name": "red",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": threshold,
        "y1": threshold,
        "line": {"dash": "dot", "width": 1.5},
    }


def _note_at(threshold: float) -> dict[str, Any]:
    return {
        "name": "red",
        "xref": "paper",
        "x": 1,
        "xanchor": "left",
        "xshift": 4,
        "align": "left",
        "y": threshold,
        "yanchor": "middle",
        "showarrow": False,
        "text": f"bound<br>{_number(threshold)}",
    }
