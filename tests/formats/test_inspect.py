"""Inspect AI: samples are traces, epochs trials, scores outcomes; grading models apart."""

from __future__ import annotations

import pytest

from apps.engine.sequences import serial_sequences
from apps.engine.trace import OrderSource, OutcomeKind, StepKind, StepStatus, UsageState
from tests.formats.archives import archive_items
from tests.formats.benchmark_files import (
    INSPECT_RUN,
    agents_of,
    begin,
    calls_of,
    end,
    event,
    index_counts,
    inspect_log,
    model,
    of_kind,
    sample,
    tool,
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

WHOLE = inspect_log(
    sample(*INSPECT_RUN, model_usage={"openai/m-1": {"output_tokens": 75}})
)
OLDER = "The index counted messages only; the usage stands in transcript.events."
DIFFERENCES = {
    "inspect_eval_json/log__test_eval_log__log_formats.json": OLDER,
    "inspect_eval_json/log__test_eval_log__log_images_tc.json": OLDER,
}


def read(*events, log=None, **more):
    [trace] = traces_of(as_json(inspect_log(sample(*events, **more), **(log or {}))))
    return trace


@pytest.mark.parametrize("row", rows("inspect_eval_json", "inspect_eval_zip"))
def test_it_finds_the_counts_of_the_index_but_for_usage_it_overlooked(row):
    items = archive_items((DATA / row["path"]).read_bytes())
    traces = [one for one in items if hasattr(one, "steps")]
    wanted = expected(row)
    if row["path"] in DIFFERENCES:
        wanted |= {"usage_known": 1, "usage_missing": 0}
    assert index_counts(traces) == wanted, DIFFERENCES.get(row["path"])
    assert not rejected_of(items)
    assert not [note for t in traces for note in t.notes if "in all" in note]


@pytest.mark.parametrize("row", rows("inspect_events_fixture"))
def test_bare_events_of_a_fixture_are_no_trace(row):
    assert "test fixtures" in refusal_of((DATA / row["path"]).read_bytes())


def test_the_known_run_is_found_in_every_epoch(shared_data):
    path = "inspect_eval_zip/gen_logs_eval_rt_AphVT9KMa2tgkFtVsfeQaR.eval"
    items = archive_items((shared_data / path).read_bytes())
    traces = [one for one in items if hasattr(one, "steps")]
    assert {(one.task, one.trial) for one in traces} == {
        (f"support/{task}", trial)
        for task in ("refund", "dup-charge")
        for trial in range(1, 6)
    }
    for trace in traces:
        [found] = serial_sequences(trace)
        assert (found.agent, found.outputs) == (
            "billing_agent", (112, 100, 86, 78, 70, 43),
        )  # fmt: skip
        assert found.order is OrderSource.TIME


def test_it_gives_each_call_to_its_agent_and_the_grading_call_to_the_scorer():
    [trace] = traces_of(as_json(WHOLE))
    assert agents_of(trace, StepKind.MODEL_CALL) == ["billing", "billing", "graded"]
    found = {one.agent: one.outputs for one in serial_sequences(trace)}
    assert found == {"billing": (40, 30), "graded": (5,)}
    first = calls_of(trace)[0]
    assert (first.provider, first.model, first.finish_raw) == (
        "openai", "m-1", "tool_calls",
    )  # fmt: skip


def test_it_joins_a_tool_to_the_call_that_asked_for_it():
    [trace] = traces_of(as_json(WHOLE))
    [step] = of_kind(trace, StepKind.TOOL_CALL)
    assert trace.steps[step.call.requested_by].native_id == "m1"
    assert (step.body.input, step.body.output) == ({"n": 1}, "r")
    assert step.status is StepStatus.OK


def test_what_is_the_truth_is_a_label_only():
    [trace] = traces_of(as_json(WHOLE))
    assert (trace.task, trace.trial, trace.outcome.kind) == (
        "quiz/q1", 2, OutcomeKind.PASS,
    )  # fmt: skip
    assert trace.labels["target"] == "secret"
    assert "secret" not in str(trace.steps) + str(trace.metadata)


@pytest.mark.parametrize(
    ("value", "kind", "score"),
    [("C", "pass", 1.0), ("I", "fail", 0.0), ("N", "fail", 0.0), ("P", "score", 0.5),
     (True, "pass", 1.0), (False, "fail", 0.0), (7, "score", 7.0), (1, "score", 1.0),
     ("no", "fail", 0.0), ("blue", "unknown", None), ({"a": "C"}, "pass", 1.0),
     ({"a": 1, "b": 0}, "unknown", None), ([1, 0], "unknown", None),
     (None, "unknown", None)],
)  # fmt: skip
def test_it_reads_every_kind_of_score(value, kind, score):
    outcome = read(*INSPECT_RUN, scores={"match": {"value": value}}).outcome
    assert (outcome.kind.value, outcome.score) == (kind, score)


def test_numbers_are_a_verdict_where_their_accuracy_is_counted():
    scorers = [{"name": "match", "metrics": [{"name": "inspect_ai/accuracy"}]}]
    log = {"eval": {"task": "quiz", "scorers": scorers}}
    trace = read(*INSPECT_RUN, log=log, scores={"match": {"value": 1}})
    assert trace.outcome.kind is OutcomeKind.PASS


def test_of_several_scorers_the_first_of_the_task_decides():
    log = {"eval": {"task": "quiz", "scorers": [{"name": "b"}, {"name": "a"}]}}
    trace = read(
        *INSPECT_RUN, log=log, scores={"a": {"value": "C"}, "b": {"value": "I"}}
    )
    assert trace.outcome.source == "scores.b.value"
    assert trace.outcome.kind is OutcomeKind.FAIL
    assert any("Of 2 scorers the first" in note for note in trace.notes)


def test_usage_that_is_null_is_missing():
    assert calls_of(read(model(1, None)))[0].usage.state is UsageState.MISSING


@pytest.mark.parametrize(("total", "given"), [(29, 9), (59, 39), (None, 39)])
def test_the_total_tells_whether_the_cache_stands_beside_the_input(total, given):
    usage = {"input_tokens": 9, "output_tokens": 20, "total_tokens": total,
             "input_tokens_cache_read": 30}  # fmt: skip
    call = model(1, 20)
    call["output"]["usage"] = usage
    assert calls_of(read(call))[0].usage.input_total == given


def test_a_failed_attempt_and_the_one_after_it_are_two_calls():
    trace = read(model(1, None, error="overloaded"), model(4, 9, retries=2))
    first, second = of_kind(trace, StepKind.MODEL_CALL)
    assert (first.status, first.error_message) == (StepStatus.ERROR, "overloaded")
    [sequence] = serial_sequences(trace)
    assert sequence.retries_removed == (first.seq,)
    assert second.body.attributes["retries"] == 2
    assert any("sent again" in note for note in trace.notes)


def test_an_answer_out_of_the_cache_is_said_and_not_in_the_sum():
    trace = read(model(1, 9, cache="read"), model_usage={"m": {"output_tokens": 0}})
    assert trace.notes == ("Answers that came out of Inspect's cache: 1.",)


def test_a_call_that_is_pending_was_only_announced():
    pending = event("model", 1, model="m", pending=True, output={"choices": []})
    trace = read(pending)
    assert trace.steps[0].status is StepStatus.UNFINISHED
    assert calls_of(trace)[0].is_placeholder


def test_of_two_events_with_one_id_the_later_one_is_read():
    early = event("model", 1, uuid="x", model="m", pending=True)
    trace = read(early, model(1, 9, uuid="x"))
    assert [call.usage.output_total for call in calls_of(trace)] == [9]


def test_a_total_that_is_not_the_sum_is_shown_and_never_added():
    trace = read(model(1, 9), model_usage={"m": {"output_tokens": 50}})
    assert "records 50 output tokens in all; its calls sum up to 9." in trace.notes[0]


def test_texts_that_are_stored_once_are_put_back():
    call = model(1, 9, input_refs=[[0, 1], [1, 2]])
    pool = {"messages": [{"role": "user", "content": "attachment://h"}, {"role": "x"}]}
    trace = read(call, events_data=pool, attachments={"h": "long text"})
    sent = trace.steps[0].body.input
    assert sent == [{"role": "user", "content": "long text"}, {"role": "x"}]


def test_texts_that_are_not_stored_are_said(monkeypatch):
    monkeypatch.setattr("apps.engine.reading.inspect_ai.texts.BUDGET", 8)
    begun = event("sample_init", 1, sample={"input": "attachment://lost"})
    trace = read(begun, model(2, 9, input_refs=[[0, 1]]), attachments={"h": "x" * 9},
                 events_data={"messages": ["attachment://h"]})  # fmt: skip
    assert len(trace.notes) == 2
    assert "not in the file: 1" in trace.notes[0]
    assert "too large: 1" in trace.notes[1]


def test_messages_that_were_sent_before_are_not_repeated():
    first, second = {"role": "user", "content": "a"}, {"role": "user", "content": "b"}
    trace = read(
        model(1, 9) | {"input": [first]}, model(4, 9) | {"input": [first, second]}
    )
    assert [step.body.input for step in trace.steps] == [[first], [second]]


def test_the_agent_of_a_handoff_and_the_model_inside_a_tool_have_calls_of_their_own():
    trace = read(
        begin(1, "a", "agent", "boss"),
        model(2, 9, ("c1", "c2"), span_id="a"),
        tool(4, "c1", span_id="a", agent="helper", agent_span_id="h"),
        begin(4, "t1", "tool", "transfer", "a"),
        begin(4, "h", "agent", "helper", "t1"),
        model(5, 8, span_id="h"),
        end(7, "h"),
        begin(8, "t2", "tool", "search", "a"),
        model(8, 7, span_id="t2"),
        end(10, "t2"),
        model(11, 6, span_id="a"),
    )
    assert agents_of(trace, StepKind.MODEL_CALL) == ["boss", "helper", "search", "boss"]
    vias = {one.agent: one.via.value for one in trace.invocations}
    assert vias["helper"] == "handoff"
    assert vias["search"] == "tool"


def test_an_agent_inside_a_handoff_was_handed_over_to():
    trace = read(
        begin(1, "a", "agent", "boss"),
        begin(2, "x", "handoff", "helper", "a"),
        begin(2, "t", "tool", "transfer_to_helper", "x"),
        begin(2, "h", "agent", "helper", "t"),
        model(3, 8, span_id="h"),
        begin(5, "k", "agent", "clerk", "h"),
        model(6, 7, span_id="k"),
    )
    vias = {one.agent: one.via.value for one in trace.invocations}
    assert vias == {
        None: "root",
        "boss": "root",
        "helper": "handoff",
        "clerk": "subagent",
    }
    agents = of_kind(trace, StepKind.AGENT)
    assert [step.parent for step in agents] == [None, 0, 1]


def test_older_logs_nest_events_and_mark_steps():
    inner = model(3, 8)
    older = [
        event("step", 1, action="begin", type="solver", name="basic"),
        model(2, 9, ("c1",)),
        tool(3, "c1", events=[inner], agent="helper"),
        model(5, 7),
        event("step", 6, action="end", type="solver", name="basic"),
        event("step", 6, action="begin", type="scorer", name="graded"),
        model(7, 5),
        event("step", 8, action="end", type="scorer", name="graded"),
        event("subtask", 9, name="dig", type="fork", input={}, events=[model(9, 4)]),
    ]
    trace = read(transcript={"events": older})
    assert agents_of(trace, StepKind.MODEL_CALL) == [
        None, "helper", None, "graded", "dig",
    ]  # fmt: skip


def test_events_without_an_end_are_stamped_when_they_end():
    late = {key: value for key, value in model(5, 9).items() if key != "completed"}
    late["output"]["time"] = 2.0
    step = read(late).steps[0]
    assert step.end_ns - step.start_ns == 2 * 10**9


def test_limits_errors_and_compactions_are_steps():
    trace = read(
        model(1, 9),
        event("compaction", 3, type="summary", tokens_before=90),
        model(4, 8),
        event("sample_limit", 6, type="token", message="too many"),
        event("error", 7, error={"message": "boom", "traceback": "..."}),
    )
    assert [call.resets_context for call in calls_of(trace)] == [False, True]
    assert [step.name for step in trace.steps[-2:]] == [
        "limit reached: token", "error of the sample",
    ]  # fmt: skip
    assert trace.steps[-1].error_message == "boom"


def test_an_error_of_the_sample_without_an_event_is_a_step():
    trace = read(model(1, 9), error={"message": "boom"}, error_retries=[{}])
    assert trace.steps[-1].error_message == "boom"
    assert any("Earlier attempts" in note for note in trace.notes)


def test_a_tool_that_failed_says_how():
    failed = tool(1, "c", error={"type": "timeout", "message": "slow"})
    step = read(failed).steps[0]
    assert (step.status, step.error_type, step.error_message) == (
        StepStatus.ERROR, "timeout", "slow",
    )  # fmt: skip


def test_kinds_that_make_no_step_are_counted():
    trace = read(model(1, 9), event("state", 2), event("store", 2), event("new", 2))
    assert trace.notes == (
        "Events of kinds that are not read: 3 (new, state, store).",
    )  # fmt: skip


def test_without_events_the_messages_are_read():
    talk = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    trace = read(messages=talk)
    assert calls_of(trace)[0].usage.state is UsageState.MISSING
    assert "no events" in trace.notes[0]


def test_a_header_alone_holds_no_samples():
    header = inspect_log() | {"samples": None}
    assert "no samples" in refusal_of(as_json(header))


def test_a_bad_sample_is_rejected_and_the_others_are_read():
    items = items_of(as_json(inspect_log(3, sample(*INSPECT_RUN))))
    [bad] = rejected_of(items)
    assert bad.place == "record 1 (line 1), $.samples[0]"
    assert sum(hasattr(one, "steps") for one in items) == 1


def test_spans_nested_without_end_are_read_in_linear_time():
    deep = [begin(1, str(n), "agent", "a", str(n - 1)) for n in range(3000)]
    calls = [model(2, 9, span_id="2999") for _ in range(3000)]
    assert len(calls_of(read(*deep, *calls))) == 3000


def test_it_is_read_alike_when_the_format_is_chosen():
    data = as_json(WHOLE)
    assert slug_of(data) == "inspect-log"
    assert traces_of(data, "inspect-log") == traces_of(data)
