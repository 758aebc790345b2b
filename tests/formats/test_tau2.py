"""tau2-bench: two models talk, and only one of them is the agent under test."""

from __future__ import annotations

import pytest

from apps.engine.sequences import serial_sequences
from apps.engine.trace import OutcomeKind, StepKind, StepStatus, UsageState
from tests.formats.archives import archive_items, zip_of
from tests.formats.benchmark_files import (
    UUID,
    agents_of,
    calls_of,
    index_counts,
    of_kind,
    said,
    tau2_results,
    tau2_run,
    tool_call,
)
from tests.formats.index import DATA, expected, rows
from tests.formats.reading import (
    as_json,
    items_of,
    refusal_of,
    rejected_of,
    slug_of,
    traces_of,
)

GREETING = said("assistant", "Hello", cost=0.0)
TALK = [
    GREETING,
    said("user", "Refund me", 30, tool_calls=[tool_call("u1", "look", "user")]),
    {"role": "tool", "id": "u1", "content": "here", "error": False,
     "requestor": "user", "timestamp": "2026-01-05T10:00:02"},
    said("user", "It is A-100", 20),
    said("assistant", "Wait", 40, generation_time_seconds=0.5,
         tool_calls=[tool_call("a1", "pay", "assistant")],
         raw_data={"id": "r1", "model": "m-1-x", "choices": [
             {"finish_reason": "tool_calls", "message": {}}]}),
    {"role": "tool", "id": "a1", "content": "Error: no", "error": True,
     "requestor": "assistant", "timestamp": "2026-01-05T10:00:03"},
]  # fmt: skip
WHOLE = tau2_results(tau2_run(TALK))
LABEL_REASON = (
    "The index counts the scripted greeting of each simulation as a model call without "
    "usage; it has a price of 0.0 and no usage because no model wrote it."
)
DIFFERENCES = {
    "tau2_results/tau2_mock_4trials.json": (
        {"model_calls": 168, "usage_missing": 0}, LABEL_REASON
    )
}  # fmt: skip


def read(*messages, **more):
    [trace] = traces_of(as_json(tau2_results(tau2_run(list(messages), **more))))
    return trace


@pytest.mark.parametrize("row", rows("tau2_results"))
def test_it_finds_the_counts_of_the_index_but_for_the_greetings(row):
    changed, reason = DIFFERENCES[row["path"]]
    traces = traces_of((DATA / row["path"]).read_bytes())
    assert index_counts(traces) == expected(row) | changed, reason
    outputs = {(one.agent, one.outputs) for t in traces for one in serial_sequences(t)}
    known = (112, 100, 86, 78, 70, 43)
    assert {agent for agent, _ in outputs} == {"llm_agent", "user simulator"}
    assert all(found[:6] == known for _, found in outputs)
    assert {(t.task, t.trial) for t in traces if t.trial == 3} == {
        ("mock/create_task_1", 3),
        ("mock/create_task_1_nl_eval", 3),
        ("mock/create_task_1_with_env_assertions", 3),
    }


def test_the_simulated_user_is_an_agent_of_its_own():
    trace = read(*TALK)
    assert agents_of(trace, StepKind.MODEL_CALL) == [
        "user simulator", "user simulator", "llm_agent",
    ]  # fmt: skip
    assert agents_of(trace, StepKind.TOOL_CALL) == ["user simulator", "llm_agent"]
    found = {one.agent: one.outputs for one in serial_sequences(trace)}
    assert found == {"user simulator": (30, 20), "llm_agent": (40,)}


def test_a_greeting_that_was_written_beforehand_is_no_model_call():
    trace = read(*TALK)
    assert trace.steps[0].kind is StepKind.OTHER
    assert trace.steps[0].body.output == "Hello"
    assert "written beforehand" in trace.notes[0]


def test_a_first_answer_with_usage_is_a_model_call():
    trace = read(said("assistant", "Hello", 5), said("user", "hi", 3))
    assert [call.usage.output_total for call in calls_of(trace)] == [5, 3]


def test_an_answer_without_usage_after_the_greeting_is_a_call_with_missing_usage():
    trace = read(GREETING, said("user", "hi", 3), said("assistant", "ok", cost=0.0))
    assert [call.usage.state for call in calls_of(trace)] == [
        UsageState.REPORTED, UsageState.MISSING,
    ]  # fmt: skip


def test_messages_that_the_task_began_with_are_no_calls():
    history = [said("user", "before"), said("assistant", "before")]
    results = tau2_results(tau2_run([*history, said("user", "now", 4)]))
    results["tasks"][0]["initial_state"] = {"message_history": history}
    [trace] = traces_of(as_json(results))
    assert len(calls_of(trace)) == 1


def test_a_user_that_is_no_model_only_sends_messages():
    results = tau2_results(tau2_run([said("user", "hi")]))
    results["info"]["user_info"] = {"implementation": "dummy_user", "llm": None}
    [trace] = traces_of(as_json(results))
    assert [step.kind for step in trace.steps] == [StepKind.USER_MESSAGE]


def test_it_reads_failures_of_tools_as_recorded():
    trace = read(*TALK)
    first, second = of_kind(trace, StepKind.TOOL_CALL)
    assert (first.status, first.body.output) == (StepStatus.OK, "here")
    assert (second.status, second.error_message) == (StepStatus.ERROR, "Error: no")


def test_a_message_is_stamped_when_the_call_ends():
    trace = read(*TALK)
    step = of_kind(trace, StepKind.MODEL_CALL)[-1]
    assert step.end_ns - step.start_ns == 500_000_000
    assert (step.call.model, step.call.response_id) == ("m-1-x", "r1")
    assert any("without a time zone" in note for note in trace.notes)


def test_the_expected_actions_are_labels_and_nothing_else():
    trace = read(*TALK)
    assert (trace.outcome.kind, trace.task, trace.trial) == (
        OutcomeKind.PASS, "mock/t1", 2,
    )  # fmt: skip
    assert trace.native_id == UUID
    assert "secret" in str(trace.labels)
    assert "secret" not in str(trace.metadata) + str(trace.steps)


@pytest.mark.parametrize(
    ("reward", "kind"),
    [(0.0, OutcomeKind.FAIL), (0.25, OutcomeKind.SCORE), (None, OutcomeKind.UNKNOWN)],
)
def test_a_reward_between_is_a_score_and_none_is_unknown(reward, kind):
    trace = read(*TALK, reward_info={"reward": reward})
    assert trace.outcome.kind is kind


def test_results_of_several_tools_may_stand_in_one_message():
    both = said("assistant", "", 4, tool_calls=[
        tool_call("a", "x", "assistant"), tool_call("b", "y", "assistant")])  # fmt: skip
    results = {"role": "tool", "tool_messages": [
        {"role": "tool", "id": "b", "content": "B"},
        {"role": "tool", "id": "a", "content": "A"}]}  # fmt: skip
    trace = read(both, results)
    assert [one.body.output for one in of_kind(trace, StepKind.TOOL_CALL)] == ["A", "B"]


def test_a_bad_simulation_is_rejected_with_its_place_and_the_others_are_read():
    items = items_of(as_json(tau2_results(3, tau2_run(TALK), tau2_run([{}]))))
    first, second = rejected_of(items)
    assert first.place == "record 1 (line 1), $.simulations[0]"
    assert second.place == "record 1 (line 1), $.simulations[2].messages[0]"
    assert sum(hasattr(one, "steps") for one in items) == 1


def test_a_voice_run_is_refused_in_a_sentence():
    run = tau2_run([], ticks=[{}]) | {"messages": None}
    assert "ticks of a voice run" in refusal_of(as_json(tau2_results(run)))


def test_it_reads_a_folder_of_simulations_with_what_results_say():
    folder = {
        "out/results.json": as_json(tau2_results(simulations=None)),
        "out/simulations/a.json": as_json(tau2_run(TALK)),
        "out/simulations/b.json": as_json(tau2_run(TALK, trial=3)),
        "out/simulations/c.json": b"{",
    }
    items = archive_items(zip_of(folder))
    traces = [one for one in items if hasattr(one, "steps")]
    assert [(one.task, one.trial) for one in traces] == [("mock/t1", 2), ("mock/t1", 3)]
    assert "secret" in str(traces[0].labels["task"])
    [bad] = rejected_of(items)
    assert "c.json" in bad.place


def test_one_simulation_alone_is_read_too():
    [trace] = traces_of(as_json(tau2_run(TALK)))
    assert (trace.task, len(calls_of(trace))) == ("t1", 3)


def test_it_is_read_alike_when_the_format_is_chosen():
    data = as_json(WHOLE)
    assert slug_of(data) == "tau2"
    assert traces_of(data, "tau2") == traces_of(data)
