"""OpenHands: events of one response are one call; usage by response id; folders."""

from __future__ import annotations

import pytest

from apps.engine.format import Opened
from apps.engine.sequences import serial_sequences
from apps.engine.trace import OutcomeKind, StepKind, StepStatus, UsageState, Via
from tests.formats.archives import archive_items, zip_of
from tests.formats.benchmark_files import (
    UUID,
    action,
    agents_of,
    answered,
    calls_of,
    index_counts,
    of_kind,
    saw,
    sdk,
    sdk_action,
    sdk_seen,
)
from tests.formats.index import DATA, expected, rows
from tests.formats.reading import (
    as_json,
    items_of,
    lines,
    refusal_of,
    rejected_of,
    slug_of,
    traces_of,
)

RUN = [
    {"id": 0, "source": "user", "action": "message", "args": {"content": "fix it"},
     "timestamp": "2026-01-05T10:00:00"},
    action(1, "run", {"command": "ls", "thought": "look"},
           tool_call_metadata=answered("r1", "c1", 40)),
    action(2, "read", {"path": "x"}, tool_call_metadata=answered("r1", "c2", 40)),
    saw(3, "run", 1, "files", tool_call_metadata={"tool_call_id": "c1"}),
    saw(4, "error", 2, "no such file", tool_call_metadata={"tool_call_id": "c2"}),
    action(5, "finish", {"thought": "done"}, tool_call_metadata=answered("r2", "c3", 30)),
]  # fmt: skip
SDK_RUN = [
    sdk("SystemPromptEvent", "e0", system_prompt={"type": "text", "text": "rules"}),
    sdk("MessageEvent", "e1", "user",
        llm_message={"role": "user", "content": [{"type": "text", "text": "hi"}]}),
    sdk_action("e2", "r1", "c1"),
    sdk_action("e3", "r1", "c2"),
    sdk_seen("e4", "c1"),
    sdk("AgentErrorEvent", "e5", tool_call_id="c2", tool_name="terminal", error="bad"),
    sdk("MessageEvent", "e6", llm_response_id="r2", llm_message={
        "role": "assistant", "content": [{"type": "text", "text": "done"}]}),
]  # fmt: skip
METRICS = {
    "accumulated_token_usage": {"prompt_tokens": 18, "completion_tokens": 70},
    "token_usages": [
        {"response_id": one, "model": "m-1", "prompt_tokens": 9,
         "completion_tokens": count, "cache_read_tokens": 4} for one, count in
        (("r1", 40), ("r2", 30))
    ],
    "response_latencies": [{"response_id": "r1", "latency": 0.5}],
}  # fmt: skip
STATE = {
    "id": UUID, "agent": {"kind": "Agent", "llm": {"model": "m-1", "usage_id": "agent"}},
    "execution_status": "finished",
    "stats": {"usage_to_metrics": {"agent": METRICS, "condenser": {
        "accumulated_token_usage": {"prompt_tokens": 1, "completion_tokens": 999}}}},
}  # fmt: skip


def read(events):
    [trace] = traces_of(as_json(events))
    return trace


def outputs(trace):
    return [call.usage.output_total for call in calls_of(trace)]


@pytest.mark.parametrize("row", rows("openhands_events_json"))
def test_it_finds_the_counts_of_the_index(row):
    traces = traces_of((DATA / row["path"]).read_bytes())
    assert index_counts(traces) == expected(row)


@pytest.mark.parametrize(
    "row", rows("openhands_eval_output_jsonl", "openhands_sdk_events_jsonl")
)
def test_predictions_and_a_state_alone_are_no_traces(row):
    sentence = refusal_of((DATA / row["path"]).read_bytes())
    assert "predictions" in sentence or "without its events" in sentence


def test_actions_of_one_response_are_one_call():
    trace = read(RUN)
    assert outputs(trace) == [40, 30]
    first, second = of_kind(trace, StepKind.TOOL_CALL)
    assert first.call.requested_by == second.call.requested_by == 1
    assert (first.status, first.body.output) == (StepStatus.UNSET, "files")
    assert (second.status, second.error_message) == (StepStatus.ERROR, "no such file")
    assert first.body.input == {"command": "ls"}
    assert calls_of(trace)[0].finish_raw == "tool_calls"


def test_the_end_of_an_agent_is_no_tool():
    trace = read(RUN)
    assert len(of_kind(trace, StepKind.TOOL_CALL)) == 2
    assert trace.steps[0].kind is StepKind.USER_MESSAGE
    assert any("without a time zone" in note for note in trace.notes)


def test_an_answer_without_a_response_is_a_call_with_missing_usage():
    trace = read([*RUN, action(6, "message", {"content": "a"}),
                  action(7, "run", {"command": "b"}), saw(8, "run", 7)])  # fmt: skip
    assert outputs(trace) == [40, 30, None, None]
    assert of_kind(trace, StepKind.TOOL_CALL)[-1].body.output == "seen"
    assert {call.model for call in calls_of(trace)} == {"m-1"}


def test_the_machinery_around_an_agent_makes_no_calls():
    machinery = [
        action(10, "system", {"content": "rules"}),
        action(11, "recall", {"query": "x"}),
        saw(12, "recall", 11),
        action(13, "change_agent_state", {"agent_state": "paused"}),
        saw(14, "agent_state_changed", 0, extras={"agent_state": "error",
                                                  "reason": "out of money"}),
        saw(15, "null", 99),
    ]  # fmt: skip
    trace = read([*RUN, *machinery])
    assert outputs(trace) == [40, 30]
    last = trace.steps[-1]
    assert (last.status, last.error_message) == (StepStatus.ERROR, "out of money")
    assert of_kind(trace, StepKind.RETRIEVAL)[0].body.output == "seen"
    assert trace.notes[-1] == "Events of kinds that are not read: 1 (null)."


def test_a_condensed_context_is_a_boundary():
    trace = read([*RUN[:5], action(20, "condensation", {"summary": "s"}), RUN[5]])
    assert [call.resets_context for call in calls_of(trace)] == [False, True]
    assert [one.outputs for one in serial_sequences(trace)] == [(40,), (30,)]


def test_a_delegate_is_a_sub_agent_until_it_reports():
    trace = read([
        action(1, "delegate", {"agent": "Browser"}, tool_call_metadata=answered("r1", "c1", 9)),
        action(2, "browse", tool_call_metadata=answered("r2", "c2", 8)),
        saw(3, "browse", 2),
        saw(4, "delegate", 1, "report"),
        action(5, "finish", tool_call_metadata=answered("r3", "c3", 7)),
    ])  # fmt: skip
    assert agents_of(trace, StepKind.MODEL_CALL) == [None, "Browser", None]
    assert trace.invocations[1].via is Via.SUBAGENT
    assert trace.steps[1].body.output == "report"
    assert [one.outputs for one in serial_sequences(trace)] == [(9, 7), (8,)]


def test_an_observation_that_answers_nothing_is_a_step_of_its_own():
    trace = read([*RUN, saw(9, "run", 1, "again"), saw(10, "run", 77, "lost")])
    assert [step.body.output for step in of_kind(trace, StepKind.OTHER)] == [
        "again", "lost",
    ]  # fmt: skip
    assert of_kind(trace, StepKind.TOOL_CALL)[0].body.output == "files"


def row(**more):
    return {"instance_id": "repo-1", "instance": {"patch": "secret"}, "history": RUN,
            "metadata": {"agent_class": "CodeActAgent", "llm_config": {"model": "m-9"}},
            "metrics": METRICS, "test_result": {"report": {"resolved": True}}, **more}  # fmt: skip


def test_rows_of_an_evaluation_are_traces_with_tasks_and_outcomes():
    first, second = traces_of(lines(row(), row(instance_id="repo-2", test_result={})))
    assert (first.task, first.outcome.kind) == ("repo-1", OutcomeKind.PASS)
    assert first.outcome.source == "test_result.report.resolved"
    assert second.outcome.kind is OutcomeKind.UNKNOWN
    assert first.invocations[0].agent == "CodeActAgent"
    assert "secret" in str(first.labels)
    assert "secret" not in str(first.steps) + str(first.metadata)
    assert not any("in all" in note for note in first.notes)


def test_older_rows_hold_pairs_of_action_and_observation():
    pairs = [[RUN[1], RUN[3]], [RUN[5], saw(9, "null", 5)]]
    [trace] = traces_of(lines(row(history=pairs)))
    assert outputs(trace) == [40, 30]


def test_a_row_of_an_issue_is_read_too():
    issue = {"owner": "o", "repo": "r", "number": 7}
    [trace] = traces_of(lines({"issue": issue, "history": SDK_RUN, "success": False}
                              | {"instruction": "x"}))  # fmt: skip
    assert (trace.task, trace.outcome.kind) == ("o/r#7", OutcomeKind.FAIL)


def test_rows_without_a_history_are_rejected_and_the_others_are_read():
    items = items_of(lines(row(history=None), row()))
    [bad] = rejected_of(items)
    assert "no history" in bad.reason
    assert sum(hasattr(one, "steps") for one in items) == 1


def test_entries_of_a_history_that_are_no_events_are_counted():
    [trace] = traces_of(lines(row(history=[None, {"x": 1}, *RUN])))
    assert any("no events, not read: 2" in note for note in trace.notes)
    assert "no event of OpenHands" in refusal_of(lines(row(history=[3])))


def test_totals_that_differ_are_shown_and_never_added():
    totals = {
        "accumulated_token_usage": {"completion_tokens": 500, "prompt_tokens": 18}
    }
    [trace] = traces_of(lines(row(metrics=totals)))
    assert any("500 output tokens in all" in note for note in trace.notes)
    assert outputs(trace) == [40, 30]


def test_events_of_the_sdk_without_statistics_have_missing_usage():
    trace = read(SDK_RUN)
    assert [call.usage.state for call in calls_of(trace)] == [UsageState.MISSING] * 2
    assert calls_of(trace)[0].tool_call_ids == ("c1", "c2")
    first, second = of_kind(trace, StepKind.TOOL_CALL)
    assert (first.status, first.body.output, first.body.input) == (
        StepStatus.OK, "out", {"c": "ls"},
    )  # fmt: skip
    assert (second.status, second.error_message) == (StepStatus.ERROR, "bad")


def test_usage_of_the_sdk_is_found_by_response_id_in_the_statistics():
    stats = sdk("ConversationStateUpdateEvent", "e9", "environment", key="stats",
                value=STATE["stats"])  # fmt: skip
    trace = traces_of(lines(*SDK_RUN, stats))[0]
    assert outputs(trace) == [40, 30]
    assert calls_of(trace)[0].usage.input_cached == 4
    assert of_kind(trace, StepKind.MODEL_CALL)[0].start_ns is not None


def test_states_errors_and_condensations_of_the_sdk():
    trace = read([
        *SDK_RUN,
        sdk("Condensation", "e7", "environment", summary="s", llm_response_id="q"),
        sdk("ConversationStateUpdateEvent", "e8", "environment",
            key="execution_status", value="error"),
        sdk("ConversationErrorEvent", "e9", code="LLMError", detail="boom"),
        sdk("StreamingDeltaEvent", "e10"),
        sdk_action("e11", "r3", "c9"),
        sdk("UserRejectObservation", "e12", "environment", tool_call_id="c9",
            rejection_reason="no"),
    ])  # fmt: skip
    assert [call.resets_context for call in calls_of(trace)] == [False, False, True]
    failed = [step.error_message for step in trace.steps if step.status == "error"]
    assert failed == ["bad", None, "boom", "no"]
    assert trace.notes[-1] == (
        "Events of kinds that are not read: 1 (StreamingDeltaEvent)."
    )


def test_an_observation_of_the_sdk_that_is_an_error():
    trace = read([sdk_action("e1", "r", "c"), sdk_seen("e2", "c", is_error=True)])
    [step] = of_kind(trace, StepKind.TOOL_CALL)
    assert (step.status, step.error_message) == (StepStatus.ERROR, "out")


def test_an_observation_without_a_call_id_answers_its_action():
    seen = sdk_seen("e2", None, is_error=False) | {"action_id": "e1"}
    trace = read([sdk_action("e1", "r", "c"), sdk_action("e0", "r", "d"), seen])
    assert [one.body.output for one in of_kind(trace, StepKind.TOOL_CALL)] == [
        "out",
        None,
    ]


def test_events_without_a_source_are_told_by_their_role():
    said = {"kind": "MessageEvent", "llm_message": {"role": "user", "content": "q"}}
    answer = {
        "kind": "MessageEvent",
        "llm_message": {"role": "assistant", "content": "a"},
    }
    assert [step.kind for step in read([said, answer]).steps] == [
        StepKind.USER_MESSAGE, StepKind.MODEL_CALL,
    ]  # fmt: skip


def test_a_prompt_that_fills_the_head_hides_no_kind():
    prompt = {"id": "e0", "timestamp": "2026-01-05T10:00:01", "source": "agent",
              "system_prompt": {"text": "x" * 70_000}, "kind": "SystemPromptEvent"}  # fmt: skip
    trace = read([prompt, *SDK_RUN])
    assert len(calls_of(trace)) == 2
    files = conversation() | {"events/event-00000-x.json": as_json(prompt)}
    assert any(hasattr(one, "steps") for one in archive_items(zip_of(files)))


def test_tool_calls_of_another_agent_are_completed_by_later_reports():
    report = {"tool_call_id": "t", "title": "edit", "raw_input": {"f": 1}}
    trace = read([
        sdk("ACPToolCallEvent", "e1", status="pending", **report),
        sdk("ACPToolCallEvent", "e2", status="completed", raw_output="ok", **report),
    ])  # fmt: skip
    [step] = trace.steps
    assert (step.status, step.body.output) == (StepStatus.OK, "ok")


def conversation(root="", **more):
    events = {f"{root}events/event-{n:05}-x.json": as_json(one)
              for n, one in enumerate(SDK_RUN)}  # fmt: skip
    return events | {f"{root}base_state.json": as_json(STATE)} | more


def test_a_conversation_folder_is_one_trace_with_its_usage():
    items = archive_items(zip_of(conversation("a/") | conversation("b/")))
    traces = [one for one in items if hasattr(one, "steps")]
    assert [outputs(one) for one in traces] == [[40, 30], [40, 30]]
    assert traces[0].native_id == UUID
    assert {one.format for one in items if isinstance(one, Opened)} == {
        "openhands-conversation"
    }
    assert not any("in all" in note for note in traces[0].notes)


def test_older_event_files_are_ordered_by_their_number():
    files = {f"s/events/{n}.json": as_json(action(n, "message", {"content": str(n)}))
             for n in (10, 9, 100)}  # fmt: skip
    [trace] = [t for t in archive_items(zip_of(files)) if hasattr(t, "steps")]
    assert [step.body.output for step in trace.steps] == ["9", "10", "100"]


def test_a_broken_event_file_is_rejected_and_the_others_are_read():
    files = conversation(**{"events/event-00002-x.json": b"{"})
    items = archive_items(zip_of(files))
    [bad] = rejected_of(items)
    assert "event-00002-x.json" in bad.place
    assert sum(hasattr(one, "steps") for one in items) == 1


def test_an_answer_of_the_api_that_holds_the_events_is_read():
    assert outputs(read({"trajectory": RUN})) == [40, 30]


def test_it_is_read_alike_when_the_format_is_chosen():
    data = as_json(RUN)
    assert slug_of(data) == "openhands"
    assert traces_of(data, "openhands") == traces_of(data)
