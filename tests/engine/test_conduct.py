"""What each agent did in a trace: what it was given, what it did, what it gave back."""

from __future__ import annotations

import random
import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.conduct import conducts_of, temperature_of, whole_conduct
from apps.engine.trace import (
    AgentInvocation,
    Body,
    FinishReason,
    OrderSource,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
    Via,
)
from tests.engine.random_traces import shuffled, traces
from tests.engine.traces import call, tool, trace_of


def asked(*texts: str) -> list[dict[str, str]]:
    """The messages of a request: a system prompt and what a user said."""
    users = [{"role": "user", "content": text} for text in texts]
    return [{"role": "system", "content": "Be brief."}, *users]


def model(seq: int, says=None, *, given=None, at: int | None = 0, **facts) -> Step:
    """A model call of invocation `at`; `attributes`, `status`, `parent` are the step's."""
    attributes = facts.pop("attributes", None)
    step = {
        name: facts.pop(name) for name in ("status", "parent", "kind") if name in facts
    }
    body = Body(input=given, output=says, attributes=attributes)
    return call(seq, step={"invocation": at, "body": body} | step, **facts)


def used(seq: int, name: str, arguments=None, *, at: int | None = 0, **step) -> Step:
    by = step.pop("requested_by", None)
    made = tool(seq, name, invocation=at, body=Body(input=arguments), **step)
    return msgspec.structs.replace(made, call=ToolCall(name, requested_by=by))


def other(seq: int, kind: StepKind, *, at: int | None = 0, **step) -> Step:
    body = Body(input=step.pop("given", None), output=step.pop("says", None))
    return Step(seq=seq, kind=kind, invocation=at, body=body, **step)


def only(trace: Trace):
    """The one invocation of the one agent of a trace."""
    (conduct,) = conducts_of(trace)
    (one,) = conduct.invocations
    return one


def test_an_agent_is_given_what_the_user_said_last_in_its_first_request():
    trace = trace_of(
        model(0, "A-100?", given=asked("Hello", "I was charged twice")),
        model(1, "Refunded.", given=asked("Hello", "I was charged twice", "A-100")),
    )
    assert only(trace).input == "I was charged twice"
    assert only(trace).output == "Refunded."


def test_what_its_own_span_records_counts_before_its_model_calls():
    trace = trace_of(
        other(0, StepKind.AGENT, given={"amount": 90}, says={"decision": "refund"}),
        model(1, "thinking aloud", given=asked("Refund it?")),
    )
    assert only(trace).input == {"amount": 90}
    assert only(trace).output == {"decision": "refund"}


def test_an_empty_input_of_its_span_gives_way_to_what_its_model_was_asked():
    trace = trace_of(
        other(0, StepKind.AGENT, given=[], says="56"),
        model(1, "56", given=asked("What is 7 times 8?")),
    )
    assert only(trace).input == "What is 7 times 8?"


def test_a_system_prompt_alone_is_not_what_an_agent_was_given():
    trace = trace_of(
        other(0, StepKind.AGENT, given=asked(), says="56"),
        model(1, "56", given=asked("What is 7 times 8?")),
    )
    assert only(trace).input == "What is 7 times 8?"
    assert only(trace_of(other(0, StepKind.AGENT, given=asked(), says="56"))).input


def test_an_empty_input_stays_where_nothing_else_is_recorded():
    trace = trace_of(other(0, StepKind.AGENT, given={}, says="done"))
    assert only(trace).input == {}


def test_what_is_not_recorded_is_none_and_never_an_empty_text():
    one = only(trace_of(model(0), used(1, "get_order")))
    assert (one.input, one.output) == (None, None)


def test_an_input_that_is_json_in_a_text_is_opened():
    one = only(trace_of(model(0, "x", given=asked('{"amount": 90}'))))
    assert one.input == {"amount": 90}


def test_a_handoff_is_the_input_of_the_agent_that_records_none():
    trace = trace_of(
        other(0, StepKind.USER_MESSAGE, at=None, says="I was charged twice"),
        model(1, "I pass it on"),
        other(2, StepKind.HANDOFF, given={"to_agent": "billing", "order": 7}),
        model(3, "Refunded.", at=1),
        agents=("triage", "billing"),
    )
    triage, billing = conducts_of(trace)
    assert triage.invocations[0].input == "I was charged twice"
    assert billing.invocations[0].input == {"to_agent": "billing", "order": 7}


def test_an_agent_used_as_a_tool_is_given_the_arguments_of_that_call():
    trace = trace_of(
        other(0, StepKind.USER_MESSAGE, at=0, says="I was charged twice"),
        used(1, "ask_billing", {"question": "A-100"}, at=0),
        model(2, "Two charges.", at=1, parent=1),
        agents=("triage", "billing"),
    )
    assert conducts_of(trace)[1].invocations[0].input == {"question": "A-100"}
    assert conducts_of(trace)[1].invocations[0].output == "Two charges."
    assert [one.name for one in conducts_of(trace)[0].calls] == ["ask_billing"]


def test_steps_of_a_sub_agent_are_its_own_and_not_those_of_the_agent_above():
    trace = trace_of(
        model(0, "ask"),
        model(1, "answer", at=1),
        used(2, "get_order", at=1),
        model(3, "done"),
        agents=("triage", "billing"),
    )
    triage, billing = conducts_of(trace)
    assert [step.seq for step in triage.steps] == [0, 3]
    assert [step.seq for step in billing.steps] == [1, 2]
    assert triage.invocations[0].output == "done"
    assert [one.name for one in whole_conduct(trace).calls] == ["get_order"]


def test_agents_come_in_the_order_of_their_first_acts_with_all_their_invocations():
    invocations = (
        AgentInvocation(0, "b"),
        AgentInvocation(1, "a", parent=0, via=Via.TOOL),
        AgentInvocation(2, "b", parent=1, via=Via.TOOL),
    )
    steps = (model(0, "x", at=1), model(1, "y", at=0), model(2, "z", at=2))
    found = conducts_of(Trace(name="t", steps=steps, invocations=invocations))
    assert [one.agent for one in found] == ["a", "b"]
    assert [one.number for one in found[1].invocations] == [0, 2]


def test_agents_in_parallel_keep_their_own_steps_in_their_own_order():
    trace = trace_of(
        model(0, "a1", at=0, start=0, end=5),
        model(1, "b1", at=1, start=1, end=4),
        model(2, "a2", at=0, start=5, end=6),
        model(3, "b2", at=1, start=4, end=7),
        agents=("a", "b"),
        order=OrderSource.TIME,
    )
    a, b = conducts_of(trace)
    assert [step.seq for step in a.steps] == [0, 2]
    assert [step.seq for step in b.steps] == [1, 3]
    assert (a.invocations[0].output, b.invocations[0].output) == ("a2", "b2")


def test_a_wrapper_span_without_acts_or_a_name_is_no_agent():
    invocations = (AgentInvocation(0, None), AgentInvocation(1, "billing", parent=0))
    trace = Trace(
        name="t",
        steps=(other(0, StepKind.AGENT, says="All done"), model(1, "x", at=1)),
        invocations=invocations,
    )
    assert [one.agent for one in conducts_of(trace)] == ["billing"]


def test_a_named_agent_is_there_by_its_output_alone():
    trace = trace_of(other(0, StepKind.AGENT, says="All done"))
    assert only(trace).output == "All done"


def test_a_model_call_around_another_one_neither_answers_nor_cools():
    cool = {"temperature": 0}
    trace = trace_of(
        model(0, "inner", parent=1, attributes=cool, start=1, end=2),
        model(1, "outer", start=0, end=9),
        model(2, "last", parent=3, attributes=cool, start=3, end=4),
        model(3, "outer too", start=3, end=5),
    )
    assert only(trace).output == "last"
    assert only(trace).not_asked == {1, 3}
    assert temperature_of(conducts_of(trace)[0]) == 0


def test_a_placeholder_is_no_act():
    trace = trace_of(model(0, "No response requested.", is_placeholder=True))
    assert conducts_of(trace) == ()


def test_what_nobody_owns_is_the_conduct_of_an_agent_without_a_name():
    trace = trace_of(model(0, "x", at=None), used(1, "bash", at=7), model(2, "y", at=0))
    nobody, billing = conducts_of(trace)
    assert (nobody.agent, billing.agent) == ("", "billing")
    assert [step.seq for step in nobody.steps] == [0, 1]
    assert [one.name for one in nobody.calls] == ["bash"]


def test_words_on_the_way_to_an_empty_answer_are_not_its_answer():
    trace = trace_of(
        model(0, "Let me try a different approach", finish=FinishReason.TOOL_CALLS),
        used(1, "write_file", {"path": "out"}, requested_by=0),
        model(2, "", finish=FinishReason.STOP),
    )
    assert only(trace).output == ""
    assert whole_conduct(trace).invocations[0].output == ""


def test_an_answer_before_the_call_that_ends_the_task_is_the_answer():
    trace = trace_of(
        model(0, "The total is 31."),
        model(1, None, finish=FinishReason.TOOL_CALLS),
        used(2, "done", {}, requested_by=1),
    )
    assert only(trace).output == "The total is 31."


@pytest.mark.parametrize(
    "asks",
    [
        {"tool_call_ids": ("c1",)},
        {"finish": FinishReason.TOOL_CALLS},
        {"status": StepStatus.ERROR},
    ],
)
def test_a_last_call_that_asks_for_tools_or_failed_is_no_empty_answer(asks):
    trace = trace_of(model(0, "31"), model(1, "", **asks))
    assert only(trace).output == "31"


def test_an_answer_that_was_not_kept_is_not_replaced_by_an_earlier_one():
    assert only(trace_of(model(0, "31"), model(1, None))).output is None


def test_lines_of_one_response_answer_together():
    trace = trace_of(
        model(0, "31", response_id="r1"),
        model(1, None, response_id="r1"),
        model(2, "", response_id="r1"),
        order=OrderSource.FILE,
    )
    assert only(trace).output == "31"


def test_a_retried_attempt_answers_nothing_once_a_later_one_does():
    trace = trace_of(
        model(0, "Error: overloaded", status=StepStatus.ERROR),
        model(1, "31", retry_of=0),
    )
    one = only(trace)
    assert (one.output, one.status, one.has_failed) == ("31", StepStatus.UNSET, False)


def test_an_answer_of_false_or_zero_is_an_answer():
    assert only(trace_of(model(0, says=False))).output is False
    assert only(trace_of(model(0, 0))).output == 0


def test_how_an_invocation_ended_is_what_is_recorded_of_it_first():
    failed = AgentInvocation(0, "billing", status=StepStatus.ERROR)
    steps = (model(0, "x", status=StepStatus.OK),)
    assert only(Trace(name="t", steps=steps, invocations=(failed,))).has_failed


def test_a_failed_last_model_call_fails_the_run_and_a_failed_tool_does_not():
    broke = trace_of(model(0, "x"), model(1, status=StepStatus.ERROR))
    assert only(broke).has_failed
    assert whole_conduct(broke).invocations[0].has_failed
    went_on = trace_of(model(0, "x"), used(1, "bash", status=StepStatus.ERROR))
    assert not only(went_on).has_failed


def test_a_failed_sub_agent_does_not_fail_the_whole_run():
    invocations = (
        AgentInvocation(0, "triage", status=StepStatus.OK),
        AgentInvocation(1, "billing", parent=0, status=StepStatus.ERROR),
    )
    steps = (model(0, "x", at=1), model(1, "recovered"))
    trace = Trace(name="t", steps=steps, invocations=invocations)
    assert whole_conduct(trace).invocations[0].status is StepStatus.OK
    assert conducts_of(trace)[0].invocations[0].has_failed


def test_a_temperature_is_known_only_where_all_calls_record_the_same():
    def heated(*attributes):
        steps = [model(at, "x", attributes=one) for at, one in enumerate(attributes)]
        return temperature_of(whole_conduct(trace_of(*steps)))

    assert heated({"temperature": 0}, {"gen_ai.request.temperature": 0.0}) == 0
    assert heated({"params": '{"temperature": 0.7}'}) == 0.7
    assert heated({"temperature": 0}, {"temperature": 0.7}) is None
    assert heated({"temperature": 0}, None) is None
    assert heated({"temperature": True}) is None


def test_the_whole_run_is_asked_by_the_user_and_answers_with_its_last_words():
    trace = trace_of(
        other(0, StepKind.USER_MESSAGE, at=None, says="I was charged twice"),
        model(1, "triage says so", at=0),
        model(2, "Refunded.", at=1),
        agents=("triage", "billing"),
    )
    (whole,) = whole_conduct(trace).invocations
    assert (whole.agent, whole.number) == ("", None)
    assert (whole.input, whole.output) == ("I was charged twice", "Refunded.")


def test_the_whole_run_answers_with_the_last_output_of_an_agent_without_model_calls():
    trace = trace_of(
        other(0, StepKind.AGENT, says="first"), other(1, StepKind.AGENT, says="last")
    )
    assert whole_conduct(trace).invocations[0].output == "last"


def test_an_empty_trace_has_no_agents_and_a_whole_without_anything():
    trace = Trace(name="t", steps=(), invocations=())
    assert conducts_of(trace) == ()
    (whole,) = whole_conduct(trace).invocations
    assert (whole.input, whole.output, whole.steps) == (None, None, ())


def test_calls_whose_parents_go_round_in_a_circle_break_nothing():
    trace = trace_of(
        used(0, "get_order", at=None, parent=1), used(1, "get_order", at=None, parent=0)
    )
    (conduct,) = conducts_of(trace)
    assert len(conduct.steps) == 2
    assert whole_conduct(trace).calls == conduct.calls


@given(trace=traces(), source=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_any_trace_in_any_order_of_steps_has_the_same_conducts(trace, source):
    found = conducts_of(trace)
    assert conducts_of(shuffled(trace, source)) == found
    assert whole_conduct(shuffled(trace, source)) == whole_conduct(trace)
    numbers = [step.seq for conduct in found for step in conduct.steps]
    assert len(numbers) == len(set(numbers))
    for conduct in found:
        firsts = [one.steps[0].seq for one in conduct.invocations]
        assert firsts == sorted(firsts)
        assert {call.step for call in conduct.calls} <= {s.seq for s in conduct.steps}
    called = sum(len(conduct.calls) for conduct in found)
    assert called == len(whole_conduct(trace).calls)


def _seconds(steps: int) -> float:
    """CPU seconds for a trace in which every fifth step begins an invocation."""
    numbers = range(steps)
    made = []
    for seq in numbers:
        at = seq // 5
        if seq % 5 == 4:
            made.append(used(seq, "get_order", {"id": seq}, at=at))
        else:
            made.append(model(seq, None, at=at, start=seq, end=seq + 0.5))
    source = random.Random(1)
    source.shuffle(made)
    trace = Trace(
        name="t",
        steps=tuple(made),
        invocations=tuple(
            [AgentInvocation(at, f"agent {at % 50}") for at in range(steps // 5)]
        ),
    )
    began = time.process_time()
    assert len(conducts_of(trace)) == 50
    whole_conduct(trace)
    return time.process_time() - began


def test_twenty_five_thousand_steps_of_five_thousand_invocations_take_linear_time():
    # Looking through all calls for each invocation would take ten seconds and more.
    assert min(_seconds(25_000) for _ in range(2)) < 3
