"""Serial sequences: what is joined, where they are cut, what is left out."""

from __future__ import annotations

from apps.engine.sequences import (
    Boundary,
    Removal,
    agent_calls,
    outermost_calls,
    recorded_calls,
    serial_sequences,
    tool_sequences,
)
from apps.engine.trace import (
    FinishReason,
    OrderSource,
    Step,
    StepKind,
    StepStatus,
    Usage,
    UsageState,
)
from tests.engine.traces import call, tool, trace_of

ERROR = {"status": StepStatus.ERROR}


def steps_of(trace):
    return [sequence.steps for sequence in serial_sequences(trace)]


def only(trace):
    (sequence,) = serial_sequences(trace)
    return sequence


def test_calls_of_one_agent_in_a_row_are_one_sequence():
    sequence = only(trace_of(call(0, 112), call(1, 100), call(2, 86)))
    assert sequence.scope == "invocation 1, sequence 1"
    assert sequence.agent == "billing"
    assert (sequence.model, sequence.provider) == ("m", "p")
    assert sequence.outputs == (112, 100, 86)
    assert sequence.began is Boundary.INVOCATION_START
    assert sequence.ended is Boundary.INVOCATION_END
    assert sequence.order is OrderSource.TIME
    assert sequence.missing == 0


def test_tool_calls_between_the_calls_do_not_cut():
    trace = trace_of(call(0), tool(1, "look", invocation=0), call(2))
    assert steps_of(trace) == [(0, 2)]


def test_each_agent_invocation_has_its_own_sequences_even_of_one_name():
    trace = trace_of(
        call(0),
        call(1, step={"invocation": 1}),
        call(2),
        call(3, step={"invocation": 1}),
        agents=("billing", "billing"),
    )
    assert steps_of(trace) == [(0, 2), (1, 3)]


def test_calls_without_an_agent_share_the_scope_of_their_parent_or_the_trace():
    loose = {"invocation": None}
    trace = trace_of(
        call(0, step=loose),
        Step(seq=1, kind=StepKind.OTHER),
        call(2, step=loose | {"parent": 1}),
        call(3, step=loose | {"parent": 1}),
        call(4, step=loose),
        agents=(),
    )
    found = {one.scope: one.steps for one in serial_sequences(trace)}
    assert found == {"step 2, sequence 1": (2, 3), "trace, sequence 1": (0, 4)}
    assert {one.began for one in serial_sequences(trace)} == {
        Boundary.PARENT_START,
        Boundary.TRACE_START,
    }


def test_a_change_of_model_provider_or_conversation_cuts_and_is_named():
    trace = trace_of(
        call(0, conversation="a"),
        call(1, conversation="a"),
        call(2, conversation="b"),
        call(3, conversation="b", provider="q"),
        call(4, conversation="b", provider="q", model="n"),
    )
    found = serial_sequences(trace)
    assert [one.steps for one in found] == [(0, 1), (2,), (3,), (4,)]
    assert [one.ended for one in found] == [
        Boundary.CONVERSATION,
        Boundary.PROVIDER,
        Boundary.MODEL,
        Boundary.INVOCATION_END,
    ]
    assert [one.began for one in found[1:]] == [one.ended for one in found[:-1]]


def test_a_provider_that_one_call_does_not_name_is_no_change():
    trace = trace_of(call(0), call(1, provider=None), call(2))
    assert steps_of(trace) == [(0, 1, 2)]


def test_a_provider_is_compared_with_the_last_one_that_was_named():
    trace = trace_of(call(0), call(1, provider=None), call(2, provider="q"))
    assert steps_of(trace) == [(0, 1), (2,)]


def test_a_model_that_is_not_recorded_cannot_be_the_same_as_one_that_is():
    assert steps_of(trace_of(call(0), call(1, model=None))) == [(0,), (1,)]


def test_models_that_are_nowhere_recorded_do_not_cut():
    assert steps_of(trace_of(call(0, model=None), call(1, model=None))) == [(0, 1)]


def test_a_context_reset_begins_a_new_sequence():
    trace = trace_of(call(0), call(1), call(2, resets_context=True), call(3))
    found = serial_sequences(trace)
    assert [one.steps for one in found] == [(0, 1), (2, 3)]
    assert found[1].began is Boundary.CONTEXT_RESET


def test_missing_usage_is_no_boundary_and_is_counted():
    sequence = only(trace_of(call(0, 5), call(1, None), call(2, 3)))
    assert sequence.outputs == (5, None, 3)
    assert sequence.missing == 1


def test_an_estimate_of_the_vendor_counts_as_missing():
    guess = Usage(state=UsageState.VENDOR_ESTIMATE, output_total=7)
    assert only(trace_of(call(0, usage=guess))).outputs == (None,)


def test_placeholders_are_left_out_and_listed():
    trace = trace_of(call(0), call(1, 0, is_placeholder=True), call(2))
    sequence = only(trace)
    assert sequence.steps == (0, 2)
    assert sequence.placeholders_removed == (1,)
    assert sequence.removed == {"placeholders_removed": [1]}


def test_a_placeholder_of_another_model_is_a_model_boundary_but_no_call():
    made_up = call(1, is_placeholder=True, model="<synthetic>")
    found = serial_sequences(trace_of(call(0), made_up, call(2)))
    assert [one.steps for one in found] == [(0,), (2,)]
    assert found[0].ended is Boundary.MODEL


def test_lines_that_repeat_one_response_are_one_call_with_the_largest_usage():
    trace = trace_of(
        call(0, 1, response_id="r1"),
        call(1, 90, response_id="r1", finish=FinishReason.STOP),
        call(2, 40, response_id="r1"),
        call(3, 70, response_id="r2"),
    )
    sequence = only(trace)
    assert sequence.steps == (0, 3)
    assert sequence.outputs == (90, 70)
    assert sequence.finishes[0] is FinishReason.STOP
    assert sequence.duplicates_removed == (1, 2)


def test_the_same_response_id_in_two_invocations_is_two_calls():
    trace = trace_of(
        call(0, response_id="r"),
        call(1, response_id="r", step={"invocation": 1}),
        agents=("a", "b"),
    )
    assert steps_of(trace) == [(0,), (1,)]


def test_a_repeat_with_known_usage_wins_over_a_larger_estimate():
    guess = Usage(state=UsageState.VENDOR_ESTIMATE, output_total=500)
    trace = trace_of(call(0, usage=guess, response_id="r"), call(1, 9, response_id="r"))
    assert only(trace).outputs == (9,)


def test_failed_attempts_that_were_retried_are_grouped_with_the_call_that_worked():
    trace = trace_of(
        call(0), call(1, None, step=ERROR), call(2, None, step=ERROR), call(3), call(4)
    )
    sequence = only(trace)
    assert sequence.steps == (0, 3, 4)
    assert sequence.retries_removed == (1, 2)


def test_an_attempt_named_by_its_retry_is_left_out_even_without_an_error():
    sequence = only(trace_of(call(0), call(1), call(2, retry_of=1)))
    assert sequence.steps == (0, 2)
    assert sequence.retries_removed == (1,)


def test_a_failure_without_a_retry_ends_the_sequence_and_is_listed():
    found = serial_sequences(
        trace_of(call(0), call(1, None, step=ERROR), call(2, model="other"))
    )
    assert [one.steps for one in found] == [(0,), (2,)]
    assert found[0].ended is Boundary.FAILED_ATTEMPT
    assert found[0].failed_removed == (1,)
    assert found[1].began is Boundary.FAILED_ATTEMPT


def test_a_failure_at_the_end_is_named_as_the_end():
    sequence = only(trace_of(call(0), call(1, None, step=ERROR)))
    assert sequence.ended is Boundary.FAILED_ATTEMPT
    assert sequence.failed_removed == (1,)


def test_a_failure_at_the_start_does_not_split_what_follows():
    other = call(0, None, step=ERROR, model="other")
    found = serial_sequences(trace_of(other, call(1), call(2)))
    assert [one.steps for one in found] == [(1, 2)]
    assert found[0].began is Boundary.FAILED_ATTEMPT


def test_only_failures_make_no_sequence():
    assert steps_of(trace_of(call(0, None, step=ERROR))) == []


def test_a_call_that_starts_before_a_failed_one_ends_is_not_its_retry():
    trace = trace_of(call(0, None, end=5, step=ERROR), call(1, end=2))
    sequence = only(trace)
    assert (sequence.failed_removed, sequence.retries_removed) == ((0,), ())


def test_wrapper_spans_are_not_counted_with_their_leaves():
    trace = trace_of(
        call(0, 100, end=9),
        Step(seq=1, kind=StepKind.OTHER, parent=0, invocation=0),
        call(2, 100, step={"parent": 1}),
        call(3, 80),
    )
    sequence = only(trace)
    assert sequence.steps == (2, 3)
    assert sequence.wrappers_removed == (0,)


def test_a_wrapper_is_found_although_another_agent_was_called_inside_it_first():
    trace = trace_of(
        call(0, end=9),
        Step(seq=1, kind=StepKind.OTHER, parent=0),
        call(2, step={"parent": 1, "invocation": 1}),
        call(3, step={"parent": 1}),
        agents=("outer", "inner"),
    )
    assert steps_of(trace) == [(3,), (2,)]


def test_a_model_called_inside_a_tool_is_no_leaf_of_the_call_around_it():
    trace = trace_of(
        call(0),
        tool(1, "ask", parent=0, invocation=0),
        call(2, step={"parent": 1}),
    )
    assert steps_of(trace) == [(0, 2)]


def test_calls_that_overlap_are_never_joined_and_split_the_sequence():
    trace = trace_of(call(0), call(1, end=2.5), call(2, end=2.9), call(3), call(4))
    found = serial_sequences(trace)
    assert [one.steps for one in found] == [(0,), (1,), (2,), (3, 4)]
    assert [one.parallel for one in found] == [False, True, True, False]
    assert found[0].ended is Boundary.OVERLAP
    assert found[3].began is Boundary.OVERLAP


def test_short_calls_inside_a_long_one_are_all_parallel():
    long = call(0, start=0, end=100)
    trace = trace_of(long, *[call(seq) for seq in range(1, 5)])
    assert all(one.parallel for one in serial_sequences(trace))


def test_a_call_that_begins_when_the_last_one_ends_follows_it():
    trace = trace_of(call(0, start=0, end=1), call(1, start=1, end=2))
    assert steps_of(trace) == [(0, 1)]


def test_a_call_without_an_end_ends_the_sequence():
    trace = trace_of(call(0), call(1, step={"end_ns": None}), call(2))
    found = serial_sequences(trace)
    assert [one.steps for one in found] == [(0, 1), (2,)]
    assert found[0].ended is Boundary.NO_DURATION


def test_a_call_without_duration_ends_the_sequence():
    trace = trace_of(call(0), call(1, end=1), call(2))
    assert steps_of(trace) == [(0, 1), (2,)]


def test_in_the_order_of_the_file_durations_do_not_matter():
    bare = {"start_ns": None, "end_ns": None}
    trace = trace_of(
        *[call(seq, step=bare) for seq in range(3)], order=OrderSource.FILE
    )
    sequence = only(trace)
    assert sequence.steps == (0, 1, 2)
    assert sequence.order is OrderSource.FILE


def test_one_missing_start_puts_the_whole_invocation_into_file_order():
    late_first = call(0, start=50)
    trace = trace_of(late_first, call(1, step={"start_ns": None}), call(2))
    sequence = only(trace)
    assert sequence.steps == (0, 1, 2)
    assert sequence.order is OrderSource.FILE


def test_a_circle_of_parents_ends():
    trace = trace_of(
        Step(seq=0, kind=StepKind.OTHER, parent=1),
        Step(seq=1, kind=StepKind.OTHER, parent=0),
        call(2, step={"parent": 0}),
        call(3, step={"parent": 3}),
        call(4, step={"parent": 99}),
    )
    assert steps_of(trace) == [(2, 3, 4)]


def test_tool_calls_are_ordered_by_owner():
    trace = trace_of(
        tool(0, "b", invocation=0, start_ns=9),
        tool(1, "a", invocation=0, start_ns=5),
        tool(2, "c"),
    )
    found = [(one.scope, one.names, one.steps) for one in tool_sequences(trace)]
    assert found == [("invocation 1", ("a", "b"), (1, 0)), ("trace", ("c",), (2,))]


def test_a_trace_of_placeholders_only_has_no_completed_call_and_does_not_fail():
    trace = trace_of(call(0, is_placeholder=True))
    (owned,) = recorded_calls(trace).values()
    assert [entry.removed for entry in owned] == [Removal.PLACEHOLDER]
    assert serial_sequences(trace) == ()


def test_calls_of_an_agent_are_in_one_order_whatever_their_parents():
    steps = [
        call(seq, start=start, step={"invocation": None, "parent": 90 + seq % 2})
        for seq, start in enumerate((3, 1, 2))
    ]
    (owner,) = agent_calls(trace_of(*steps, agents=()))
    assert (owner.scope, owner.invocation) == ("trace", None)
    assert [entry.step.seq for entry in owner.calls] == [1, 2, 0]
    assert owner.completed == list(owner.calls)


def test_a_tool_call_inside_one_of_the_same_name_is_the_same_call():
    steps = [tool(0, "a"), tool(1, "a", parent=0), tool(2, "b", parent=0), tool(3, "a")]
    (tools,) = tool_sequences(trace_of(*steps, agents=()))
    assert tools.names == ("a", "a", "b", "a")
    assert [step.seq for step in outermost_calls(tools)] == [0, 2, 3]


def test_a_repeated_line_that_ends_before_1970_keeps_its_own_end():
    ends = {"invocation": 0, "start_ns": -9, "end_ns": None}
    one = call(0, step=ends, response_id="r")
    again = call(1, step=ends | {"end_ns": -3}, response_id="r")
    [calls] = recorded_calls(trace_of(one, again)).values()
    assert [entry.end_ns for entry in calls if entry.removed is None] == [-3]
