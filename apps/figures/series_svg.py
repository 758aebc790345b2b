"""A series of evidence as a small static SVG, drawn without a browser.

The same series gives the same text. A value that was not recorded is a hollow mark
with a question mark at the middle height, never a point at zero, and no line crosses
it. Steps are counted from 1. Everything that came from a trace is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from apps.engine.check import Series

WIDTH: Final = 520
_LINE_HEIGHT: Final = 128
_LEFT: Final = 52
_RIGHT: Final = 14
_TOP: Final = 14
_BOTTOM: Final = 22
_ROW: Final = 17
_MAX_ROWS: Final = 8
_LABEL_WIDTH: Final = 168
_LABEL_CHARACTERS: Final = 26
_MAX_MARKS: Final = 60

# Not allowed in XML, or acting on the text beside it.
_HIDDEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufffe\uffff\ud800-\udfff]"
)

_INK = "#1f2733"
_MUTE = "#667085"
_GRID = "#e3e7ee"
_ACCENT = "#2c5fc7"
_RED = "#b4232c"
_AMBER = "#8a5a00"


def series_svg(series: Series, *, gap_after: int | None = None) -> str:
    """The SVG text of `series`: a line of values, or a lane for each label.

    A series whose labels are all it says (its values do not differ) is drawn as lanes,
    in the order in which the labels appear.
    `gap_after` is the place after which values were left out; the line breaks there.
    """
    if is_lanes(series.values, series.labels):
        return _lanes(series, gap_after)
    return _line(series, gap_after)


def is_lanes(values: Sequence[float | None], labels: Sequence[str | None]) -> bool:
    """Whether the labels of a series say what its values do not."""
    return any(labels) and len(set(values)) <= 1


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _amount(value: float) -> str:
    if float(value).is_integer():
        return f"{int(value):,}".replace(",", "\u202f")
    return f"{value:.3g}"


def _shown(words: str) -> str:
    return escape(_HIDDEN.sub("\ufffd", words))


def _text(
    x: float, y: float, words: str, *, fill: str = _MUTE, anchor: str = "start"
) -> str:
    return (
        f'<text x="{_number(x)}" y="{_number(y)}" fill="{fill}" '
        f'text-anchor="{anchor}">{_shown(words)}</text>'
    )


def _places(count: int, left: float) -> list[float]:
    right = WIDTH - _RIGHT
    if count == 1:
        return [(left + right) / 2]
    return [left + (right - left) * place / (count - 1) for place in range(count)]


def _wrapped(height: float, parts: Sequence[str], *, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} '
        f'{_number(height)}" width="{WIDTH}" height="{_number(height)}" role="img" '
        'font-family="Inter, sans-serif" font-size="10">'
        f"<title>{_shown(title)}</title>{''.join(parts)}</svg>"
    )


def _runs(values: Sequence[float | None], gap_after: int | None) -> Iterator[list[int]]:
    run: list[int] = []
    for place, value in enumerate(values):
        if run and (value is None or place == gap_after):
            yield run
            run = []
        if value is not None:
            run.append(place)
    if run:
        yield run


def _line(series: Series, gap_after: int | None) -> str:
    known = [value for value in series.values if value is not None]
    if series.threshold is not None:
        known.append(series.threshold)
    low, high = min(0.0, *known, 0.0), max(*known, 0.0, 0.0) or 1.0
    bottom, top = float(_LINE_HEIGHT - _BOTTOM), float(_TOP)

    def height_of(value: float) -> float:
        return bottom - (bottom - top) * (value - low) / (high - low)

    xs = _places(len(series.values), _LEFT)
    ys = [None if value is None else height_of(value) for value in series.values]
    parts = [*_rule(bottom, low), *_rule(top, high)]
    if series.threshold is not None:
        parts += _threshold(height_of(series.threshold), series.threshold)
    parts += _polylines(xs, ys, gap_after)
    parts += _marks(xs, ys, (top + bottom) / 2)
    parts += _end_words(series, xs, ys)
    missing = sum(value is None for value in series.values)
    title = f"{len(series.values)} values in {series.unit}, {missing} not recorded"
    return _wrapped(_LINE_HEIGHT, parts, title=title)


def _rule(y: float, value: float) -> Iterator[str]:
    yield (
        f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{_number(y)}" '
        f'y2="{_number(y)}" stroke="{_GRID}"/>'
    )
    yield _text(_LEFT - 8, y + 3.5, _amount(value), anchor="end")


def _threshold(y: float, value: float) -> Iterator[str]:
    yield (
        f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{_number(y)}" y2="{_number(y)}" '
        f'stroke="{_RED}" stroke-dasharray="4 3" stroke-opacity=".75"/>'
    )
    yield _text(_LEFT + 4, y + 11, f"threshold {_amount(value)}", fill=_RED)


def _polylines(
    xs: Sequence[float], ys: Sequence[float | None], gap_after: int | None
) -> Iterator[str]:
    for run in _runs(ys, gap_after):
        points = " ".join(f"{_number(xs[i])},{_number(ys[i] or 0.0)}" for i in run)
        yield (
            f'<polyline points="{points}" fill="none" stroke="{_ACCENT}" '
            'stroke-width="1.6" stroke-linejoin="round"/>'
        )


def _marks(
    xs: Sequence[float], ys: Sequence[float | None], middle: float
) -> Iterator[str]:
    radius = 3.0 if len(xs) <= _MAX_MARKS else 1.4
    for x, y in zip(xs, ys, strict=True):
        if y is None:
            yield _missing(x, middle, small=len(xs) > _MAX_MARKS)
        else:
            yield (
                f'<circle cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}" '
                f'fill="{_ACCENT}"/>'
            )


def _missing(x: float, y: float, *, small: bool) -> str:
    ring = (
        f'<circle cx="{_number(x)}" cy="{_number(y)}" r="{1.6 if small else 5.5}" '
        f'fill="#fff" stroke="{_AMBER}" stroke-width=".8"/>'
    )
    if small:
        return ring
    return ring + _text(x, y + 3.5, "?", fill=_AMBER, anchor="middle")


def _end_words(
    series: Series, xs: Sequence[float], ys: Sequence[float | None]
) -> Iterator[str]:
    y = _LINE_HEIGHT - 7
    if series.steps:
        yield _text(_LEFT, y, f"step {series.steps[0] + 1}")
        yield _text(WIDTH - _RIGHT, y, f"step {series.steps[-1] + 1}", anchor="end")
    recorded = [i for i, height in enumerate(ys) if height is not None]
    for place in dict.fromkeys(recorded[:1] + recorded[-1:]):
        value, height = series.values[place], ys[place]
        if value is None or height is None:
            continue
        anchor = "start" if xs[place] < WIDTH / 2 else "end"
        yield _text(xs[place], height - 6, _amount(value), fill=_INK, anchor=anchor)


def _lanes(series: Series, gap_after: int | None) -> str:
    names = list(dict.fromkeys(label or "no name" for label in series.labels))
    shown = names if len(names) <= _MAX_ROWS else names[: _MAX_ROWS - 1]
    others = len(names) - len(shown)
    rows = [_cut(name) for name in shown]
    rows += [f"{others} other names"] if others else []
    xs = _places(len(series.labels), _LABEL_WIDTH + 10.0)
    ys = [
        _TOP + _ROW * min(names.index(label or "no name"), len(rows) - 1) + 0.0
        for label in series.labels
    ]
    parts = []
    for row, name in enumerate(rows):
        y = float(_TOP + _ROW * row)
        parts.append(
            f'<line x1="{_LABEL_WIDTH}" x2="{WIDTH}" y1="{_number(y)}" '
            f'y2="{_number(y)}" stroke="{_GRID}"/>'
        )
        parts.append(_text(_LABEL_WIDTH - 8, y + 3.5, name, fill=_INK, anchor="end"))
    parts += _polylines(xs, ys, gap_after)
    parts += _marks(xs, ys, 0.0)
    height = _TOP + _ROW * len(rows) + 12.0
    if series.steps:
        parts.append(_text(xs[0], height - 6, f"step {series.steps[0] + 1}"))
        last = f"step {series.steps[-1] + 1}"
        parts.append(_text(WIDTH, height - 6, last, anchor="end"))
    title = f"{len(series.labels)} places, {len(names)} different names"
    return _wrapped(height, parts, title=title)


def _cut(name: str) -> str:
    if len(name) <= _LABEL_CHARACTERS:
        return name
    return f"{name[: _LABEL_CHARACTERS - 1]}…"
