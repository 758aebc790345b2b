"""What the comparison page needs: two sides, every figure in words, the tool mixes.

Nothing here says which side is better: a difference has a sign, no colour.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from django.urls import reverse

from apps.accounts.permissions import Permission
from apps.engine.comparison import Comparison, Metric, ToolShare
from apps.engine.nulls import Interval as NullInterval
from apps.engine.nulls import PermutationTest
from apps.figures import tool_mix_figure
from apps.traces.comparing import Q_MEANS, Compared, SideFigures, compare_sides
from apps.traces.sides import Choice, choices, side_of
from apps.web.access import Place
from apps.web.pages.calibration_words import RangeMark, range_mark
from apps.web.pages.traces import query_of
from apps.web.words import number_in_words, percent_in_words

SAME: Final = "Both sides are the same, so every difference is nothing. Choose another second side."
MOST_BARS: Final = 10
MOST_TOOL_ROWS: Final = 100
_RATE: Final = "%"
_KINDS: Final = {"set": "Trace sets", "model": "Models", "upload": "Uploads"}


class MetricLine(msgspec.Struct, frozen=True):
    """One figure of both sides in words.

    `tested` is the difference that the permutation test is about, where that is not
    `difference`: the one within the tasks that both sides have.
    """

    label: str
    first: str
    first_known: str
    second: str
    second_known: str
    difference: str
    interval: str
    interval_method: str
    tested: str
    chance: str
    method: str
    q: str
    sentence: str
    too_few: bool


class ToolLine(msgspec.Struct, frozen=True):
    """One tool of both sides in words."""

    name: str
    first: int
    first_share: str
    second: int
    second_share: str
    change: str


class SideLine(msgspec.Struct, frozen=True):
    """One side: where its traces are, how they ended, how to keep it as a set."""

    figures: SideFigures
    place: str
    share: str
    mark: RangeMark | None
    url: str
    save_url: str


class Result(msgspec.Struct, frozen=True):
    """Everything that was compared."""

    sides: list[SideLine]
    metrics: list[MetricLine]
    tools: list[ToolLine]
    more_tools: int
    figure: dict[str, Any] | None
    notes: list[str]
    query: str
    swapped: str


class ComparePage(msgspec.Struct, frozen=True):
    """Two sides to choose, and what was compared, if both are chosen."""

    place: Place
    groups: list[tuple[str, list[Choice]]]
    first: str
    second: str
    result: Result | None
    same: str
    refusal: str


def compare_page(place: Place, query: Mapping[str, str]) -> ComparePage:
    """The comparison that the address asks for; raises `UnknownSide`."""
    first, second = query.get("first", ""), query.get("second", "")
    for key in (first, second):
        if key:
            side_of(place.project, key)
    is_same = bool(first) and first == second
    both = bool(first) and bool(second) and not is_same
    found = compare_sides(place.project, first=first, second=second) if both else None
    return ComparePage(
        place=place,
        groups=_groups(choices(place.project)),
        first=first,
        second=second,
        result=_result(place, found) if found else None,
        same=SAME if is_same else "",
        refusal=place.refusal(Permission.MANAGE_SETS),
    )


def _groups(found: list[Choice]) -> list[tuple[str, list[Choice]]]:
    grouped = [
        (label, [one for one in found if one.kind == kind])
        for kind, label in _KINDS.items()
    ]
    return [(label, some) for label, some in grouped if some]


def _result(place: Place, found: Compared) -> Result:
    tools = found.result.tools
    sides = (found.first, found.second)
    keys = [one.side.key for one in sides]
    return Result(
        sides=[
            _side(place, one, words)
            for one, words in zip(sides, ("First", "Second"), strict=True)
        ],
        metrics=metric_lines(found.result),
        tools=[_tool(row) for row in tools[:MOST_TOOL_ROWS]],
        more_tools=max(0, len(tools) - MOST_TOOL_ROWS),
        figure=_figure(found),
        notes=[*found.result.notes, *found.notes, Q_MEANS],
        query=urlencode({"first": keys[0], "second": keys[1]}),
        swapped="?" + urlencode({"first": keys[1], "second": keys[0]}),
    )


def _side(place: Place, one: SideFigures, words: str) -> SideLine:
    slug, side = place.project.slug, one.side
    told = one.pass_rate
    if side.trace_set is not None:
        url, save = reverse("trace-set", args=[slug, side.key]), ""
    else:
        query = query_of(side.where) if side.where else ""
        url, save = (reverse(name, args=[slug]) + query for name in _OF_A_FILTER)
    return SideLine(one, words, told.words, range_mark(told), url, save)


_OF_A_FILTER: Final = ("traces", "set-new")


def metric_lines(found: Comparison) -> list[MetricLine]:
    """The figures of both sides as the page, and the markdown of it, write them."""
    return [_metric(one, found.within_tasks) for one in found.metrics]


def _metric(metric: Metric, is_within: bool) -> MetricLine:  # noqa: FBT001
    unit = metric.unit
    is_distance = metric.first.value is None and metric.second.value is None
    difference = metric.difference
    return MetricLine(
        label=metric.label,
        first="" if is_distance else amount(metric.first.value, unit),
        first_known=_known(metric.first.n, metric.first.missing),
        second="" if is_distance else amount(metric.second.value, unit),
        second_known=_known(metric.second.n, metric.second.missing),
        difference=(
            percent_in_words(difference)
            if is_distance and difference is not None
            else signed(difference, unit)
        ),
        interval=_interval(metric.interval, unit),
        interval_method=metric.interval.method if metric.interval else "",
        tested=(
            signed(metric.test.observed, unit)
            if metric.test and is_within and not is_distance
            else ""
        ),
        chance=_chance(metric.test),
        method=metric.test.method if metric.test else "",
        q="—" if metric.q is None else percent_in_words(metric.q),
        sentence=metric.sentence,
        too_few=metric.too_few,
    )


def _known(n: int, missing: int) -> str:
    lacking = f", missing in {number_in_words(missing)}" if missing else ""
    return f"n = {number_in_words(n)}{lacking}"


def amount(value: float | None, unit: str) -> str:
    """A value with its unit; rates in percent, an em dash for what is not known."""
    if value is None:
        return "—"
    if unit == _RATE:
        return percent_in_words(value)
    number = round(value) if abs(value) >= 1000 else float(f"{value:.3g}")
    return f"{number_in_words(number)} {unit}"


def signed(value: float | None, unit: str) -> str:
    """A difference with its sign; of rates in percentage points."""
    if value is None:
        return "—"
    sign = "+" if value > 0 else "\u2212" if value < 0 else ""
    if unit == _RATE:
        return f"{sign}{abs(value) * 100:.1f} points"
    return f"{sign}{amount(abs(value), unit)}"


def _interval(found: NullInterval | None, unit: str) -> str:
    if found is None:
        return ""
    return f"{signed(found.low, unit)} to {signed(found.high, unit)}"


def _chance(test: PermutationTest | None) -> str:
    if test is None:
        return "—"
    error = test.standard_error
    beside = f" ± {percent_in_words(error)}" if error else ""
    return f"{percent_in_words(test.p)}{beside}"


def _tool(row: ToolShare) -> ToolLine:
    return ToolLine(
        name=row.name or "(no name)",
        first=row.first,
        first_share=percent_in_words(row.first_share),
        second=row.second,
        second_share=percent_in_words(row.second_share),
        change=signed(row.change, _RATE),
    )


def _figure(found: Compared) -> dict[str, Any] | None:
    tools = sorted(found.result.tools, key=lambda row: -(row.first + row.second))
    if not tools:
        return None
    return tool_mix_figure(
        tools[:MOST_BARS],
        names=(
            f"First: {found.first.side.label}",
            f"Second: {found.second.side.label}",
        ),
    )
