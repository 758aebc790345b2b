"""Random and mutated files: only items and `UnreadableTrace` ever come out."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from apps.engine.formats import FORMATS
from apps.engine.formats.evalsite_fields import EXAMPLE
from apps.engine.trace import Trace
from tests.formats.changed_files import places, read_safely, replaced
from tests.formats.otlp_files import agent, as_protobuf, call, document, span
from tests.formats.reading import items_of, messages

SLUGS = st.sampled_from([None, *(one.slug for one in FORMATS)])
TAU = [{"task_id": 1, "trial": 0, "reward": 1.0, "info": {"task": {}},
        "traj": messages("a", "b")}]  # fmt: skip
SPANS = [
    agent(1, None, "root"),
    call(2, 1, attributes={"gen_ai.completion.0.tool_calls.0.id": "c1"}),
    span(3, 1, attributes={"gen_ai.tool.name": "t", "gen_ai.tool.call.id": "c1"}),
    call(4, 9, output=-1, lasts=None),
]
VALUES = [messages("a", "b"), {"messages": messages("a", "b")}, TAU, document(*SPANS),
          json.loads(EXAMPLE)]  # fmt: skip
VALID = [json.dumps(value).encode() for value in VALUES] + [as_protobuf(*SPANS)]
QUICK = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


# A length field may claim gigabytes that are not there.
FALSE_LENGTH = b"\n\x80\x80\x80\x80\x80\x20"


@QUICK
@example(b"\xaa\x00\x80\x80\x80\x80_", "otlp-protobuf")
@example(FALSE_LENGTH, "otlp-protobuf")
@given(st.binary(max_size=400), SLUGS)
def test_random_bytes_give_items_or_a_sentence(data, slug):
    read_safely(data, slug)


@QUICK
@given(st.sampled_from(VALID), st.data(), SLUGS)
def test_mutated_files_give_items_or_a_sentence(valid, data, slug):
    mutated = bytearray(valid)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(mutated)))
        cut = data.draw(st.integers(0, 30))
        mutated[at : at + cut] = data.draw(st.binary(max_size=8))
    read_safely(bytes(mutated), slug)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


@QUICK
@given(st.sampled_from(VALUES), st.data(), JSON)
def test_any_value_of_a_file_may_be_anything(value, data, new):
    path = data.draw(st.sampled_from(list(places(value))))
    changed = json.dumps(replaced(value, path, new)).encode()
    slug = data.draw(SLUGS)
    read_safely(changed, slug)


@QUICK
@given(st.permutations(SPANS), st.data())
def test_spans_in_any_order_and_doubled_give_the_same_trace(spans, data):
    whole = [span(5, None, at=0), *spans[:3]]
    again = data.draw(st.permutations([*whole, whole[0], whole[-1]]))
    first = [
        i
        for i in items_of(json.dumps(document(*whole)).encode())
        if isinstance(i, Trace)
    ]
    second = [
        i
        for i in items_of(json.dumps(document(*again)).encode())
        if isinstance(i, Trace)
    ]
    assert first[0].steps == second[0].steps
    assert first[0].invocations == second[0].invocations
