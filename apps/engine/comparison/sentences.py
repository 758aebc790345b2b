"""What a comparison says of one figure, with its numbers and nothing beyond them."""

from __future__ import annotations

import msgspec

from apps.engine.check import percent
from apps.engine.comparison.figures import FEWEST_TRACES, Metric, Side
from apps.engine.comparison.measures import RATE


def too_few(metric: Metric) -> Metric:
    """`metric` as one that cannot be compared, with the reason."""
    sentence = (
        f"{metric.label}: too few to compare, known for {metric.first.n:,} and "
        f"{metric.second.n:,} traces; each set needs {FEWEST_TRACES}."
    )
    return msgspec.structs.replace(metric, sentence=sentence, too_few=True)


def sentence_of(metric: Metric, within: str) -> str:
    """The values, the difference and the test of `metric` as one sentence.

    `within` says inside of what the test compares; "" where it compares all traces.
    """
    parts = [
        f"{metric.label}: {_side_words(metric, metric.first)} in the first set and "
        f"{_side_words(metric, metric.second)} in the second"
    ]
    if metric.difference is not None:
        parts.append(f"; difference {_signed(metric.difference, metric.unit)}")
    if metric.interval is not None:
        low, high = metric.interval.low, metric.interval.high
        parts.append(
            f" (95 % interval {_signed(low, metric.unit)} to {_signed(high, metric.unit)})"
        )
    if metric.test is not None and within:
        # It is another difference than the one before: harder tasks count for nothing.
        inside = _signed(metric.test.observed, metric.unit)
        parts.append(f"; {within} {inside}, permutation p {percent(metric.test.p)}")
    elif metric.test is not None:
        parts.append(f"; permutation p {percent(metric.test.p)}")
    return "".join(parts) + "."


def _side_words(metric: Metric, side: Side) -> str:
    missing = f", missing in {side.missing:,}" if side.missing else ""
    return f"{_amount(side.value or 0, metric.unit)} (n = {side.n:,}{missing})"


def _amount(value: float, unit: str) -> str:
    if unit == RATE:
        return percent(value)
    return f"{value:,.0f} {unit}" if abs(value) >= 100 else f"{value:,.3g} {unit}"


def _signed(value: float, unit: str) -> str:
    """An amount with its sign; of rates in percentage points."""
    sign = "+" if value > 0 else "\u2212" if value < 0 else ""
    if unit == RATE:
        return f"{sign}{abs(value) * 100:.1f} points"
    return f"{sign}{_amount(abs(value), unit)}"
