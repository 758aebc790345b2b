"""Serial sequences of any traces, and of very large ones."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.sequences import serial_sequences, tool_sequences
from apps.engine.trace import Step, StepKind, StepStatus
from tests.engine.traces import call, trace_of, used

events = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.integers(0, 4),
        st.sampled_from([None, 0, 5, 9]),
        st.sampled_from(["m", "m", "m", "n", None]),
        st.booleans(),
        st.integers(0, 2),
    ),
    max_size=14,
)


def trace_from(rows):
    steps = [
        call(
            seq,
            start=start,
            end=start + length,
            model=model,
            usage=used(output),
            step={
                "invocation": owner or None,
                "status": StepStatus.ERROR if failed else StepStatus.OK,
            },
        )
        for seq, (start, length, output, model, failed, owner) in enumerate(rows)
    ]
    return trace_of(*steps, agents=("a", "b", "c"))


@given(events, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_the_order_in_which_the_steps_are_handed_over_changes_nothing(rows, shuffler):
    trace = trace_from(rows)
    steps = list(trace.steps)
    shuffler.shuffle(steps)
    shuffled = msgspec.structs.replace(trace, steps=tuple(steps))
    assert serial_sequences(shuffled) == serial_sequences(trace)
    assert tool_sequences(shuffled) == tool_sequences(trace)


@given(events)
@settings(max_examples=150, deadline=None)
def test_no_two_calls_of_a_sequence_overlap_and_every_call_is_accounted_for(rows):
    trace = trace_from(rows)
    by_seq = {step.seq: step for step in trace.steps}
    seen = []
    for sequence in serial_sequences(trace):
        members = [by_seq[seq] for seq in sequence.steps]
        for one, following in pairwise(members):
            assert one.end_ns <= following.start_ns
            assert one.call.model == following.call.model
            assert one.invocation == following.invocation
        seen += [*sequence.steps, *sequence.retries_removed, *sequence.failed_removed]
    assert len(seen) == len(set(seen))
    succeeded = {s.seq for s in trace.steps if s.status is StepStatus.OK}
    assert succeeded <= set(seen)


def quick(trace):
    started = time.process_time()
    found = serial_sequences(trace)
    return found, time.process_time() - started


def test_25_000_overlapping_calls_are_read_in_linear_time():
    steps = [call(seq, start=seq, end=30_000) for seq in range(25_000)]
    random.Random(1).shuffle(steps)
    found, took = quick(trace_of(*steps))
    assert len(found) == 25_000
    assert took < 4


def test_25_000_nested_parents_are_climbed_in_linear_time():
    nested = [
        Step(seq=seq, kind=StepKind.OTHER, parent=seq - 1 if seq else None)
        for seq in range(25_000)
    ]
    leaves = [
        call(25_000 + n, step={"parent": 24_999 - n}) for n in range(0, 25_000, 5)
    ]
    found, took = quick(trace_of(*nested, *leaves))
    assert len(found) == 1
    assert took < 4


def test_25_000_model_calls_inside_one_another_are_wrappers_of_the_last():
    steps = [
        call(seq, step={"parent": seq - 1 if seq else None}) for seq in range(25_000)
    ]
    found, took = quick(trace_of(*steps))
    assert [one.steps for one in found] == [(24_999,)]
    assert took < 4
