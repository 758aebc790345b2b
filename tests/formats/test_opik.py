"""Opik exports: traces with spans, usage in its own and the provider's words."""

from __future__ import annotations

import pytest

from apps.engine.sequences import serial_sequences
from apps.engine.trace import (
    FinishReason,
    OutcomeKind,
    StepKind,
    StepStatus,
    Trace,
    UsageState,
)
from tests.formats.index import DATA, expected, rows
from tests.formats.reading import (
    as_json,
    counts_of,
    items_of,
    lines,
    refusal_of,
    rejected_of,
    slug_of,
    traces_of,
)

SLUG = "opik"
RUN = "01a22a79-993b-7ecd-b87d-a7bfbfc9e804"


def span(number, parent, kind, at=0, lasts=1, **fields):
    return {"id": f"s{number}", "trace_id": RUN, "name": f"n{number}", "type": kind,
            "parent_span_id": parent and f"s{parent}",
            "start_time": f"2025-01-01T00:00:{at:02d}Z",
            "end_time": f"2025-01-01T00:00:{at + lasts:02d}Z", "input": {"q": 1},
            "output": {"a": 2}, **fields}  # fmt: skip


def llm(number, parent, output, at=0, **fields):
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": output,
        "total_tokens": output + 10,
    }
    return span(
        number, parent, "llm", at, usage=usage, model="m", provider="p", **fields
    )


def trace(**fields):
    return {"id": RUN, "name": "Support", "start_time": "2025-01-01T00:00:00Z",
            "end_time": "2025-01-01T00:00:50Z", "input": {"q": 1}, "output": {"a": 2},
            "metadata": {"trial": 2}, "thread_id": "chat-1", "project_name": "demo",
            **fields}  # fmt: skip


def billing():
    made = [
        span(1, None, "general", 0, 40),
        span(2, 1, "general", 1, 30, name="billing"),
    ]
    for index, output in enumerate((112, 100, 43)):
        made += [llm(10 + index, 2, output, 2 + 3 * index),
                 span(20 + index, 2, "tool", 4 + 3 * index, name="ledger")]  # fmt: skip
    return made


def whole():
    return {"trace": trace(), "spans": billing()}


def only(*spans, **fields):
    [found] = traces_of(as_json({"trace": trace(**fields), "spans": list(spans)}), SLUG)
    return found


def test_it_takes_the_function_that_made_the_calls_for_the_agent_and_says_so():
    found = only(*billing())
    [sequence] = serial_sequences(found)
    assert (sequence.agent, sequence.outputs) == ("billing", (112, 100, 43))
    assert "No span is marked as an agent" in found.notes[0]
    assert (found.name, found.session, found.trial, found.native_id) == (
        "Support", "chat-1", 2, RUN)  # fmt: skip
    assert found.metadata["project_name"] == "demo"


@pytest.mark.parametrize(
    "data",
    [
        as_json(whole()),
        as_json([whole()]),
        lines(whole()),
        as_json({**trace(), "spans": billing()}),
        as_json({"traces": [trace()], "spans": billing()}),
        as_json({"content": billing()}),
        lines(*reversed(billing())),
        lines(trace(), *billing()),
    ],
)
def test_it_reads_the_same_run_alike_in_every_form(data):
    assert slug_of(data) == SLUG
    [found] = traces_of(data)
    assert found.steps == only(*billing()).steps


def test_it_reads_kinds_errors_and_what_the_span_holds():
    error = {"exception_type": "ValueError", "message": "bad id", "traceback": "..."}
    found = only(span(1, None, "guardrail"), span(2, None, "tool", 1, error_info=error))
    assert [step.kind for step in found.steps] == [
        StepKind.GUARDRAIL,
        StepKind.TOOL_CALL,
    ]
    failed = found.steps[1]
    assert (failed.status, failed.error_type, failed.error_message) == (
        StepStatus.ERROR, "ValueError", "bad id")  # fmt: skip
    assert failed.body.attributes["traceback"] == "..."
    assert (failed.body.input, failed.body.output) == ({"q": 1}, {"a": 2})


def test_it_reads_model_finish_and_tool_calls_from_the_answer():
    choice = {"finish_reason": "tool_calls", "message": {"tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "t"}}]}}  # fmt: skip
    made = llm(1, None, 5) | {
        "output": {"choices": [choice]},
        "metadata": {"id": "chatcmpl-1"},
    }
    [step] = only(made).steps
    assert (step.call.model, step.call.provider) == ("m", "p")
    assert step.call.finish is FinishReason.TOOL_CALLS
    assert step.call.response_id == "chatcmpl-1"
    assert step.call.tool_call_ids == ("c1",)


def usage_of(usage, **fields):
    [step] = only(span(1, None, "llm", usage=usage, **fields)).steps
    return step.call.usage


def test_it_reads_details_that_stand_under_the_providers_own_names():
    told = usage_of({
        "prompt_tokens": 20, "completion_tokens": 9, "total_tokens": 29,
        "original_usage.prompt_tokens": 20, "original_usage.completion_tokens": 9,
        "original_usage.completion_tokens_details.reasoning_tokens": 4,
        "original_usage.prompt_tokens_details.cached_tokens": 8,
    })  # fmt: skip
    assert (told.input_total, told.input_cached) == (20, 8)
    assert (told.output_total, told.output_reasoning) == (9, 4)


def test_it_adds_cached_input_where_the_provider_counts_it_beside():
    told = usage_of({
        "prompt_tokens": 5, "completion_tokens": 9, "original_usage.input_tokens": 5,
        "original_usage.output_tokens": 9,
        "original_usage.cache_read_input_tokens": 100,
    })  # fmt: skip
    assert (told.input_total, told.input_cached, told.output_total) == (105, 100, 9)


def test_it_says_missing_or_suspect_and_never_zero():
    assert usage_of(None).state is UsageState.MISSING
    assert usage_of({}).state is UsageState.MISSING
    zeros = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    assert usage_of(zeros).state is UsageState.ZERO_SUSPECT
    other = usage_of(
        None, metadata={"usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    )
    assert other.output_total == 2


def test_it_keeps_scores_as_labels_and_takes_only_a_verdict_for_the_outcome():
    scores = [{"name": "relevance", "value": 1.0}]
    found = only(*billing(), feedback_scores=scores)
    assert (found.outcome.kind, found.labels) == (
        OutcomeKind.UNKNOWN, {"feedback_scores": scores})  # fmt: skip
    told = [*scores, {"name": "Task success", "value": 1.0}]
    assert only(*billing(), feedback_scores=told).outcome.kind is OutcomeKind.PASS


def test_it_keeps_a_trace_whose_spans_are_not_in_the_file():
    [found] = traces_of(lines(trace()))
    assert len(found.steps) == 1
    assert found.steps[0].body.input == {"q": 1}
    assert "without its spans" in found.notes[0]


def test_it_recognises_a_trace_whose_head_ends_inside_its_input():
    made = {"trace": trace(input={"q": "x" * 100_000}), "spans": billing()}
    moved = {"project_name": "demo"} | made["trace"]
    data = as_json(made | {"trace": moved})
    assert slug_of(data) == SLUG
    assert traces_of(data)[0].steps == only(*billing()).steps


def test_it_rejects_what_is_no_span_and_keeps_the_rest():
    bad = [7, {"id": "x"}, span(9, None, "tool", id=None)]
    items = items_of(as_json({"trace": trace(), "spans": [*billing(), *bad]}), SLUG)
    assert len(rejected_of(items)) == 3
    assert "$.spans[8]" in rejected_of(items)[0].place
    [found] = [one for one in items if isinstance(one, Trace)]
    assert found.steps == only(*billing()).steps


@pytest.mark.parametrize(
    "value", [{"trace": {"id": 1}, "spans": []}, {"spans": []}, [], [{}]]
)
def test_it_recognises_nothing_else_as_opik(value):
    assert slug_of(as_json(value)) != SLUG
    assert refusal_of(as_json(value), SLUG).endswith(".")


@pytest.mark.parametrize("row", rows("opik_export"))
def test_it_finds_the_counts_of_the_index(row):
    traces = traces_of((DATA / row["path"]).read_bytes())
    assert counts_of(traces) == expected(row)
    [sequence] = serial_sequences(traces[0])
    assert (sequence.agent, sequence.missing) == ("billing_agent", 6)
