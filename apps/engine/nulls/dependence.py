"""How much more often values fall by chance when each depends on the one before.

The model is a stationary Gaussian autoregression of order 1, x[i+1] = phi x[i] + e.
It is one simple way to be dependent, shown so that nobody takes the exchangeable
figure for the only one; which phi a real agent has is not known.
"""

from __future__ import annotations

import math
import random
from typing import Final

AUTOREGRESSION_PHIS: Final = (0.0, 0.3, 0.5, 0.7, 0.9)

_SHORTEST: Final = 5

# The probability that 5, 6, ... 12 values come in falling order, by phi. Computed by
# iterated trapezoidal quadrature of the joint density over the ordered region (6,001
# points on -8..8); phi 0 is 1/n!. The tests compute it again and simulate it.
_FALLING: Final = {
    0.0: (8.333e-3, 1.389e-3, 1.984e-4, 2.480e-5, 2.756e-6, 2.756e-7, 2.505e-8, 2.088e-9),
    0.3: (1.530e-2, 3.335e-3, 6.319e-4, 1.058e-4, 1.585e-5, 2.150e-6, 2.663e-7, 3.035e-8),
    0.5: (2.302e-2, 6.201e-3, 1.481e-3, 3.173e-4, 6.154e-5, 1.090e-5, 1.774e-6, 2.672e-7),
    0.7: (3.459e-2, 1.181e-2, 3.703e-3, 1.072e-3, 2.876e-4, 7.184e-5, 1.677e-5, 3.671e-6),
    0.9: (5.151e-2, 2.266e-2, 9.660e-3, 3.993e-3, 1.601e-3, 6.225e-4, 2.350e-4, 8.616e-5),
}  # fmt: skip


def sensitivity(n: int) -> dict[str, float]:
    """The chance that n values fall, by phi written as text; empty outside 5 to 12.

    Distinct values are assumed: ties only make a fall more likely.
    """
    place = n - _SHORTEST
    if not 0 <= place < len(_FALLING[0.0]):
        return {}
    return {f"{phi:g}": row[place] for phi, row in _FALLING.items()}


def falling_under_autoregression(
    n: int, phi: float, *, draws: int, seed: int
) -> tuple[float, float]:
    """The simulated chance that n values fall, and its standard error.

    Seeded Monte Carlo: the same arguments give the same answer. Raises `ValueError`
    unless phi lies in [0, 1).
    """
    if not 0 <= phi < 1:
        raise ValueError("The autoregression needs a phi of at least 0 and below 1.")
    source = random.Random(seed)  # noqa: S311 - a simulation, not a secret
    spread = math.sqrt(1 - phi * phi)
    hits = 0
    for _ in range(draws):
        value = source.gauss(0, 1)
        for _ in range(n - 1):
            following = phi * value + spread * source.gauss(0, 1)
            if following > value:
                break
            value = following
        else:
            hits += 1
    share = hits / draws
    return share, math.sqrt(share * (1 - share) / draws)
