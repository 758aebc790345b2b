"""Pydantic-AI histories, and the sessions and evaluations of Google ADK."""

from __future__ import annotations

from apps.engine.sequences import serial_sequences
from apps.engine.trace import (
    OutcomeKind,
    StepStatus,
    UsageState,
)
from tests.formats import framework_samples as frameworks
from tests.formats import stream_samples as streams
from tests.formats.reading import (
    as_json,
    traces_of,
)
from tests.formats.transcript_parts import calls, one, outputs, tools


def test_pydantic_ai_zeros_are_suspects_and_a_retry_is_a_failed_tool_call():
    trace = one(frameworks.PYDANTIC)
    states = [step.call.usage.state for step in calls(trace)]
    assert states == [UsageState.REPORTED, UsageState.ZERO_SUSPECT]
    [tool] = tools(trace)
    assert (tool.status, tool.error_type) == (StepStatus.ERROR, "retry-prompt")
    assert (trace.session, trace.invocations[0].native_id) == ("c-1", "r-1")


def test_a_second_run_in_a_history_is_an_invocation_of_its_own():
    again = [message | {"run_id": "r-2"} for message in frameworks.PYDANTIC]
    trace = one([*frameworks.PYDANTIC, *again])
    assert [i.native_id for i in trace.invocations] == ["r-1", "r-2"]
    assert len(serial_sequences(trace)) == 2


def test_adk_thoughts_stay_beside_the_output_and_partial_events_are_left_out():
    trace = one(frameworks.ADK_SESSION)
    first, last = calls(trace)
    usage = first.call.usage
    assert (usage.output_total, usage.output_reasoning, usage.total) == (12, 30, 62)
    assert last.call.usage.state is UsageState.MISSING
    assert first.body.reasoning == "Look it up."
    assert tools(trace)[0].error_message == "no such parcel"
    assert [i.agent for i in trace.invocations] == ["clerk"]


def test_an_eval_set_says_that_nothing_was_run():
    trace = one(frameworks.ADK_EVALSET)
    assert (trace.task, len(calls(trace)), len(tools(trace))) == ("case-1", 1, 1)
    assert "nothing in it was run" in trace.notes[0]


def test_a_run_result_holds_its_history_in_its_state():
    trace = one({"output": "x", "_state": {"message_history": frameworks.PYDANTIC}})
    assert len(calls(trace)) == 2


def test_arguments_of_the_first_versions_name_their_encoding():
    call = {"part_kind": "tool-call", "tool_name": "find_parcel", "tool_call_id": "c",
            "args": {"args_json": '{"id": 1}'}}  # fmt: skip
    trace = one([{"kind": "response", "parts": [call]}])
    assert tools(trace)[0].body.input == {"id": 1}


def test_an_evaluation_that_was_run_has_verdicts_and_trials():
    skipped = {"eval_id": "case-2", "final_eval_status": 3}
    results = [
        *streams.ADK_RESULTS["eval_case_results"],
        skipped | {"session_details": frameworks.ADK_SESSION},
    ]
    found = traces_of(as_json({"eval_set_id": "s", "eval_case_results": results}))
    assert [(t.task, t.trial, t.outcome.kind) for t in found] == [
        ("case-1", 1, OutcomeKind.PASS),
        ("case-1", 2, OutcomeKind.FAIL),
        ("case-2", 1, OutcomeKind.UNKNOWN),
    ]
    assert outputs(found[0]) == [12, None]
    assert (found[1].session, len(tools(found[1]))) == ("s-2", 1)


def test_the_events_of_an_eval_case_are_calls_of_their_agents():
    case = frameworks.ADK_EVALSET["eval_cases"][0]
    part = {"function_call": {"name": "find_parcel", "args": {}}}
    events = [{"author": "clerk", "content": {"parts": [part]},
               "usage_metadata": {"candidates_token_count": 12}}]  # fmt: skip
    turn = case["conversation"][0] | {
        "intermediate_data": {"invocation_events": events}
    }
    value = frameworks.ADK_EVALSET | {"eval_cases": [case | {"conversation": [turn]}]}
    trace = one(value)
    assert outputs(trace) == [12, None]
    assert len(tools(trace)) == 1


def test_models_that_failed_before_another_answered_are_failed_calls():
    attempt = {"model_name": "gpt-x", "outcome": "error", "error": "Busy: try later"}
    answered = frameworks.PYDANTIC[1] | {"failed_attempts": [attempt]}
    trace = one([frameworks.PYDANTIC[0], answered])
    failed, answer = calls(trace)
    assert (failed.status, failed.error_message) == (
        StepStatus.ERROR,
        "Busy: try later",
    )
    assert answer.call.retry_of == failed.seq
    assert outputs(trace) == [None, 12]
