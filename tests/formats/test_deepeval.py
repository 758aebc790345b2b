"""DeepEval traces: one list of spans for each type, metrics, expected answers."""

from __future__ import annotations

import pytest

from apps.engine.sequences import serial_sequences
from apps.engine.trace import (
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

SLUG = "deepeval"
RUN = "c1a28627-3e36-4a27-91f0-3810932cb126"


def span(number, parent, kind, at=0, lasts=1, **fields):
    return {"uuid": f"s{number}", "name": f"n{number}", "status": "SUCCESS",
            "type": kind, "parentUuid": parent and f"s{parent}",
            "startTime": f"2025-01-01T00:00:{at:02d}.000Z",
            "endTime": f"2025-01-01T00:00:{at + lasts:02d}.000Z", **fields}  # fmt: skip


def llm(number, parent, output, at=0, **fields):
    return span(number, parent, "llm", at, model="m", provider="P",
                inputTokenCount=10.0, outputTokenCount=float(output), **fields)  # fmt: skip


def trace(**fields):
    return {"uuid": RUN, "name": "support", "threadId": "chat-1",
            "startTime": "2025-01-01T00:00:00.000Z",
            "endTime": "2025-01-01T00:00:50.000Z", "metadata": {"trial": 2},
            "baseSpans": [], "agentSpans": [], "llmSpans": [], "toolSpans": [],
            "retrieverSpans": [], **fields}  # fmt: skip


def billing(**fields):
    agents = [span(1, None, "agent", 0, 9, name="triage"),
              span(3, 1, "agent", 10, 30, name="invoke_agent billing")]  # fmt: skip
    calls = [
        llm(2, 1, 112, 1),
        llm(4, 3, 100, 11),
        llm(5, 3, 86, 14),
        llm(6, 3, 43, 17),
    ]
    tools = [span(7, 3, "tool", 12, name="execute_tool ledger"),
             span(8, 3, "tool", 15, name="ledger")]  # fmt: skip
    return trace(agentSpans=agents, llmSpans=calls[::-1], toolSpans=tools, **fields)


def only(value):
    [found] = traces_of(as_json(value), SLUG)
    return found


def test_it_gives_each_call_to_its_agent():
    found = only(billing())
    sequences = [(one.agent, one.outputs) for one in serial_sequences(found)]
    assert sequences == [("triage", (112,)), ("billing", (100, 86, 43))]
    assert (found.name, found.session, found.trial, found.native_id) == (
        "support", "chat-1", 2, RUN)  # fmt: skip
    tools = [step.call.name for step in found.steps if step.kind is StepKind.TOOL_CALL]
    assert tools == ["ledger", "ledger"]


@pytest.mark.parametrize(
    "data",
    [
        as_json(billing()),
        as_json([billing()]),
        lines(billing()),
        as_json({"traces": [billing()]}),
        as_json({"testCases": [{"trace": billing()}]}),
    ],
)
def test_it_reads_the_same_run_alike_in_every_form(data):
    assert slug_of(data) == SLUG
    assert traces_of(data) == [only(billing())]


def test_it_reads_the_names_of_python_as_it_reads_those_of_json():
    made = {"uuid": RUN, "llm_spans": [{
        "uuid": "s1", "type": "llm", "start_time": "2025-01-01T00:00:00Z",
        "end_time": "2025-01-01T00:00:01Z", "input_token_count": 10,
        "output_token_count": 5, "model": "m", "provider": "P",
        "status": "SUCCESS", "name": "n1"}]}  # fmt: skip
    assert only(made).steps == only(trace(llmSpans=[llm(1, None, 5)])).steps


def usage_of(**fields):
    [step] = only(trace(llmSpans=[span(1, None, "llm", **fields)])).steps
    return step.call.usage


def test_it_says_missing_partial_or_suspect_and_never_zero():
    assert usage_of().state is UsageState.MISSING
    assert usage_of(outputTokenCount=5.0).state is UsageState.PARTIAL
    zeros = usage_of(inputTokenCount=0.0, outputTokenCount=0.0)
    assert zeros.state is UsageState.ZERO_SUSPECT


def test_it_reads_errors():
    made = trace(toolSpans=[span(1, None, "tool", status="ERRORED", error="timeout")])
    [step] = only(made).steps
    assert (step.status, step.error_message) == (StepStatus.ERROR, "timeout")


def test_it_reads_every_list_by_its_type():
    made = trace(baseSpans=[span(1, None, "base")],
                 retrieverSpans=[span(2, None, "retriever")],
                 toolSpans=[span(3, None, None)])  # fmt: skip
    kinds = {step.native_id: step.kind for step in only(made).steps}
    assert kinds == {"s1": StepKind.OTHER, "s2": StepKind.RETRIEVAL,
                     "s3": StepKind.TOOL_CALL}  # fmt: skip


def test_it_takes_the_arguments_of_a_tool_from_the_calls_that_it_names():
    called = [{"name": "t", "inputParameters": {"id": 1}}]
    made = trace(toolSpans=[span(1, None, "tool", toolsCalled=called, output="x")])
    [step] = only(made).steps
    assert (step.body.input, step.body.output) == ({"id": 1}, "x")


def test_it_keeps_metrics_and_expected_answers_as_labels_only():
    metrics = [{"name": "Task Completion", "success": True, "score": 1.0}]
    found = only(billing(metricsData=metrics, expectedOutput="a refund of 42"))
    assert found.labels == {"metricsData": metrics, "expectedOutput": "a refund of 42"}
    assert found.outcome.kind is OutcomeKind.UNKNOWN
    assert "refund of 42" not in str((found.metadata, found.steps))
    own = trace(
        llmSpans=[llm(1, None, 5, expectedOutput="secret", metricsData=metrics)]
    )
    assert "secret" not in str(only(own).steps)


def test_it_takes_the_success_of_a_test_case_for_the_outcome():
    case = {
        "name": "refunds",
        "success": False,
        "expectedOutput": "42",
        "trace": billing(),
    }
    run = {"testRunData": {"testFile": "t.py", "testCases": [case]}}
    assert slug_of(as_json(run)) == SLUG
    found = only(run)
    assert (found.outcome.kind, found.task) == (OutcomeKind.FAIL, "refunds")
    assert found.outcome.source == "testCases.success"
    assert found.labels == {"expectedOutput": "42"}
    assert found.steps == only(billing()).steps


def test_it_rejects_what_is_no_span_and_keeps_the_rest():
    made = billing(baseSpans=[7, {"name": "no uuid"}])
    items = items_of(as_json(made), SLUG)
    assert len(rejected_of(items)) == 2
    assert "$.baseSpans[0]" in rejected_of(items)[0].place
    [found] = [one for one in items if isinstance(one, Trace)]
    assert found == only(billing())


@pytest.mark.parametrize(
    "value", [{"uuid": "a"}, {"llmSpans": []}, [], [{"uuid": "a"}]]
)
def test_it_recognises_nothing_else_as_deepeval(value):
    assert slug_of(as_json(value)) != SLUG
    assert refusal_of(as_json(value), SLUG).endswith(".")


def test_it_says_that_a_trace_has_no_spans():
    assert "has no spans" in refusal_of(as_json(trace()))


@pytest.mark.parametrize("row", rows("deepeval_trace_json"))
def test_it_finds_the_counts_of_the_index(row):
    assert counts_of(traces_of((DATA / row["path"]).read_bytes())) == expected(row)
