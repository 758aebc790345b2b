"""Intervals for a rate: what k of n leaves open, however the k came about.

Both assume independent trials with one common rate. Trials of one task are not
independent, so for them the true interval is wider than the one given here.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

import msgspec

_SMALLEST: Final = 1e-300
_CLOSE: Final = 3e-16
_MOST_STEPS: Final = 100_000
_HALVINGS: Final = 200


class Interval(msgspec.Struct, frozen=True):
    """The two ends of an interval, both included, and the method that gave them."""

    low: float
    high: float
    method: str


def wilson(successes: int, trials: int, *, confidence: float = 0.95) -> Interval | None:
    """The Wilson score interval of a rate, `None` for 0 trials.

    All rates that a two-sided score test at this confidence would not refuse, without
    a continuity correction (Wilson 1927). Its average coverage is close to the
    nominal one, for small n too; single rates may fall below it. Checked against
    statsmodels. Raises `ValueError` unless 0 <= successes <= trials and the
    confidence lies between 0 and 1.
    """
    _check(successes, trials, confidence)
    if trials == 0:
        return None
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate = successes / trials
    spread = z * z / trials
    middle = rate + spread / 2
    half = math.sqrt(spread * (rate * (1 - rate) + spread / 4))
    return Interval(
        # The ends are exact there; rounding would leave a trace of 10**-17.
        low=0.0 if successes == 0 else max(0.0, (middle - half) / (1 + spread)),
        high=1.0 if successes == trials else min(1.0, (middle + half) / (1 + spread)),
        method="Wilson score",
    )


def clopper_pearson(
    successes: int, trials: int, *, confidence: float = 0.95
) -> Interval | None:
    """The Clopper-Pearson ("exact") interval of a rate, `None` for 0 trials.

    All rates that neither one-sided binomial test at half the error would refuse, so
    it covers at least as often as it says and is wider than Wilson's (Clopper and
    Pearson 1934). Bisection of the regularised incomplete beta function. Checked
    against statsmodels and scipy. Raises `ValueError` as `wilson` does.
    """
    _check(successes, trials, confidence)
    if trials == 0:
        return None
    tail = (1 - confidence) / 2
    k, n = successes, trials
    return Interval(
        low=0.0 if k == 0 else _beta_quantile(k, n - k + 1, tail),
        high=1.0 if k == n else 1.0 - _beta_quantile(n - k, k + 1, tail),
        method="Clopper-Pearson",
    )


def newcombe(
    first: tuple[int, int], second: tuple[int, int], *, confidence: float = 0.95
) -> Interval | None:
    """The interval of the first rate minus the second, each given as (k, n).

    Newcombe's hybrid of two Wilson intervals (Newcombe 1998, method 10): it stays
    within -1 and 1 and does not collapse at 0 or n of n. `None` if either has no
    trials. Assumes two independent samples. Checked against statsmodels. Raises
    `ValueError` as `wilson` does.
    """
    one = wilson(*first, confidence=confidence)
    other = wilson(*second, confidence=confidence)
    if one is None or other is None:
        return None
    p, q = first[0] / first[1], second[0] / second[1]
    return Interval(
        low=max(-1.0, p - q - math.hypot(p - one.low, other.high - q)),
        high=min(1.0, p - q + math.hypot(one.high - p, q - other.low)),
        method="Newcombe hybrid score",
    )


def binomial_at_least(successes: int, trials: int, rate: float) -> float:
    """The probability of `successes` or more among independent `trials` of `rate`.

    As a value of the regularised incomplete beta function. Checked against scipy.
    Raises `ValueError` unless 0 <= successes <= trials and 0 <= rate <= 1.
    """
    _check(successes, trials, 0.5)
    if not 0 <= rate <= 1:
        raise ValueError("A rate lies between 0 and 1.")
    if successes == 0:
        return 1.0
    return _beta_share(successes, trials - successes + 1, rate)


def _check(successes: int, trials: int, confidence: float) -> None:
    if not 0 <= successes <= trials:
        raise ValueError("The successes must be at least 0 and at most the trials.")
    if not 0 < confidence < 1:
        raise ValueError("The confidence must lie between 0 and 1.")


def _beta_quantile(a: int, b: int, share: float) -> float:
    """The x at which the regularised incomplete beta function reaches `share`."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        if _beta_share(a, b, middle) < share:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _beta_share(a: int, b: int, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b) for whole a and b from 1 on.

    By its continued fraction (Abramowitz and Stegun 1964, 26.5.8) on the side of the
    mean where it converges fast.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _beta_share(b, a, 1 - x)
    log_front = (
        math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
        + a * math.log(x)
        + b * math.log1p(-x)
    )
    return min(1.0, math.exp(log_front) * _continued_fraction(a, b, x) / a)


def _continued_fraction(a: int, b: int, x: float) -> float:
    """The fraction 1 / (1 + d1 / (1 + d2 / ...)), by Lentz's method from the front."""
    upper, lower = 1.0, 1.0 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = lower
    for m in range(1, _MOST_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            lower = 1.0 / _away_from_zero(1 + term * lower)
            upper = _away_from_zero(1 + term / upper)
            value *= upper * lower
        if abs(upper * lower - 1) < _CLOSE:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _SMALLEST else _SMALLEST
