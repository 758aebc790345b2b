"""How a check fired and was judged over time, for one key or two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from apps.engine.calibration import NO_TRACES, Rate, rate
from apps.figures import TrendLine, TrendPoint, trend_figure
from apps.review.calibration import Groups, Said
from apps.screening.calibration import GroupKind, GroupRate
from apps.web.pages.calibration_words import rate_in_words

KeyInTime = tuple[str, Sequence[GroupRate], Groups]


class TrendRow(msgspec.Struct, frozen=True):
    """One period in the table twin: fire rate and precision of each key, in words."""

    label: str
    cells: list[str]


class TrendPart(msgspec.Struct, frozen=True):
    """Two figures and their table; None where there is only one period."""

    by: str
    names: list[str]
    rows: list[TrendRow]
    fired: dict[str, Any] | None
    confirmed: dict[str, Any] | None


def trend_part(keys: Sequence[KeyInTime], *, uploads: Mapping[str, str]) -> TrendPart:
    """By week; by day where all came within two weeks; by upload where within a day."""
    kind = _kind(keys)
    periods = _periods(keys, kind)
    lines = [_Line(name, rates, said, kind) for name, rates, said in keys]
    labels = _labels(periods, uploads)
    rows = [
        TrendRow(
            label=labels[period],
            cells=[
                rate_in_words(of)
                for line in lines
                for of in (line.fired(period), line.confirmed(period))
            ],
        )
        for period in periods
    ]
    is_drawn = len(periods) > 1
    has_decisions = any(
        line.confirmed(period).n for line in lines for period in periods
    )
    return TrendPart(
        by={GroupKind.WEEK: "week", GroupKind.DAY: "day"}.get(kind, "upload"),
        names=[name for name, _, _ in keys],
        rows=rows,
        fired=(
            trend_figure(
                [line.drawn(labels, line.fired) for line in lines], unit="fire rate"
            )
            if is_drawn
            else None
        ),
        confirmed=(
            trend_figure(
                [line.drawn(labels, line.confirmed) for line in lines],
                unit="confirmed of decided",
            )
            if is_drawn and has_decisions
            else None
        ),
    )


def _kind(keys: Sequence[KeyInTime]) -> GroupKind:
    days = {
        one.name for _, rates, _ in keys for one in rates if one.kind is GroupKind.DAY
    }
    if len(days) < 2:
        return GroupKind.UPLOAD
    weeks = {
        one.name for _, rates, _ in keys for one in rates if one.kind is GroupKind.WEEK
    }
    return GroupKind.WEEK if len(weeks) > 2 else GroupKind.DAY


def _periods(keys: Sequence[KeyInTime], kind: GroupKind) -> list[str]:
    """The periods of all keys in order of time; uploads by their ids."""
    names = {one.name for _, rates, _ in keys for one in rates if one.kind is kind}
    if kind is GroupKind.UPLOAD:
        return sorted(names, key=int)
    return sorted(names)


def _labels(periods: Sequence[str], uploads: Mapping[str, str]) -> dict[str, str]:
    """What each period is called; uploads of one name are told apart by a number."""
    labels: dict[str, str] = {}
    for number, period in enumerate(periods, start=1):
        name = uploads.get(period, period)
        labels[period] = f"{number}. {name}" if uploads.get(period) else name
    return labels


class _Line:
    """One key over time."""

    def __init__(
        self, name: str, rates: Sequence[GroupRate], said: Groups, kind: GroupKind
    ) -> None:
        self._name = name
        self._rates = {one.name: one for one in rates if one.kind is kind}
        self._said = said
        self._kind = kind

    def fired(self, period: str) -> Rate:
        """Signals of applicable answers in a period."""
        found = self._rates.get(period)
        if found is None:
            return rate(0, 0, nothing=NO_TRACES)
        return rate(found.signals, found.applicable, nothing=NO_TRACES)

    def confirmed(self, period: str) -> Rate:
        """Confirmed of decided review signals of the traces of a period."""
        said = self._said.get((self._kind, period), Said())
        return rate(said.confirmed, said.decided)

    def drawn(self, labels: Mapping[str, str], of: Any) -> TrendLine:
        """The line of one of these rates over the periods `labels`."""
        return TrendLine(
            name=self._name,
            points=[_point(label, of(period)) for period, label in labels.items()],
        )


def _point(label: str, of: Rate) -> TrendPoint:
    if of.value is None or of.interval is None:
        return TrendPoint(label, None, None, None, of.nothing)
    return TrendPoint(
        label=label,
        value=round(of.value * 100, 2),
        low=round(of.interval.low * 100, 2),
        high=round(of.interval.high * 100, 2),
        words=rate_in_words(of),
    )
