"""Traits: each one from the smallest trace that has it, and in any order of the steps."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings

from apps.engine.sequences import recorded_calls
from apps.engine.trace import (
    AgentInvocation,
    FinishReason,
    OrderSource,
    StepStatus,
    Trace,
    Via,
)
from apps.engine.traits import TRAIT_WORDS, Trait, traits_of
from tests.engine.random_traces import shuffled, traces
from tests.engine.traces import call, tool, tools_trace, trace_of

STOP, LENGTH = FinishReason.STOP, FinishReason.LENGTH
ERROR = {"status": StepStatus.ERROR}


def seen(*steps, **fields):
    return set(traits_of(trace_of(*steps, **fields)))


def test_a_plain_trace_has_its_usage_and_no_tools():
    assert seen(call(0)) == {Trait.USAGE_COMPLETE, Trait.NO_TOOL_CALLS}


def test_an_empty_trace_says_what_is_not_recorded():
    assert seen() == {Trait.NO_MODEL_CALLS, Trait.NO_TOOL_CALLS}


def test_a_trace_converged_if_its_last_model_call_stopped_by_itself():
    assert Trait.CONVERGED in seen(call(0, finish=LENGTH), call(1, finish=STOP))
    assert Trait.CONVERGED not in seen(call(0, finish=STOP), call(1, finish=LENGTH))
    assert Trait.CONVERGED not in seen(call(0, finish=STOP), call(1))


def test_the_last_call_of_the_root_counts_and_not_that_of_a_subagent():
    agents = (
        AgentInvocation(number=0, agent="boss"),
        AgentInvocation(number=1, agent="helper", parent=0, via=Via.SUBAGENT),
    )
    late = call(1, finish=LENGTH, step={"invocation": 1})
    trace = Trace(name="t", steps=(call(0, finish=STOP), late), invocations=agents)
    assert Trait.CONVERGED in traits_of(trace)
    trace = Trace(name="t", steps=(late,), invocations=agents)
    assert Trait.CONVERGED not in traits_of(trace)


def test_the_order_is_that_of_time_where_there_is_one():
    early = call(1, start=0, end=0.5, finish=LENGTH)
    late = call(0, start=5, finish=STOP)
    assert Trait.CONVERGED in seen(late, early)
    steps = {"start_ns": None, "end_ns": None}
    untimed = seen(call(0, finish=STOP, step=steps), call(1, finish=LENGTH, step=steps))
    assert Trait.CONVERGED not in untimed


@pytest.mark.parametrize(
    ("trait", "steps"),
    [
        (Trait.CAPPED, [call(0, finish=LENGTH), call(1)]),
        (Trait.CONTENT_FILTERED, [call(0, finish=FinishReason.CONTENT_FILTER)]),
        (Trait.CONTEXT_RESET, [call(0), call(1, resets_context=True)]),
        (Trait.RETRIED, [call(0, step=ERROR), call(1)]),
        (Trait.RETRIED, [call(0), call(1, retry_of=0)]),
        (Trait.FAILED_CALLS, [call(0), call(1, step=ERROR)]),
        (Trait.MODEL_SWITCHED, [call(0, model="a"), call(1, model="b")]),
        (Trait.PARALLEL_CALLS, [call(0, start=0, end=3), call(1, start=1, end=2)]),
        (Trait.USAGE_MISSING, [call(0), call(1, None)]),
        (Trait.TOOL_ERRORS, [call(0), tool(1, "x", **ERROR)]),
        (Trait.UNFINISHED, [call(0), tool(1, "x", status=StepStatus.UNFINISHED)]),
    ],
)
def test_each_trait_is_read_from_what_is_recorded(trait, steps):
    assert trait in seen(*steps)
    assert trait not in seen(call(0), tool(1, "x"), call(2))


def test_calls_that_were_left_out_have_no_traits_of_their_own():
    retried = call(0, None, finish=LENGTH, model="other", step=ERROR)
    found = seen(retried, call(1, retry_of=0))
    assert found == {Trait.RETRIED, Trait.USAGE_COMPLETE, Trait.NO_TOOL_CALLS}


def test_a_trace_whose_calls_all_failed_has_no_model_call():
    found = seen(call(0, step=ERROR))
    assert {Trait.FAILED_CALLS, Trait.NO_MODEL_CALLS} <= found
    assert not {Trait.USAGE_COMPLETE, Trait.USAGE_MISSING} & found


def test_two_agents_with_a_model_each_are_no_switch():
    steps = [call(0, model="a"), call(1, model="b", step={"invocation": 1})]
    found = seen(*steps, agents=("boss", "helper"))
    assert Trait.MULTI_AGENT in found
    assert Trait.MODEL_SWITCHED not in found
    assert Trait.MULTI_AGENT not in seen(call(0), agents=("boss", "boss"))


def test_the_order_of_a_file_is_a_trait():
    assert Trait.FILE_ORDER in traits_of(tools_trace("a"))
    assert Trait.FILE_ORDER not in seen(call(0), order=OrderSource.TIME)


@given(traces())
@settings(max_examples=100, deadline=None)
def test_traits_are_sorted_known_and_the_same_for_steps_in_any_order(trace):
    found = traits_of(trace)
    assert list(found) == sorted(set(found))
    assert set(found) <= {str(trait) for trait in Trait}
    assert all(type(name) is str for name in found)
    assert traits_of(shuffled(trace, random.Random(1))) == found


def test_every_trait_has_words_of_its_own():
    assert set(TRAIT_WORDS) == set(Trait)
    assert len(set(TRAIT_WORDS.values())) == len(Trait)


def test_a_trace_of_19_steps_takes_some_microseconds():
    steps = [call(2 * n) for n in range(10)]
    steps += [tool(2 * n + 1, "a", invocation=0) for n in range(9)]
    every = [trace_of(*steps) for _ in range(1_000)]
    for trace in every:
        recorded_calls(trace)
    began = time.process_time()
    for trace in every:
        traits_of(trace)
    # 13 microseconds on a shared core; the test leaves room.
    assert (time.process_time() - began) / 1_000 < 60e-6
