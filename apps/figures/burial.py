"""Recall by depth with what was lost where, as a Plotly figure and as a table.

A depth that was not tested has no point, nor has any where no trial came to an answer.
Where facts were lost stands in rows of their own under the curve, each with a symbol, a
count and a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.check import percent
from apps.engine.memory import Place
from apps.engine.memory_tests import PLACE_WORDS, Burial, Curve, Recollection, Standing
from apps.engine.memory_tests.burial import DepthPoint
from apps.engine.memory_tests.sentences import between, counted
from apps.figures.sequence import inert

MOST_STEPS: Final = 4
"""More facts than this are in the table only."""

_HOVER: Final = "%{hovertext}<extra></extra>"
_LONGEST: Final = 26
_LOOKS: Final = (
    ("square-open", "dash"),
    ("diamond-open", "dot"),
    ("triangle-up-open", "dashdot"),
    ("star-open", "longdash"),
)
"""A symbol and a dash tell the facts apart besides the colour."""

_NOT_TESTED: Final = "not tested"
_MARKS: Final = {
    Place.NEVER_STORED: ("circle-x-open", "red"),
    Place.DROPPED_BY_SUMMARISER: ("triangle-down-open", "red"),
    Place.NOT_RETRIEVED: ("diamond-open", "red"),
    Place.IGNORED: ("square-open", "red"),
    Place.CANNOT_TELL: ("circle-open-dot", "amber"),
}
_OTHERS: Final = {
    Recollection.AMBIGUOUS: ("several candidates", "hash-open", "amber"),
    Recollection.FAILED: ("no answer, it failed", "x-open", "amber"),
}
STANDING_WORDS: Final = {
    Standing.CERTAIN: "certain",
    Standing.TOO_FEW: "all recalled, too few trials to say more",
    Standing.UNCERTAIN: "no longer certain",
    Standing.UNANSWERED: "not known, no trial came to an answer",
    Standing.NOT_TESTED: _NOT_TESTED,
}
_NOTHING_KNOWN: Final = frozenset({Standing.NOT_TESTED, Standing.UNANSWERED})


class BurialRow(msgspec.Struct, frozen=True, kw_only=True):
    """One depth in words. `facts` has one text for each fact where there are several.

    `recalled` is “k of n”, or that nothing is known; then `interval` is empty, as is
    `stored` where no state was given out.
    """

    depth: int
    recalled: str
    interval: str
    standing: str
    is_first_uncertain: bool
    facts: tuple[str, ...]
    not_recalled: tuple[str, ...]
    stored: str


def burial_figure(burial: Burial) -> dict[str, Any]:
    """A Plotly figure (`data` and `layout`, JSON values) of recall by depth.

    The curve of whole conversations has its 95 % intervals; up to four facts are steps
    beside it. Depths stand in even distances. The dotted line is the declared share.
    """
    rows = _rows_of_marks(burial)
    data = [_whole(burial)]
    if 1 < len(burial.facts) <= MOST_STEPS:
        data += [
            _steps(curve, symbol, dash)
            for curve, (symbol, dash) in zip(burial.facts, _LOOKS, strict=False)
        ]
    return {"data": [*data, *rows], "layout": _layout(burial, rows)}


def burial_rows(burial: Burial) -> tuple[BurialRow, ...]:
    """The table twin of the figure: one row for each depth, in rising order."""
    return tuple([_row(burial, place) for place in range(len(burial.whole.points))])


def _whole(burial: Burial) -> dict[str, Any]:
    points = burial.whole.points
    name = "recalled" if len(burial.facts) < 2 else "all facts recalled"
    shares = [_share(point) for point in points]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "meta": "accent",
        "x": [str(point.depth) for point in points],
        "y": shares,
        "connectgaps": False,
        "cliponaxis": False,
        "marker": {"symbol": "circle", "size": 9},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [_reach(point, is_upper=True) for point in points],
            "arrayminus": [_reach(point, is_upper=False) for point in points],
            "thickness": 1.2,
            "width": 4,
        },
        "hovertext": [f"depth {one.depth}: {counted(one)}" for one in points],
        "hovertemplate": _HOVER,
    }


def _steps(curve: Curve, symbol: str, dash: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": inert(_short(curve.name)),
        "meta": "mute",
        "x": [str(point.depth) for point in curve.points],
        "y": [_share(point) for point in curve.points],
        "connectgaps": False,
        "cliponaxis": False,
        "line": {"shape": "hvh", "dash": dash, "width": 1.2},
        "marker": {"symbol": symbol, "size": 8},
        "hovertext": [
            f"{inert(curve.name)}, depth {one.depth}: {counted(one)}"
            for one in curve.points
        ],
        "hovertemplate": _HOVER,
    }


def _rows_of_marks(burial: Burial) -> list[dict[str, Any]]:
    """One trace for each thing that happened at all, its marks in a row of its own."""
    points = burial.whole.points
    found = []
    for place, (symbol, tone) in _MARKS.items():
        counts = [point.places.get(place.value, 0) for point in points]
        found.append(_marks(burial, PLACE_WORDS[place], (symbol, tone), counts))
    for one, (words, symbol, tone) in _OTHERS.items():
        counts = [point.counts[one.value] for point in points]
        found.append(_marks(burial, words, (symbol, tone), counts))
    untested = [int(not point.trials) for point in points]
    row = _marks(burial, _NOT_TESTED, ("line-ew-open", "mute"), untested)
    return [one for one in (*found, row | {"mode": "markers"}) if one["x"]]


def _marks(
    burial: Burial, words: str, look: tuple[str, str], counts: list[int]
) -> dict[str, Any]:
    shown = [
        (point.depth, count)
        for point, count in zip(burial.whole.points, counts, strict=True)
        if count
    ]
    symbol, tone = look
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": words,
        "meta": tone,
        "showlegend": False,
        "yaxis": "y2",
        "x": [str(depth) for depth, _ in shown],
        "y": [words for _ in shown],
        "marker": {"symbol": symbol, "size": 10},
        "text": [str(count) for _, count in shown],
        "textposition": "middle right",
        "hovertext": [
            f"depth {depth}: {words}"
            if words == _NOT_TESTED
            else f"depth {depth}: {count} {words}"
            for depth, count in shown
        ],
        "hovertemplate": _HOVER,
    }


def _layout(burial: Burial, rows: list[dict[str, Any]]) -> dict[str, Any]:
    depths = [str(point.depth) for point in burial.whole.points]
    floor = min(0.5, 0.08 + 0.1 * len(rows)) if rows else 0.0
    layout: dict[str, Any] = {
        "showlegend": 1 < len(burial.facts) <= MOST_STEPS,
        "legend": {"orientation": "h", "y": 1.16, "x": 0},
        "xaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": depths,
            "title": {"text": "turns in between (tested depths)"},
            "showgrid": False,
            "anchor": "y2" if rows else "y",
        },
        "yaxis": {
            "title": {"text": "recalled"},
            "range": [0, 104],
            "ticksuffix": " %",
            "dtick": 20,
            "domain": [floor, 1],
        },
        "shapes": [_share_line(burial)],
        "annotations": list(_first_uncertain(burial)),
    }
    if rows:
        layout["yaxis2"] = {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": [one["name"] for one in reversed(rows)],
            "tickmode": "array",
            "tickvals": [one["name"] for one in rows],
            "ticktext": [_in_two_lines(one["name"]) for one in rows],
            "range": [-0.6, len(rows) - 0.4],
            "domain": [0, floor - 0.06],
            "automargin": True,
            "showgrid": False,
        }
    return layout


def _share_line(burial: Burial) -> dict[str, Any]:
    share = 100 * burial.certain_from
    return {
        "type": "line",
        "name": "mute",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": share,
        "y1": share,
        "line": {"dash": "dot", "width": 1},
    }


def _first_uncertain(burial: Burial) -> Iterator[dict[str, Any]]:
    yield {
        "name": "mute",
        "xref": "paper",
        "x": 1,
        "xanchor": "right",
        "y": 100 * burial.certain_from,
        "yanchor": "bottom",
        "text": f"declared: {percent(burial.certain_from)}",
        "showarrow": False,
    }
    first = burial.whole.first_uncertain
    if first is None:
        return
    depths = [point.depth for point in burial.whole.points]
    place = depths.index(first)
    interval = burial.whole.points[place].interval
    yield {
        "name": "red",
        # Plotly reads a text of digits as the place of a category, not as its name.
        "x": place,
        "y": 100 if interval is None else 100 * interval.high,
        "text": "no longer certain",
        "showarrow": True,
        "arrowhead": 2,
        "ax": 0,
        "ay": -26,
    }


def _row(burial: Burial, place: int) -> BurialRow:
    point = burial.whole.points[place]
    facts = [
        f"{curve.name}: {counted(curve.points[place])}"
        for curve in burial.facts
        if len(burial.facts) > 1
    ]
    return BurialRow(
        depth=point.depth,
        recalled=_recalled(point),
        interval="" if point.interval is None else between(point.interval),
        standing=STANDING_WORDS[point.standing],
        is_first_uncertain=point.depth == burial.whole.first_uncertain,
        facts=tuple(facts),
        not_recalled=tuple(_not_recalled(point)),
        stored=f"{point.held} of {point.held_known}" if point.held_known else "",
    )


def _recalled(point: DepthPoint) -> str:
    is_known = point.standing not in _NOTHING_KNOWN
    return f"{point.recalled} of {point.trials}" if is_known else counted(point)


def _not_recalled(point: DepthPoint) -> Iterator[str]:
    for place, words in PLACE_WORDS.items():
        count = point.places.get(place.value, 0)
        if count:
            yield f"{count} {words}"
    for one, (words, _, _) in _OTHERS.items():
        if point.counts[one.value]:
            yield f"{point.counts[one.value]} {words}"


def _share(point: DepthPoint) -> float | None:
    if point.standing in _NOTHING_KNOWN:
        return None
    return 100 * point.recalled / point.trials


def _reach(point: DepthPoint, *, is_upper: bool) -> float:
    """From the rate to one end of its interval, in percentage points."""
    share = _share(point)
    if share is None or point.interval is None:
        return 0.0
    end = point.interval.high if is_upper else point.interval.low
    return abs(100 * end - share)


def _in_two_lines(words: str) -> str:
    """On a telephone a long label would leave no room for the curve."""
    if len(words) <= _LONGEST // 2:
        return words
    middle = len(words) / 2
    spaces = [place for place, sign in enumerate(words) if sign == " "]
    place = min(spaces, key=lambda one: abs(one - middle), default=len(words))
    return f"{words[:place]}<br>{words[place + 1 :]}".removesuffix("<br>")


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
