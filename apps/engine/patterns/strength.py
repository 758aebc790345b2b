"""How far the share of a target among some runs is above that among the others."""

from __future__ import annotations

import math
from typing import NamedTuple


class Counts(NamedTuple):
    """`hits` of `inside` runs have the target, and `all_hits` of `known` in total."""

    hits: int
    inside: int
    all_hits: int
    known: int


class Strength:
    """Half the likelihood ratio statistic of a 2 x 2 table, one side only.

    The log of how much likelier the counts are with two rates than with one (Wilks
    1938), in nats; 0 where the share inside is not above that outside. It ranks
    tables much as Fisher's exact test does and costs five look-ups.
    """

    def __init__(self, most: int) -> None:
        """For tables of up to `most` runs."""
        self._terms = [0.0, *[n * math.log(n) for n in range(1, most + 1)]]

    def __call__(self, counts: Counts) -> float:
        """The strength of one table."""
        hits, inside, all_hits, known = counts
        if hits * known <= inside * all_hits:
            return 0.0
        term = self._terms
        outside, missed = known - inside, all_hits - hits
        return (
            term[hits]
            + term[inside - hits]
            + term[missed]
            + term[outside - missed]
            - term[inside]
            - term[outside]
            - term[all_hits]
            - term[known - all_hits]
            + term[known]
        )
