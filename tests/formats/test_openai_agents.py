"""The OpenAI Agents SDK's own traces: all encodings, sums of turns, zeros, handoffs."""

from __future__ import annotations

import pytest

from apps.engine.sequences import serial_sequences
from apps.engine.trace import (
    FinishReason,
    StepKind,
    StepStatus,
    Trace,
    UsageState,
    Via,
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

SLUG = "openai-agents"
RUN = "trace_" + "ab" * 16
FIRST = 1_700_000_000


def trace(**fields):
    return {"object": "trace", "id": RUN, "workflow_name": "Support",
            "group_id": "chat-1", "metadata": {"trial": "2", "task": "refund"},
            **fields}  # fmt: skip


def span(number, parent, kind, at=0, lasts=1, **fields):
    data = {"type": kind, **fields.pop("data", {})}
    return {"object": "trace.span", "id": f"span_{number}", "trace_id": RUN,
            "parent_id": parent and f"span_{parent}", "started_at": FIRST + at,
            "ended_at": FIRST + at + lasts, "span_data": data, "error": None,
            **fields}  # fmt: skip


def usage(output, **more):
    return {"requests": 1, "input_tokens": output and 10, "output_tokens": output,
            "total_tokens": output and output + 10, **more}  # fmt: skip


def response(number, parent, output, at=0, **fields):
    data = {"response_id": f"resp_{number}", "usage": usage(output)}
    return span(number, parent, "response", at, data=data, **fields)


def turn(number, parent, agent, output, at=0):
    told = {"sdk_span_type": "turn", "agent_name": agent, "usage": usage(output)}
    return span(number, parent, "custom", at, 1, data={"name": "turn", "data": told})


def billing():
    """Triage hands over to billing, whose three turns hold one call each."""
    made = [trace(), span(1, None, "agent", 0, 3, data={"name": "Triage"}),
            turn(2, 1, "Triage", 112), response(3, 2, 112),
            span(4, 2, "handoff", 1, data={"from_agent": "Triage", "to_agent": "Billing"}),
            span(5, None, "agent", 3, 20, data={"name": "Billing"})]  # fmt: skip
    for index, output in enumerate((100, 86, 43)):
        number = 10 + 10 * index
        made += [
            turn(number, 5, "Billing", output, at=4 + 2 * index),
            response(number + 1, number, output, at=4 + 2 * index),
            span(number + 2, number, "function", 5 + 2 * index, 0.5,
                 data={"name": "ledger", "input": '{"id": 1}', "output": "[1]"}),
        ]  # fmt: skip
    return made


def only(*values):
    [found] = traces_of(lines(*values), SLUG)
    return found


def test_it_gives_each_call_to_the_agent_whose_turn_it_was():
    found = only(*billing())
    assert [(one.agent, one.outputs) for one in serial_sequences(found)] == [
        ("Triage", (112,)),
        ("Billing", (100, 86, 43)),
    ]
    assert {one.agent: one.via for one in found.invocations}["Billing"] is Via.HANDOFF
    assert (found.name, found.session, found.task, found.trial, found.native_id) == (
        "Support", "chat-1", "refund", 2, RUN)  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        lines(*billing()),
        lines(*reversed(billing())),
        as_json(billing()),
        as_json({"data": billing()}),
        lines({"data": billing()[:3]}, {"data": billing()[3:]}),
        as_json({"traces": billing()[:1], "spans": billing()[1:]}),
        lines(*billing()).replace(b"\n", b"\r\n\r\n"),
    ],
)
def test_it_reads_the_same_run_alike_in_every_encoding(data):
    assert slug_of(data) == SLUG
    assert traces_of(data) == [only(*billing())]


def test_it_never_counts_what_a_turn_says_of_its_calls():
    found = only(*billing())
    kinds = [step.kind for step in found.steps]
    assert kinds.count(StepKind.MODEL_CALL) == 4
    assert not any("differ" in note for note in found.notes)
    wrong = billing()
    wrong[2]["span_data"]["data"]["usage"]["output_tokens"] = 999
    assert any("differ from the sum" in note for note in only(*wrong).notes)


def test_it_takes_zeros_with_a_request_count_for_not_recorded():
    found = only(trace(), response(1, None, 0))
    [call] = [step.call for step in found.steps]
    assert call.usage.state is UsageState.ZERO_SUSPECT
    assert call.usage.output_total is None


def test_it_leaves_usage_missing_where_a_generation_has_none():
    data = {"input": [{"role": "user", "content": "a"}], "model": "m",
            "output": [{"role": "assistant", "content": "b", "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "t"}}]}],
            "usage": None}  # fmt: skip
    [step] = only(trace(), span(1, None, "generation", data=data)).steps
    assert step.call.usage.state is UsageState.MISSING
    assert step.call.model == "m"
    assert step.call.tool_call_ids == ("c1",)
    assert step.body.input == data["input"]


def test_it_keeps_cached_and_reasoning_tokens_apart():
    more = usage(50, input_tokens_details={"cached_tokens": 7},
                 output_tokens_details={"reasoning_tokens": 8})  # fmt: skip
    [step] = only(trace(), span(1, None, "response", data={"usage": more})).steps
    told = step.call.usage
    assert (told.input_total, told.input_cached) == (10, 7)
    assert (told.output_total, told.output_reasoning) == (50, 8)


def test_it_reads_the_response_where_a_processor_kept_it():
    told = {"id": "resp_x", "model": "gpt", "status": "incomplete",
            "incomplete_details": {"reason": "max_output_tokens"}, "output": [],
            "usage": {"input_tokens": 1, "output_tokens": 2}}  # fmt: skip
    [step] = only(trace(), span(1, None, "response", data={"response": told})).steps
    assert step.call.finish is FinishReason.LENGTH
    assert (step.call.model, step.call.response_id) == ("gpt", "resp_x")
    assert step.call.usage.output_total == 2


def test_it_reads_an_error_with_its_data():
    error = {"message": "Tool failed", "data": {"tool_name": "t", "error": "boom"}}
    [step] = only(
        trace(), span(1, None, "function", data={"name": "t"}, error=error)
    ).steps
    assert step.status is StepStatus.ERROR
    assert step.error_message == "Tool failed: boom"
    assert step.body.attributes["error_data"] == error["data"]


def test_it_names_the_agent_of_a_turn_whose_agent_span_was_cut_off():
    whole = billing()
    cut = [one for one in whole if one["id"] != "span_5"]
    sequences = {one.agent: one.outputs for one in serial_sequences(only(*cut))}
    assert sequences["Billing"] == (100, 86, 43)


def test_it_keeps_all_other_kinds_of_spans_as_steps():
    kinds = ("guardrail", "custom", "mcp_tools", "speech", "transcription", "new_kind")
    spans = [
        span(n, None, kind, data={"name": kind}) for n, kind in enumerate(kinds, 1)
    ]
    found = only(trace(), *spans)
    assert [step.kind for step in found.steps].count(StepKind.OTHER) == 5
    assert {step.native_kind for step in found.steps} == set(kinds)


def test_it_says_which_trace_has_no_spans():
    other = "trace_" + "cd" * 16
    items = items_of(lines(*billing(), trace(id=other)), SLUG)
    [rejected] = rejected_of(items)
    assert "no span of this trace" in rejected.reason
    assert rejected.excerpt == other
    assert "no span of this trace" in refusal_of(lines(trace()), SLUG)


def test_it_rejects_what_is_no_span_and_keeps_the_rest():
    bad = [{"object": "trace.span", "id": "x"}, {"other": 1}, span(9, None, "agent") | {
        "span_data": 3}, span(9, None, "agent") | {"trace_id": None}]  # fmt: skip
    items = items_of(lines(*billing(), *bad), SLUG)
    assert len(rejected_of(items)) == 4
    assert [one for one in items if isinstance(one, Trace)] == [only(*billing())]
    nested = items_of(as_json({"data": [*billing(), *bad]}), SLUG)
    assert len(rejected_of(nested)) == 4
    assert "$.data[" in rejected_of(nested)[0].place


@pytest.mark.parametrize(
    "row",
    rows("openai_agents_sdk_trace", "traps/crlf.jsonl", "traps/blank_lines.jsonl",
         "traps/latin1_bytes.jsonl", "traps/truncated_last_line.jsonl"),
)  # fmt: skip
def test_it_finds_the_counts_of_the_index(row):
    """The index counts a handoff span of this SDK as no tool call: one in each run."""
    traces = traces_of((DATA / row["path"]).read_bytes())
    found = counts_of(traces)
    steps = [step for one in traces for step in one.steps]
    found["tool_calls"] -= sum(step.kind is StepKind.HANDOFF for step in steps)
    assert found == expected(row)


@pytest.mark.parametrize(
    "path",
    ["openai_agents_sdk_trace/responses_handoff_3runs.jsonl",
     "openai_agents_sdk_trace/responses_handoff_3runs.backend_payload.json",
     "traps/crlf.jsonl", "traps/blank_lines.jsonl", "traps/latin1_bytes.jsonl",
     "traps/truncated_last_line.jsonl"],
)  # fmt: skip
def test_it_finds_the_known_answers_of_the_billing_agent(path, shared_data):
    for one in traces_of((shared_data / path).read_bytes()):
        found = {seq.agent: seq.outputs for seq in serial_sequences(one)}
        assert found == {
            "Triage Agent": (112,),
            "Billing Agent": (100, 86, 78, 70, 43),
        }
