"""Whatever a reader could make: no error, one answer for any order, JSON, and bounds."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.contracts.mentions import Normaliser
from apps.engine.memory import Place, Recall, State, detected_reuse, memory_of
from apps.engine.trace import Body, StepKind, Trace
from tests.engine.memory.conversations import PROBE, TOLD, Talk, fact
from tests.engine.random_traces import shuffled, traces
from tests.soak import times

TEXTS = st.sampled_from(
    [
        None,
        "",
        TOLD,
        PROBE,
        "It is 84920.",
        "It is not 84920.",
        "My order number is 84920.",
        "Could you provide your order number?",
        {"messages": [{"role": "user", "content": TOLD}]},
        {"order_id": "84290", "\ud800": ["84920", "\ud800 84920"]},
        [{"role": "system", "content": "x"}, {"role": "user", "content": PROBE}],
    ]
)
NAMES = st.sampled_from(
    ["memory", "save_memory", "summary", "get_notes", None, "\ud800"]
)
KINDS = st.sampled_from(list(StepKind))


@st.composite
def spoken(draw: st.DrawFn) -> Trace:
    """Any trace, many of whose steps tell, need, keep or drop a number."""
    trace = draw(traces())
    steps = []
    for step in trace.steps:
        body = Body(input=draw(TEXTS), output=draw(TEXTS))
        kind = step.kind if step.call is not None else draw(KINDS)
        steps.append(
            msgspec.structs.replace(step, kind=kind, name=draw(NAMES), body=body)
        )
    agents = tuple(
        [msgspec.structs.replace(each, agent=draw(NAMES)) for each in trace.invocations]
    )
    return msgspec.structs.replace(trace, steps=tuple(steps), invocations=agents)


@settings(max_examples=times(40, soak=1_000), deadline=None)
@given(spoken(), st.sampled_from(list(Normaliser)), st.randoms(use_true_random=False))
def test_it_answers_the_same_in_any_order_and_never_raises(trace, how, source):
    facts = [("a", fact(how=how)), ("b", fact("84921", how=how))]
    found = (memory_of(trace, facts), detected_reuse(trace))
    other = shuffled(trace, source)
    assert (memory_of(other, facts), detected_reuse(other)) == found
    stored = msgspec.json.encode(found)
    assert msgspec.json.decode(stored, type=tuple[tuple[Recall, ...], ...]) == found
    seqs = {step.seq for step in trace.steps}
    for recall in (*found[0], *found[1]):
        assert recall.is_failure == (recall.place is not None)
        assert recall.is_failure == bool(recall.why)
        assert {*recall.place_steps} <= seqs
        assert recall.steps_between is None or recall.steps_between >= 0


@settings(max_examples=times(40, soak=1_000), deadline=None)
@given(spoken())
def test_without_bodies_every_fact_is_undecided(trace):
    bare = tuple([msgspec.structs.replace(s, body=None) for s in trace.steps])
    trace = msgspec.structs.replace(trace, steps=bare)
    assert {r.state for r in memory_of(trace, [("a", fact())])} == {State.UNDECIDED}
    assert detected_reuse(trace) == ()


def long_talk(turns: int) -> Trace:
    talk = Talk("desk", "memory").user(TOLD, by=0)
    for number in range(turns):
        talk.user(f"And order number {number + 10_017}?", by=0)
        talk.says("Let me see.", sent=[{"role": "user", "content": "And?"}], by=0)
        talk.uses("get_order", f"paid {number}", by=0, order_id=str(number + 10_001))
        talk.uses("save_note", "ok", by=1, text=f"order {number}")
    talk.user(PROBE, by=0).says("I do not know.", sent=["What?"], by=0)
    return talk.trace()


@pytest.mark.parametrize("ask", [memory_of, detected_reuse])
def test_a_trace_of_25000_steps_is_read_in_time(ask):
    trace = long_talk(6_250)
    began = time.process_time()
    found = ask(trace, [("a", fact())]) if ask is memory_of else ask(trace)
    assert time.process_time() - began < 5
    assert len(found) <= 50
    if ask is memory_of:
        assert found[0].place is Place.CANNOT_TELL
    else:
        assert found[0].turns_between == 16


def test_a_failing_fact_that_is_needed_often_stays_bounded():
    talk = Talk("desk").user(TOLD, by=0)
    for _ in range(30):
        talk.user(PROBE, by=0)
        talk.says("I do not know.", sent=["x y " * 60_000], by=0)
    began = time.process_time()
    found = memory_of(talk.trace(), [("a", fact())])
    assert time.process_time() - began < 5
    assert len(found) == 20
