"""ATIF: steps are not calls, sub-agents, and the result of a trial beside it."""

from __future__ import annotations

import pytest

from apps.engine.format import Opened
from apps.engine.sequences import serial_sequences
from apps.engine.trace import OutcomeKind, StepKind, StepStatus, UsageState, Via
from tests.formats.archives import archive_items, zip_of
from tests.formats.benchmark_files import (
    UUID,
    agents_of,
    atif_step,
    calls_of,
    index_counts,
    of_kind,
    ran,
    tokens,
    trajectory,
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

SPLIT = trajectory(
    {"step_id": 1, "source": "user", "message": "do it"},
    atif_step(2, metrics=tokens(0, 0)),
    atif_step(3, "I look", metrics=tokens(50), reasoning_content="so"),
    ran(4, "a", 3, reasoning_content="so"),
    ran(5, "b", 3, reasoning_content="so"),
    atif_step(6, "Done", metrics=tokens(20)),
    final_metrics={"total_prompt_tokens": 18, "total_completion_tokens": 70},
)
REASON = (
    "The index counts every agent step as a model call. A step with the metrics and the "
    "steps of its tool calls (same moment, same reasoning, no metrics) are one call: "
    "the same runs have these counts in claude_code_stream_json. It also counts no "
    "error, though steps record tool_result_is_error: true."
)
DIFFERENCES = {
    "break-filter-js-from-html__U92hUwr": (10, 0),
    "cancel-async-tasks__4gQ8rsy": (35, 21),
    "crack-7z-hash__qM5scQs": (33, 15),
    "mteb-retrieve__Z9jgSzu": (66, 14),
    "multi-source-data-merger__LvqheTc": (7, 1),
    "reshard-c4-data__Tyfvm3F": (35, 15),
    "write-compressor__sETXmYu": (9, 0),
}


def read(*steps, **more):
    [trace] = traces_of(as_json(trajectory(*steps, **more)))
    return trace


def outputs(trace):
    return [call.usage.output_total for call in calls_of(trace)]


@pytest.mark.parametrize("row", rows("atif_harbor"))
def test_it_finds_the_counts_of_the_index_but_for_steps_that_are_no_calls(row):
    wanted = expected(row)
    run = row["path"].removeprefix("atif_harbor/kimi__").removesuffix(".json")
    if run in DIFFERENCES:
        calls, errors = DIFFERENCES[run]
        wanted |= {"model_calls": calls, "usage_missing": 0, "errors": errors}
        assert calls == wanted["usage_known"] + wanted["usage_zero"], REASON
    traces = traces_of((DATA / row["path"]).read_bytes())
    assert index_counts(traces) == wanted, REASON
    assert not [note for note in traces[0].notes if "sum up" in note]


@pytest.mark.parametrize("row", rows("harbor_trials_kimi", "label_codetracebench"))
def test_results_and_labels_alone_are_no_traces(row):
    sentence = refusal_of((DATA / row["path"]).read_bytes())
    assert sentence.endswith(".")
    assert "Harbor" in sentence or "labels" in sentence


def test_real_results_beside_their_trajectories_give_outcomes(shared_data):
    name = "crack-7z-hash__qM5scQs"
    folder = {
        f"job/{name}/agent/trajectory.json": shared_data
        / f"atif_harbor/kimi__{name}.json",
        f"job/{name}/result.json": shared_data
        / f"harbor_trials_kimi/{name}.result.json",
        "job/result.json": shared_data / "harbor_trials_kimi/_job_result.json",
    }
    items = archive_items(zip_of({k: p.read_bytes() for k, p in folder.items()}))
    [trace] = [one for one in items if hasattr(one, "steps")]
    assert (trace.task, trace.trial) == ("crack-7z-hash", 1)
    assert trace.outcome.kind in {OutcomeKind.PASS, OutcomeKind.FAIL}
    assert trace.outcome.source == "verifier_result.rewards.reward"


def test_steps_of_one_call_are_joined_and_a_placeholder_is_no_call():
    [trace] = traces_of(as_json(SPLIT))
    assert outputs(trace) == [None, 50, 20]
    placeholder, first, _ = calls_of(trace)
    assert placeholder.is_placeholder
    assert placeholder.usage.state is UsageState.ZERO_SUSPECT
    assert first.tool_call_ids == ("a", "b")
    [sequence] = serial_sequences(trace)
    assert sequence.outputs == (50, 20)
    assert first.usage.input_cached == 4
    assert any("only repeat a model call" in note for note in trace.notes)
    assert not any("in all" in note for note in trace.notes)


def test_results_are_joined_to_their_calls():
    [trace] = traces_of(as_json(SPLIT))
    tools = of_kind(trace, StepKind.TOOL_CALL)
    assert [one.body.output for one in tools] == ["result a", "result b"]
    assert {one.call.requested_by for one in tools} == {2}


def test_a_step_at_another_moment_is_a_call_of_its_own():
    trace = read(atif_step(1, "a", metrics=tokens(5)), atif_step(2, "b"))
    assert outputs(trace) == [5, None]


def test_a_step_that_thinks_something_else_is_a_call_of_its_own():
    other = {**ran(2, "a", 1), "message": "x", "reasoning_content": "other"}
    trace = read(atif_step(1, "a", metrics=tokens(5), reasoning_content="one"), other)
    assert outputs(trace) == [5, None]


def test_tool_steps_of_a_file_without_any_metrics_are_calls():
    trace = read(ran(1, "a", 1), ran(2, "b", 2))
    assert outputs(trace) == [None, None]


def test_a_tool_step_whose_call_is_not_in_the_file_is_no_call():
    trace = read(atif_step(1, "a", metrics=tokens(5)), ran(2, "b", 9))
    assert outputs(trace) == [5]
    [tool] = of_kind(trace, StepKind.TOOL_CALL)
    assert tool.call.requested_by is None
    assert any("not recorded: 1" in note for note in trace.notes)


def test_partial_words_with_zeros_and_no_reason_were_only_announced():
    stop = {"extra": {"stop_reason": "end_turn"}}
    trace = read(
        atif_step(1, "Let me", metrics=tokens(0, 0)),
        atif_step(2, "Let me look", metrics=tokens(5), **stop),
        atif_step(3, "", metrics=tokens(0, 700), **stop),
    )
    assert [call.is_placeholder for call in calls_of(trace)] == [True, False, False]
    assert outputs(trace) == [None, 5, 0]


@pytest.mark.parametrize("key", ["api_call_id", "requestId"])
def test_steps_that_name_one_call_are_one_call_whenever_they_were_written(key):
    mine = {"extra": {key: "q1"}, "llm_call_count": 1}
    trace = read(
        atif_step(1, "a", **mine),
        ran(2, "x", 5, metrics=tokens(7), **mine),
        ran(3, "y", 6, metrics=tokens(7), **mine),
        atif_step(7, "b", metrics=tokens(4), extra={key: "q2"}),
        final_metrics={"total_completion_tokens": 11},
    )
    assert outputs(trace) == [7, 4]
    assert calls_of(trace)[0].tool_call_ids == ("x", "y")
    assert not any("in all" in note for note in trace.notes)


def test_counts_of_calls_of_a_step_are_believed():
    trace = read(
        atif_step(1, "sum", llm_call_count=3, metrics=tokens(90)),
        atif_step(2, "route", llm_call_count=0),
        atif_step(3, "one", llm_call_count=1, metrics=tokens(7)),
    )
    states = [call.usage.state for call in calls_of(trace)]
    assert states == [UsageState.AGGREGATE_ONLY, UsageState.REPORTED]


def test_copied_context_is_no_call():
    trace = read(
        atif_step(1, "old", is_copied_context=True, metrics=tokens(9)),
        atif_step(2, "new", metrics=tokens(7)),
        final_metrics={"total_completion_tokens": 7},
    )
    assert outputs(trace) == [7]
    assert not any("in all" in note for note in trace.notes)


def test_totals_that_differ_are_shown_with_both_numbers_and_never_added():
    trace = read(
        atif_step(1, "a", metrics=tokens(7)),
        final_metrics={"total_completion_tokens": 99},
    )
    assert "records 99 output tokens in all; its calls sum up to 7." in trace.notes[0]
    trace = read(atif_step(1, "a"), final_metrics={"total_completion_tokens": 99})
    assert trace.notes == ("Only the whole run has output tokens: 99.",)


def test_one_observation_of_several_calls_stays_with_the_last():
    calls = [{"tool_call_id": one, "function_name": "keys", "arguments": {}}
             for one in ("a", "b")]  # fmt: skip
    seen = {"results": [{"content": "screen"}]}
    trace = read(
        atif_step(1, "x", tool_calls=calls, observation=seen, metrics=tokens(7))
    )
    first, second = of_kind(trace, StepKind.TOOL_CALL)
    assert first.body.output is None
    assert second.body.output == "screen"


def test_failures_of_tools_are_read_where_they_are_recorded():
    failed = {"extra": {"tool_result_is_error": True}}
    trace = read(atif_step(1, "a", metrics=tokens(5)), ran(2, "x", 1, **failed))
    [tool] = of_kind(trace, StepKind.TOOL_CALL)
    assert (tool.status, tool.error_message) == (StepStatus.ERROR, "result x")


def test_side_chains_are_sub_agents():
    aside = {"extra": {"is_sidechain": True, "agent_id": "k", "agent_name": "scout"}}
    trace = read(
        atif_step(1, "a", metrics=tokens(5)),
        atif_step(2, "b", metrics=tokens(6), **aside),
        atif_step(3, "c", metrics=tokens(7), **aside),
        atif_step(4, "d", metrics=tokens(8)),
    )
    assert agents_of(trace, StepKind.MODEL_CALL) == [
        "terminus", "scout", "scout", "terminus",
    ]  # fmt: skip
    assert [one.outputs for one in serial_sequences(trace)] == [(5, 8), (6, 7)]


def delegating(**reference):
    call = {"tool_call_id": "t", "function_name": "task", "arguments": {}}
    result = {"source_call_id": "t", "content": "ok",
              "subagent_trajectory_ref": [reference]}  # fmt: skip
    return atif_step(1, "go", tool_calls=[call], observation={"results": [result]},
                     metrics=tokens(5))  # fmt: skip


INNER = trajectory(
    atif_step(1, "in", metrics=tokens(3)),
    trajectory_id="in-1",
    agent={"name": "helper", "version": "1"},
)


def test_embedded_trajectories_are_sub_agents_where_they_were_called():
    trace = read(
        delegating(trajectory_id="in-1"),
        atif_step(2, "end", metrics=tokens(6)),
        subagent_trajectories=[INNER],
        final_metrics={"total_completion_tokens": 11},
    )
    assert agents_of(trace, StepKind.MODEL_CALL) == ["terminus", "helper", "terminus"]
    assert trace.invocations[1].via is Via.SUBAGENT
    assert trace.notes == ()


def test_embedded_trajectories_that_nothing_refers_to_are_not_lost():
    trace = read(atif_step(1, "a"), subagent_trajectories=[INNER])
    assert agents_of(trace, StepKind.MODEL_CALL) == ["terminus", "helper"]


def test_older_references_name_the_session_of_a_sub_agent():
    inner = {key: value for key, value in INNER.items() if key != "trajectory_id"}
    trace = read(
        delegating(session_id="s-2"),
        atif_step(2, "end", metrics=tokens(6)),
        subagent_trajectories=[inner | {"session_id": "s-2"}],
    )
    assert agents_of(trace, StepKind.MODEL_CALL) == ["terminus", "helper", "terminus"]


def test_a_folder_whose_trajectory_is_of_another_kind_is_not_claimed():
    files = {"t/agent/trajectory.json": b'[{"role": "user", "content": "hi"}]'}
    items = archive_items(zip_of(files))
    assert [one.format for one in items if isinstance(one, Opened)] == ["openai-chat"]


def test_a_sub_agent_in_a_file_that_is_not_here_is_said():
    trace = read(delegating(trajectory_path="elsewhere.json"))
    assert trace.notes == (
        "Sub-agents whose trajectory is in a file that is not here: 1.",
    )


RESULT = {
    "id": UUID, "task_name": "sort", "trial_name": "sort__aaa",
    "agent_info": {"name": "terminus"}, "verifier_result": {"rewards": {"reward": 1.0}},
}  # fmt: skip


def trials(**more):
    files = {}
    for ending, reward in (("aaa", 1.0), ("bbb", 0.0)):
        result = RESULT | {"id": None, "trial_name": f"sort__{ending}",
                           "verifier_result": {"rewards": {"reward": reward}}}  # fmt: skip
        files[f"job/sort__{ending}/agent/trajectory.json"] = as_json(SPLIT)
        files[f"job/sort__{ending}/result.json"] = as_json(result | more)
        files[f"job/sort__{ending}/agent/sessions/x.jsonl"] = as_json(SPLIT)
    return files | {"job/result.json": as_json({"n_total_trials": 2, "stats": {}})}


def test_a_folder_of_trials_is_one_upload_with_a_trace_for_each():
    items = archive_items(zip_of(trials()))
    found = [
        (t.task, t.trial, t.outcome.kind.value) for t in items if hasattr(t, "steps")
    ]
    assert found == [("sort", 1, "pass"), ("sort", 2, "fail")]
    opened = [one.format for one in items if isinstance(one, Opened)]
    assert opened.count("harbor-trial") == 2


def test_the_session_of_the_agent_inside_a_trial_is_not_counted_once_more():
    start = "job/sort__aaa/agent/sessions/s/events"
    event = {"id": 1, "source": "agent", "action": "message", "args": {"content": "x"}}
    files = trials() | {f"{start}/{n}.json": as_json(event) for n in range(3)}
    assert sum(hasattr(t, "steps") for t in archive_items(zip_of(files))) == 2


def test_what_the_harness_caught_is_a_failed_step():
    caught = {"exception_type": "AgentTimeoutError", "exception_message": "too long",
              "exception_traceback": "...", "occurred_at": "2026-01-05T10:00:09"}  # fmt: skip
    items = archive_items(zip_of(trials(exception_info=caught, verifier_result=None)))
    trace = next(one for one in items if hasattr(one, "steps"))
    last = trace.steps[-1]
    assert (last.status, last.error_type) == (StepStatus.ERROR, "AgentTimeoutError")
    assert trace.outcome.kind is OutcomeKind.UNKNOWN


@pytest.mark.parametrize(
    ("rewards", "kind"),
    [({"reward": 0.5}, "score"), ({"tests": 1}, "pass"), ({"a": 1, "b": 0}, "unknown"),
     ({"a": 1, "reward": 0}, "fail"), (None, "unknown"), ({"reward": "x"}, "unknown")],
)  # fmt: skip
def test_of_several_rewards_only_the_one_named_reward_is_the_outcome(rewards, kind):
    files = trials(verifier_result={"rewards": rewards})
    trace = next(t for t in archive_items(zip_of(files)) if hasattr(t, "steps"))
    assert trace.outcome.kind.value == kind


def test_continuations_and_summaries_of_a_trial_are_part_of_its_trace():
    root = "t__a/agent/trajectory"
    first = trajectory(
        delegating(trajectory_path="trajectory.summarization-1-summary.json"),
        continued_trajectory_ref="trajectory.cont-1.json",
    )
    files = {
        f"{root}.json": first,
        f"{root}.cont-1.json": trajectory(
            atif_step(1, "old", is_copied_context=True),
            atif_step(2, "on", metrics=tokens(8)),
        ),
        f"{root}.summarization-1-summary.json": INNER,
    }
    items = archive_items(zip_of({k: as_json(v) for k, v in files.items()}))
    [trace] = [one for one in items if hasattr(one, "steps")]
    assert agents_of(trace, StepKind.MODEL_CALL) == ["terminus", "helper", "terminus"]
    assert [call.resets_context for call in calls_of(trace)] == [False, False, True]


def test_each_step_of_a_trial_has_its_own_verdict():
    parts = [{"step_name": "one", "verifier_result": {"rewards": {"reward": 0}}}]
    files = {
        "t__a/result.json": as_json(RESULT | {"step_results": parts}),
        "t__a/steps/one/agent/trajectory.json": as_json(SPLIT),
    }
    [trace] = [t for t in archive_items(zip_of(files)) if hasattr(t, "steps")]
    assert (trace.task, trace.outcome.kind) == ("sort, step one", OutcomeKind.FAIL)


def test_lines_and_lists_of_trajectories_are_read_and_a_bad_one_is_rejected():
    items = items_of(lines(SPLIT, trajectory(3), SPLIT))
    assert sum(hasattr(one, "steps") for one in items) == 2
    [bad] = rejected_of(items)
    assert bad.place == "record 2 (line 2), $.steps[0]"
    assert len(traces_of(as_json([SPLIT, SPLIT]))) == 2


def test_it_is_read_alike_when_the_format_is_chosen():
    data = as_json(SPLIT)
    assert slug_of(data) == "atif"
    assert traces_of(data, "atif") == traces_of(data)
