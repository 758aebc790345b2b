"""What holds for any recorded value: no exception, one value for one JSON value."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.engine.bodies import canonical
from apps.engine.bodies.canonical import opened
from apps.engine.extraction import DecisionNormaliser, decoded_decision, extracted
from apps.engine.extraction.normalisers import Normalised
from apps.engine.trace import StepStatus
from tests.engine.extraction.doings import bare, gave

# Drawing nested values takes longer than usual on a machine with other work.
unhurried = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

NAMES = st.sampled_from(
    ["role", "type", "content", "text", "messages", "output", "answer", "decision",
     "parts", "choices", "message", "raw", "pydantic", "json_dict", "object"]
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["assistant", "user", "```json\n{", "[redacted: ", "03/04/2026", "1,000", "{\"a\":TRUE}",
         "yes", "not yes", "response", "\ud800", "<think>"]
    ),
)  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), TEXTS, st.just(10**400)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(NAMES, st.text(max_size=5)), inner, max_size=4),
    ),
    max_leaves=12,
)
EVERY = ["white_space", "date", "number", "id", "case"]
SPECS = [
    {"normalisers": EVERY},
    {"kind": "jmespath", "expression": "decision", "normalisers": EVERY},
    {"kind": "jmespath", "expression": "*[].[type, max(@)]"},
    {"kind": "jmespath", "expression": "a.b || sum(values(@))", "source": "arguments"},
    {"kind": "regex", "expression": r"(\w*)$"},
    {"kind": "regex", "expression": ".*", "source": "result"},
    {"kind": "last_tool_call", "arguments": ["decision", "text"]},
    {"kind": "label", "labels": ["yes", "no", "a"]},
    {"kind": "whole_output", "prose": True, "normalisers": EVERY},
]


@pytest.mark.parametrize("spec", SPECS)
@unhurried
@given(value=VALUES, fails=st.booleans())
def test_no_recorded_value_makes_it_raise(spec, value, fails):
    status = StepStatus.ERROR if fails else StepStatus.OK
    decoded = decoded_decision(spec)
    for conduct in (bare(value, status), gave(value, ("pay", value), status=status)):
        found = extracted(conduct, decoded)
        assert (found.value != "") == (found.state == "decided")
        assert len(found.shown) <= 300
        assert found.shown.isprintable()
        assert found.how


@pytest.mark.parametrize("spec", SPECS)
def test_values_nested_without_end_do_not_make_it_raise(spec):
    deep = "x"
    for _ in range(5_000):
        deep = {"content": [deep]}
    assert extracted(bare(deep), decoded_decision(spec)).how


@unhurried
@given(value=VALUES, declared=st.sets(st.sampled_from(list(DecisionNormaliser))))
def test_normalising_twice_is_normalising_once(value, declared):
    order = tuple([one for one in DecisionNormaliser if one in declared])
    once = Normalised(order).value(value)
    assert canonical(Normalised(order).value(once)) == canonical(once)


@unhurried
@given(value=VALUES)
def test_equal_json_gives_equal_decisions(value):
    spec = decoded_decision({"kind": "whole_output", "normalisers": [], "prose": True})
    try:
        text = json.dumps({"x": value}, sort_keys=True, allow_nan=False)
        again = json.loads(text)
    except ValueError:
        return
    found = extracted(bare({"x": value}), spec)
    assert found.value == extracted(bare(again), spec).value
    # Texts with half a surrogate pair or numbers beyond 64 bits are not opened.
    if opened(text) == again:
        assert found.value == extracted(bare(text), spec).value
