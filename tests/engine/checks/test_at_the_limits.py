"""Every check at the ends of what its parameters may be, over any trace."""

from __future__ import annotations

from contextlib import suppress
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.check import configured
from apps.engine.checks import CHECKS
from tests.engine.checks.test_all_checks import holds_for
from tests.engine.random_traces import shuffled, traces
from tests.engine.traces import outputs_trace, tools_trace, trace_of

SMALL = 1e-9

FEW_AND_LONG = [
    trace_of(),
    trace_of(agents=()),
    outputs_trace(7),
    outputs_trace(*range(400, 0, -1)),
    outputs_trace(*[9] * 12, 5),
    tools_trace(*"ab" * 8, *"c" * 12),
    tools_trace("only"),
]


def ends_of(check, limit):
    """The least and the most that a parameter may be, and what it is."""
    usual = getattr(check, limit.name)
    if limit.names:
        return [(), tuple(f"n{at}" for at in range(int(limit.high))), usual]
    least = limit.low + SMALL if limit.above_low else limit.low
    return [least, limit.high, usual]


def at_all_ends(check):
    """The check with every combination of these that it takes."""
    found = []
    for values in product(*[ends_of(check, limit) for limit in check.limits]):
        named = {
            limit.name: value for limit, value in zip(check.limits, values, strict=True)
        }
        # Bounds that must ascend cannot stand at opposite ends.
        with suppress(ValueError):
            found.append(configured(check, named))
    return found


EXTREMES = [one for check in CHECKS for one in at_all_ends(check)]


def test_every_check_takes_both_ends_of_each_parameter():
    for check in CHECKS:
        taken = [one.parameters for one in EXTREMES if one.slug == check.slug]
        for limit in check.limits:
            assert len({str(parameters[limit.name]) for parameters in taken}) >= 2


@given(trace=traces(), source=st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_no_combination_of_extreme_parameters_breaks_on_any_trace(trace, source):
    other = shuffled(trace, source)
    for check in EXTREMES:
        found = list(check.run(trace))
        holds_for(check, found)
        assert list(check.run(other)) == found


@pytest.mark.parametrize("trace", FEW_AND_LONG)
def test_no_combination_of_extreme_parameters_breaks_on_short_and_long_ones(trace):
    for check in EXTREMES:
        holds_for(check, list(check.run(trace)))


@given(trace=traces())
@settings(max_examples=20, deadline=None)
def test_parameters_change_no_input_hash(trace):
    usual = {
        check.slug: [one.input_hash for one in check.run(trace)] for check in CHECKS
    }
    for check in EXTREMES:
        assert [one.input_hash for one in check.run(trace)] == usual[check.slug]


def test_texts_name_the_parameters_that_are_set_and_no_others():
    for check in EXTREMES:
        one = "" if "min_calls" not in check.parameters else check.material_when
        if one:
            assert f"{check.parameters['min_calls']:,}" in one
        if "max_chance" in check.parameters and check.parameters["max_chance"] == 1:
            assert "5 %" not in check.material_when
            assert "100 %" in check.material_when
