"""Whether recall falls with depth, by an exact test that assumes no shape of the fall."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import msgspec

EXACT_UP_TO: Final = 200
"""Up to this many trials the test is exact, beyond it a normal approximation."""

ASSUMES: Final = (
    "If depth did not matter, every trial would be as likely to be recalled at one "
    "depth as at another; trials are independent of each other."
)


class Trend(msgspec.Struct, frozen=True):
    """How likely a fall at least this strong is where depth does not matter.

    `p` is one-sided; `floor` the smallest p that these numbers of trials and recalls
    could give. `method` says how it was computed.
    """

    p: float
    floor: float
    method: str


def falling_trend(counts: Sequence[tuple[int, int]]) -> Trend | None:
    """The Cochran-Armitage test for a falling rate over (recalled, trials) by depth.

    The score of a depth is its rank. The null holds the number of recalls fixed and
    takes every way to spread them over the trials as equally likely, so that the tail
    of the sum of scores of recalled trials is exact up to 200 trials (Cochran 1954;
    Armitage 1955; the exact conditional form in Agresti 2013, section 5.3 and 16.5).
    Beyond that it is the normal approximation with the variance of sampling without
    replacement and half a step of continuity. Checked against enumeration and, for
    two depths, Fisher's exact test in scipy.
    `None` where fewer than two depths have trials, or nothing or everything was
    recalled. Raises `ValueError` for a count that cannot be.
    """
    if any(not 0 <= recalled <= trials for recalled, trials in counts):
        raise ValueError("As many recalls as trials are possible, and not below 0.")
    tried = [(recalled, trials) for recalled, trials in counts if trials]
    recalled = sum([k for k, _ in tried])
    trials = sum([n for _, n in tried])
    if len(tried) < 2 or recalled in {0, trials}:
        return None
    # The fewer of the two kinds are followed: a low sum of recalls is a high one of
    # what was not recalled, and a high one of recalls with the scores turned round.
    sizes = [n for _, n in tried]
    chosen = [n - k for k, n in tried]
    if recalled * 2 < trials:
        sizes, chosen = sizes[::-1], [k for k, _ in reversed(tried)]
    lost = sum(chosen)
    observed = sum([score * number for score, number in enumerate(chosen)])
    if trials <= EXACT_UP_TO:
        weights = _weights(sizes, lost)
        total = sum(weights.values())
        most = max(weights)
        return Trend(
            p=_share(sum([w for t, w in weights.items() if t >= observed]), total),
            floor=_share(weights[most], total),
            method="exact, all ways to spread the recalls over the trials",
        )
    return Trend(
        p=_normal_tail(sizes, lost, observed),
        floor=_normal_tail(sizes, lost, _highest(sizes, lost)),
        method="normal approximation",
    )


def _weights(sizes: Sequence[int], lost: int) -> dict[int, int]:
    """In how many ways `lost` of the trials have each sum of scores."""
    ways: list[dict[int, int]] = [{0: 1}] + [{} for _ in range(lost)]
    for score, size in enumerate(sizes):
        chosen = [math.comb(size, number) for number in range(min(size, lost) + 1)]
        following: list[dict[int, int]] = [{} for _ in range(lost + 1)]
        for before, sums in enumerate(ways):
            for number, combinations in enumerate(chosen[: lost - before + 1]):
                into, step = following[before + number], score * number
                for total, weight in sums.items():
                    into[total + step] = (
                        into.get(total + step, 0) + weight * combinations
                    )
        ways = following
    return ways[lost]


def _share(part: int, total: int) -> float:
    # Two whole numbers may be too large for floats, their quotient is not.
    return part / total


def _highest(sizes: Sequence[int], lost: int) -> int:
    """The highest sum of scores: everything is lost at the deepest."""
    total, left = 0, lost
    for score in range(len(sizes) - 1, -1, -1):
        taken = min(sizes[score], left)
        total += taken * score
        left -= taken
    return total


def _normal_tail(sizes: Sequence[int], lost: int, observed: int) -> float:
    trials = sum(sizes)
    mean = sum([score * n for score, n in enumerate(sizes)]) / trials
    spread = sum([n * (score - mean) ** 2 for score, n in enumerate(sizes)])
    variance = lost * (trials - lost) * spread / (trials * (trials - 1))
    z = (observed - 0.5 - lost * mean) / math.sqrt(variance)
    return math.erfc(z / math.sqrt(2)) / 2
