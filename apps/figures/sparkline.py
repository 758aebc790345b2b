"""A series in small: the path and points of an inline SVG."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from apps.engine.check import Series

_PADDING: Final = 4.0
_MOST_POINTS: Final = 60


class Sparkline(msgspec.Struct, frozen=True):
    """What to draw, in SVG units with the origin at the upper left.

    `line` is a path with a gap wherever a value was not reported; `ends` are the
    first and the last reported value, `missing` the places of the others (at half
    height: they have no value), `limit` the height of the threshold, `label` the same
    in words. The base line stands for 0.
    """

    line: str
    ends: tuple[tuple[float, float], ...]
    missing: tuple[tuple[float, float], ...]
    limit: float | None
    label: str


def sparkline_of(
    series: Series | Mapping[str, Any], *, width: float = 140, height: float = 44
) -> Sparkline:
    """The sparkline of `series`; a long one keeps the extremes of each stretch.

    Raises `msgspec.ValidationError` for what is no series.
    """
    given = series if isinstance(series, Series) else msgspec.convert(series, Series)
    known = [value for value in given.values if value is not None]
    top = max([*known, given.threshold or 0.0], default=0.0) or 1.0
    across = width - 2 * _PADDING
    up = height - 2 * _PADDING

    def x_of(place: int) -> float:
        gaps = len(given.values) - 1
        return round(_PADDING + (across * place / gaps if gaps else across / 2), 1)

    def y_of(value: float) -> float:
        return round(_PADDING + up * (1 - value / top), 1)

    drawn = [
        (x_of(place), None if value is None else y_of(value))
        for place, value in _thinned(given.values)
    ]
    points = [(x, y) for x, y in drawn if y is not None]
    return Sparkline(
        line=_path(drawn),
        ends=tuple(points[:1] + points[-1:] if len(points) > 1 else points),
        missing=tuple([(x, round(height / 2, 1)) for x, y in drawn if y is None]),
        limit=None if given.threshold is None else y_of(given.threshold),
        label=_in_words(given, known),
    )


def _thinned(values: tuple[float | None, ...]) -> list[tuple[int, float | None]]:
    """Places and values: all of a short series, else the extremes of each stretch.

    The first and the last value are always kept, and one missing value of a stretch.
    """
    numbered = list(enumerate(values))
    if len(numbered) <= _MOST_POINTS:
        return numbered
    stretch = -(-len(numbered) // (_MOST_POINTS // 3))
    kept: dict[int, float | None] = {0: values[0], len(values) - 1: values[-1]}
    for start in range(0, len(numbered), stretch):
        part = numbered[start : start + stretch]
        known = [(place, value) for place, value in part if value is not None]
        if known:
            kept.update([min(known, key=_value), max(known, key=_value)])
        kept.update([entry for entry in part if entry[1] is None][:1])
    return sorted(kept.items())


def _value(entry: tuple[int, float]) -> float:
    return entry[1]


def _path(drawn: list[tuple[float, float | None]]) -> str:
    parts: list[str] = []
    is_open = False
    for x, y in drawn:
        if y is not None:
            # A value alone between two gaps would be an invisible path without h0.
            parts.append(f"L{x:g} {y:g}" if is_open else f"M{x:g} {y:g}h0")
        is_open = y is not None
    return "".join(parts)


def _in_words(series: Series, known: list[float]) -> str:
    n, missing = len(series.values), len(series.values) - len(known)
    if not known:
        return f"{n} values, none reported"
    words = f"{n} values, from {known[0]:.4g} to {known[-1]:.4g} {series.unit}"
    return f"{words}, {missing} not reported" if missing else words
