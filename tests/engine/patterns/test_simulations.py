"""A planted rule is found and chance stays silent, in fewer runs than the bench makes."""

from __future__ import annotations

import pytest

from tests.benchmarks.patterns import (
    agents_null,
    at_scale,
    clustered_null,
    is_found,
    is_silent,
    null,
    planted,
    planted_by_run,
    share,
    uneven_null,
)
from tests.soak import times

# Each is right in 97 % or more of the 200 simulations of the bench; 9 of 10 are then
# reached with a probability of 96 % and more, and the seeds are fixed.
RUNS = range(1_000, 1_000 + times(10, soak=200))
FEWEST = len(RUNS) * 9 // 10


@pytest.mark.slow
@pytest.mark.parametrize("make", [planted, planted_by_run])
def test_a_planted_rule_is_found(make):
    assert share(make, is_found, RUNS) >= FEWEST


@pytest.mark.slow
@pytest.mark.parametrize("make", [null, clustered_null, uneven_null, agents_null])
def test_nothing_is_reported_where_nothing_is_planted(make):
    assert share(make, is_silent, RUNS) >= FEWEST


@pytest.mark.slow
def test_twenty_thousand_units_take_seconds():
    took, answer = at_scale()
    assert answer.findings[0].words == "c0 is 0.4 to under 0.5"
    assert took < 30
