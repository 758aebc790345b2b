"""The final answer: empty, refused, missing, and ends that are none of these."""

from __future__ import annotations

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.final_answer import FinalAnswerCheck
from apps.engine.trace import Body, FinishReason, Step, StepKind, StepStatus
from tests.engine.told import answer, told, turned_round, used, user, without_bodies


def of(trace):
    (found,) = FinalAnswerCheck().run(trace)
    return found


def last(output, **step):
    return of(told(user(0, "Hello"), answer(1, output, **step)))


@pytest.mark.parametrize(
    "output",
    [
        "Done.",
        "I cannot help with that.",
        {"role": "assistant", "content": "Hello"},
        [{"role": "assistant", "parts": [{"type": "text", "content": "Hello"}]}],
        {"choices": [{"message": {"content": "Hello", "refusal": None}}]},
        {
            "generations": [
                [{"text": "Hello", "message": {"kwargs": {"content": "Hello"}}}]
            ]
        },
        {"approved": True, "amount": 3},
        {"candidates": [{"content": {"parts": [{"text": "Hello"}]}}]},
    ],
)
def test_an_answer_in_any_shape_is_quiet_and_prose_is_never_a_refusal(output):
    found = last(output)
    assert (found.answer, found.reason_code) == (Answer.QUIET, "answered")


@pytest.mark.parametrize(
    "output",
    [
        "",
        "  \n",
        [],
        {"role": "assistant", "content": ""},
        [{"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}]}],
        {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]},
    ],
)
def test_an_empty_answer_is_a_signal(output):
    found = last(output)
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
    assert found.reason_code == "empty"


def test_reasoning_without_an_answer_is_an_empty_answer():
    assert last(None, body={"reasoning": "I should answer."}).reason_code == "empty"


def test_an_answer_of_which_nothing_is_kept_is_not_applicable():
    found = last(None)
    assert (found.answer, found.reason_code) == (
        Answer.NOT_APPLICABLE,
        "answer_not_recorded",
    )
    bare = without_bodies(told(user(0, "Hello"), answer(1, "x")))
    assert of(bare).reason_code == "no_bodies"
    assert of(told(user(0, "Hello"))).reason_code == "no_model_calls"


@pytest.mark.parametrize(
    "step",
    [
        {"finish": FinishReason.CONTENT_FILTER},
        {"body": {"attributes": {"additional_kwargs": {"refusal": "I will not."}}}},
    ],
)
def test_a_recorded_refusal_is_a_signal_whatever_the_text_says(step):
    assert last("No.", **step).reason_code == "refused"


def test_a_part_that_is_a_refusal_is_a_signal():
    output = {"content": [{"type": "refusal", "refusal": "I cannot do that."}]}
    found = last(output)
    assert found.reason_code == "refused"
    assert found.evidence.facts["refusal"] == "I cannot do that."


def test_a_filter_is_seen_without_bodies_too():
    trace = told(answer(0, None, finish=FinishReason.CONTENT_FILTER))
    assert of(trace).reason_code == "refused"


def test_a_trace_that_ends_in_an_unfinished_call_is_a_signal():
    trace = told(
        answer(0, "I look."),
        used(1, "get", {"id": 1}, "x", by=0),
        answer(2, "And more."),
        used(3, "get", {"id": 2}, None, by=2),
    )
    found = of(trace)
    assert (found.answer, found.reason_code) == (Answer.SIGNAL, "unfinished_tool_call")
    assert found.evidence.steps == (2, 3)


def test_a_trace_that_ends_in_a_result_is_a_signal():
    trace = told(answer(0, ""), used(1, "search", {"id": 1}, "x", by=0))
    assert of(trace).reason_code == "no_answer_after_tool"


@pytest.mark.parametrize(
    "name",
    ["finish", "submit", "final_output", "transfer_to_human_agents", "stop", "finalResult",
     "attempt_completion", "mark_task_complete", "AskFollowup.respond"],
)  # fmt: skip
def test_a_tool_that_ends_a_task_by_design_is_not_applicable_and_named(name):
    found = of(told(answer(0, ""), used(1, name, {"id": 1}, None, by=0)))
    assert (found.answer, found.reason_code) == (
        Answer.NOT_APPLICABLE,
        "ended_by_a_tool",
    )
    assert name in found.reason


def test_a_file_without_any_results_does_not_tell_whether_it_went_on():
    found = of(told(answer(0, ""), used(1, "search", {"id": 1}, None, by=0)))
    assert found.reason_code == "results_not_recorded"


def test_an_answer_that_said_it_was_done_stands_though_a_call_follows():
    trace = told(
        answer(0, "All done.", finish=FinishReason.STOP),
        used(1, "log", {"id": 1}, "x", by=0),
    )
    assert of(trace).reason_code == "answered"


def test_steps_of_a_program_after_an_answer_that_asked_for_nothing_change_nothing():
    trace = told(answer(0, "It is 5."), used(1, "store_result", {"n": 5}, "x"))
    assert of(trace).reason_code == "answered"
    asking = {
        "content": "I look.",
        "tool_calls": [{"function": {"name": "look", "arguments": ""}}],
    }
    trace = told(answer(0, asking), used(1, "look", {"n": 5}, "x"))
    assert of(trace).reason_code == "no_answer_after_tool"


def test_what_a_user_says_after_the_answer_changes_nothing():
    assert of(told(answer(0, "Bye."), user(1, "###STOP###"))).answer is Answer.QUIET


def test_a_last_call_that_failed_is_a_signal():
    trace = told(answer(0, "Hm."), answer(1, None, status=StepStatus.ERROR))
    assert of(trace).reason_code == "failed_call"


def test_an_answer_that_asks_for_a_tool_that_no_step_holds_is_not_applicable():
    found = last("", finish=FinishReason.TOOL_CALLS)
    assert found.reason_code == "asks_for_a_tool"


def test_the_output_of_an_agent_stands_where_no_model_call_is_recorded():
    step = Step(seq=0, kind=StepKind.AGENT, invocation=0, body=Body(output="Done."))
    assert of(told(step)).reason_code == "answered"
    step = Step(seq=0, kind=StepKind.AGENT, invocation=0, body=Body(output=""))
    assert of(told(step)).reason_code == "empty"


def test_an_answer_written_on_several_lines_of_a_log_is_one():
    lines = [answer(0, "Hello"), answer(1, None)]
    calls = [
        Step(
            seq=step.seq,
            kind=step.kind,
            invocation=0,
            body=step.body,
            call=type(step.call)(response_id="m1"),
        )
        for step in lines
    ]
    assert of(told(*calls)).reason_code == "answered"


def test_steps_in_any_order_give_the_same_answer():
    trace = told(
        answer(0, "a"),
        used(1, "get", {}, "x", by=0),
        used(2, "got", {}, None, by=0),
        used(3, "gut", {}, None, by=0),
    )
    assert of(turned_round(trace)) == of(trace)
    assert "got" in of(trace).headline


@pytest.mark.parametrize(
    ("text", "size"), [("k", "1 character"), ("ok", "2 characters")]
)
def test_the_size_of_an_answer_is_said_in_good_english(text, size):
    (found,) = FinalAnswerCheck().run(told(user(0, "Hi"), answer(1, text)))
    assert found.headline == f"Final answer of {size}"


def test_it_says_that_the_trace_ends_in_a_tool_only_of_the_last_one():
    asked = [used(1, "submit", {"x": 1}, "ok", by=0), used(2, "log", {}, "ok", by=0)]
    found = of(told(answer(0, ""), *asked))
    assert found.reason_code == "ended_by_a_tool"
    assert "ends in" not in found.reason
    assert found.reason.startswith("Among the calls after the last answer is submit")
    twice = [used(1, "submit", {}, "ok", by=0), used(2, "finish", {}, "ok", by=0)]
    found = of(told(answer(0, ""), *twice))
    assert found.reason.startswith("The trace ends in finish")
