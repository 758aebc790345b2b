"""Span trees: owners, wrappers, orphans, circles, units, and one code for both encodings."""

from __future__ import annotations

import time

import pytest

from apps.engine.sequences import serial_sequences
from apps.engine.trace import (
    FinishReason,
    OrderSource,
    StepKind,
    StepStatus,
    UsageState,
    Via,
)
from tests.formats.otlp_files import (
    START,
    TRACE,
    agent,
    as_json,
    as_protobuf,
    call,
    document,
    span,
    span_id,
)
from tests.formats.reading import items_of, lines, rejected_of, traces_of


def only(*spans):
    """The one trace of these spans, which must be the same in both encodings."""
    [trace] = traces_of(as_json(*spans))
    assert traces_of(as_protobuf(*spans)) == [trace]
    return trace


def sequences(trace):
    return [(one.agent, one.outputs) for one in serial_sequences(trace)]


def test_it_climbs_over_the_nodes_of_a_graph_that_are_visited_again_and_again():
    """LangGraph-like: each turn of the agent is an agent span with a single call."""
    spans = [agent(1, None, "graph", lasts=100), agent(2, 1, "billing", lasts=90)]
    for turn in range(5):
        spans += [agent(10 + turn, 2, "agent", at=10 + turn),
                  call(20 + turn, 10 + turn, 100 - turn, at=10 + turn, lasts=0.4)]  # fmt: skip
    trace = only(*spans)
    assert sequences(trace) == [("billing", (100, 99, 98, 97, 96))]
    assert [one.agent for one in trace.invocations] == ["graph", "billing"]
    assert "read as steps" in trace.notes[0]


def test_it_climbs_to_a_graph_span_that_is_no_agent_span():
    spans = [span(1, None, "workflow", lasts=99), span(2, 1, "billing graph", lasts=90)]
    for turn in range(3):
        spans += [agent(10 + turn, 2, "agent", at=10 + turn),
                  call(20 + turn, 10 + turn, 9 - turn, at=10 + turn, lasts=0.4)]  # fmt: skip
    assert sequences(only(*spans)) == [("billing graph", (9, 8, 7))]


@pytest.mark.parametrize(
    ("name", "agent_name"), [("billing", "billing"), ("LangGraph", None)]
)
def test_a_graph_at_the_root_names_the_agent_unless_it_has_no_name(name, agent_name):
    spans = [span(1, None, name, lasts=99)]
    for turn in range(3):
        spans += [agent(10 + turn, 1, "agent", at=10 + turn),
                  call(20 + turn, 10 + turn, 9 - turn, at=10 + turn, lasts=0.4)]  # fmt: skip
    assert sequences(only(*spans)) == [(agent_name, (9, 8, 7))]


def test_it_never_joins_steps_of_two_names_under_one_parent():
    spans = [agent(1, None, "graph", lasts=100)]
    for turn in range(6):
        name = ("planner", "executor")[turn % 2]
        spans += [agent(10 + turn, 1, name, at=10 + turn),
                  call(20 + turn, 10 + turn, 90 - turn, at=10 + turn, lasts=0.4)]  # fmt: skip
    assert sequences(only(*spans)) == [
        ("planner", (90, 88, 86)),
        ("executor", (89, 87, 85)),
    ]


def test_it_keeps_five_invocations_of_one_agent_apart():
    """Agents of several calls each are invocations, however often they are invoked."""
    spans = [agent(1, None, "triage", lasts=100)]
    for turn in range(5):
        spans.append(agent(10 + turn, 1, "billing", at=10 + turn, lasts=0.9))
        spans += [
            call(
                20 + 2 * turn + k, 10 + turn, 50 - k, at=10 + turn + 0.3 * k, lasts=0.2
            )
            for k in range(2)
        ]
    assert sequences(only(*spans)) == [("billing", (50, 49))] * 5


def test_it_counts_leaves_and_not_the_model_spans_that_wrap_them():
    trace = only(call(1, None, 30, lasts=9), call(2, 1, 20, at=2), call(3, 1, 10, at=3))
    kinds = [step.kind for step in trace.steps]
    assert kinds == [StepKind.OTHER, StepKind.MODEL_CALL, StepKind.MODEL_CALL]
    assert any("wrap other model spans" in note for note in trace.notes)
    assert not any("differ" in note for note in trace.notes)


def test_it_says_when_a_wrapper_tells_another_sum_than_its_calls():
    trace = only(call(1, None, 99, lasts=9), call(2, 1, 20, at=2), call(3, 1, 10, at=3))
    assert any("differ from the sum" in note for note in trace.notes)


def test_it_tells_how_an_agent_was_invoked():
    handoff = {"openinference.span.kind": "TOOL", "output.value": "Billing"}
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "ask"}
    trace = only(
        agent(1, None, "Root", lasts=50),
        span(2, 1, "handoff to Billing", attributes=handoff),
        agent(3, 1, "Billing", lasts=5),
        span(9, 1, "execute_tool ask", attributes=tool, lasts=5),
        agent(10, 9, "Helper"),
        agent(11, 1, "Other"),
    )
    via = {one.agent: one.via for one in trace.invocations}
    assert via == {
        "Root": Via.ROOT,
        "Billing": Via.HANDOFF,
        "Helper": Via.TOOL,
        "Other": Via.SUBAGENT,
    }


def test_it_takes_the_agent_a_call_names_where_no_agent_span_exists():
    named = [{"gen_ai.agent.name": name} for name in ("a", "b", "a")]
    spans = [call(n + 1, None, 9 - n, attributes=named[n]) for n in range(3)]
    assert sequences(only(*spans)) == [("a", (9, 7)), ("b", (8,))]


def test_it_puts_orphans_under_the_root_and_counts_them():
    trace = only(span(1, None, "root", lasts=9), call(2, 77), call(3, 77))
    assert [step.parent for step in trace.steps] == [None, None, None]
    assert trace.name == "root"
    assert "not in the file, put directly under the root: 2" in trace.notes[0]


@pytest.mark.parametrize("size", [1, 2, 3, 500])
def test_it_cuts_circles_of_parents(size):
    spans = [call(n + 1, (n + 1) % size + 1) for n in range(size)]
    trace = only(*spans)
    assert len(trace.steps) == size
    assert any("Circles" in note for note in trace.notes)


def test_it_reads_chains_and_crowds_in_linear_time():
    chain = [span(n, n - 1 if n > 1 else None, at=n / 1e4) for n in range(1, 15_001)]
    crowd = [call(n, 1, at=n / 1e4) for n in range(20_000, 35_000)]
    data = as_json(*chain, *crowd)
    started = time.process_time()
    [trace] = traces_of(data)
    assert len(trace.steps) == 30_000
    assert time.process_time() - started < 5


def test_it_keeps_the_fuller_of_two_copies_of_a_span():
    trace = only(call(1, lasts=None), call(1), call(1, lasts=None))
    [step] = trace.steps
    assert step.end_ns is not None
    assert "read once: 2" in trace.notes[0]


def test_it_marks_spans_without_an_end_as_unfinished():
    [step] = only(call(1, lasts=None)).steps
    assert (step.status, step.end_ns) == (StepStatus.UNFINISHED, None)


@pytest.mark.parametrize(("factor", "unit"), [(10**3, "microseconds"),
                                              (10**6, "milliseconds"),
                                              (10**9, "seconds")])  # fmt: skip
def test_it_knows_the_unit_of_a_time_by_its_size(factor, unit):
    one = call(1)
    one["startTimeUnixNano"] = str((START + 10**9) // factor)
    one["endTimeUnixNano"] = str((START + 2 * 10**9) // factor)
    trace = only(one)
    assert trace.start_ns == START + 10**9
    assert unit in trace.notes[0]


def test_it_falls_back_to_the_order_of_the_file_without_starts():
    one, other = call(2), call(1)
    one["startTimeUnixNano"] = other["startTimeUnixNano"] = "0"
    trace = only(one, other)
    assert trace.order is OrderSource.FILE
    assert [step.native_id for step in trace.steps] == [span_id(2), span_id(1)]


def test_it_notes_spans_that_end_before_they_start():
    trace = only(call(1, lasts=-5))
    assert "end before they start: 1" in trace.notes[0]


@pytest.mark.parametrize(
    ("value", "read"),
    [(7, 7), ("7", 7), (7.0, 7), ("7.0", 7), (0, 0), (-1, None), (7.5, None),
     (True, None), ("many", None), (2**63 - 1, 2**63 - 1), (float("nan"), None)],
)  # fmt: skip
def test_it_reads_token_counts_and_never_guesses_one(value, read):
    [step] = only(call(1, output=value)).steps
    assert step.call.usage.output_total == read
    assert step.call.usage.input_total == 5


def test_it_reads_usage_that_is_all_zero_as_suspect_and_absent_usage_as_missing():
    zero = {"gen_ai.usage.input_tokens": 0, "gen_ai.usage.total_tokens": 0}
    suspect, missing = only(
        call(1, output=0, attributes=zero),
        span(2, attributes={"gen_ai.operation.name": "chat"}),
    ).steps
    assert suspect.call.usage.state is UsageState.ZERO_SUSPECT
    assert suspect.call.usage.output_total is None
    assert missing.call.usage.state is UsageState.MISSING


@pytest.mark.parametrize("names", [
    ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
    ("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"),
    ("llm.token_count.prompt", "llm.token_count.completion"),
    ("llm.usage.prompt_tokens", "llm.usage.completion_tokens"),
    ("ai.usage.inputTokens", "ai.usage.outputTokens"),
])  # fmt: skip
def test_it_knows_all_generations_of_usage_names(names):
    counts = {"gen_ai.operation.name": "chat", names[0]: 3, names[1]: 4}
    [step] = only(span(1, attributes=counts)).steps
    usage = step.call.usage
    assert (usage.input_total, usage.output_total) == (3, 4)
    assert (usage.state, usage.source) == (UsageState.REPORTED, names[1])


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"gen_ai.operation.name": "chat"}, StepKind.MODEL_CALL),
        ({"gen_ai.operation.name": "generate_content"}, StepKind.MODEL_CALL),
        ({"gen_ai.operation.name": "text_completion"}, StepKind.MODEL_CALL),
        ({"gen_ai.operation.name": "call_llm"}, StepKind.MODEL_CALL),
        ({"gen_ai.operation.name": "execute_tool"}, StepKind.TOOL_CALL),
        ({"gen_ai.operation.name": "invoke_agent"}, StepKind.AGENT),
        ({"gen_ai.operation.name": "embeddings"}, StepKind.OTHER),
        ({"llm.request.type": "chat"}, StepKind.MODEL_CALL),
        ({"llm.request.type": "embedding"}, StepKind.OTHER),
        ({"traceloop.span.kind": "tool"}, StepKind.TOOL_CALL),
        ({"traceloop.span.kind": "workflow"}, StepKind.OTHER),
        ({"openinference.span.kind": "LLM"}, StepKind.MODEL_CALL),
        ({"openinference.span.kind": "RETRIEVER"}, StepKind.RETRIEVAL),
        ({"openinference.span.kind": "GUARDRAIL"}, StepKind.GUARDRAIL),
        ({"openinference.span.kind": "CHAIN"}, StepKind.OTHER),
        ({"ai.operationId": "ai.generateText.doGenerate"}, StepKind.MODEL_CALL),
        ({"ai.operationId": "ai.streamObject.doStream"}, StepKind.MODEL_CALL),
        ({"ai.operationId": "ai.generateText"}, StepKind.AGENT),
        ({"ai.operationId": "ai.toolCall"}, StepKind.TOOL_CALL),
        ({"ai.operationId": "ai.embed.doEmbed"}, StepKind.OTHER),
        ({"http.method": "GET"}, StepKind.OTHER),
    ],
)
def test_it_knows_what_a_span_is_by_the_names_of_all_vendors(attributes, kind):
    [step] = only(span(1, attributes=attributes)).steps
    assert step.kind is kind


@pytest.mark.parametrize(
    ("recorded", "reason"),
    [
        (["stop"], FinishReason.STOP),
        ('["stop"]', FinishReason.STOP),
        ("end_turn", FinishReason.STOP),
        ("MAX_TOKENS", FinishReason.LENGTH),
        ("tool-calls", FinishReason.TOOL_CALLS),
        (["tool_call"], FinishReason.TOOL_CALLS),
        ("refusal", FinishReason.CONTENT_FILTER),
        ("something new", FinishReason.UNKNOWN),
        ("[broken", FinishReason.UNKNOWN),
    ],
)
def test_it_puts_finish_reasons_into_one_vocabulary(recorded, reason):
    attributes = {"gen_ai.response.finish_reasons": recorded}
    [step] = only(call(1, attributes=attributes)).steps
    assert step.call.finish is reason
    assert step.call.finish_raw is not None


def test_it_joins_a_tool_span_to_the_call_that_asked_for_it():
    asked = '[{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1"}]}]'
    tool = {"gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c1",
            "gen_ai.tool.call.arguments": '{"a": 1}',
            "gen_ai.tool.call.result": "[1, 2]"}  # fmt: skip
    first, second = only(
        call(1, attributes={"gen_ai.output.messages": asked}), span(2, attributes=tool)
    ).steps
    assert first.call.tool_call_ids == ("c1",)
    assert second.call.requested_by == 0
    assert (second.body.input, second.body.output) == ({"a": 1}, [1, 2])


def test_it_puts_flattened_messages_together_in_order():
    prompts = {f"gen_ai.prompt.{n}.content": f"message {n}" for n in range(12)}
    answer = {"gen_ai.completion.0.role": "assistant",
              "gen_ai.completion.0.tool_calls.0.id": "c1",
              "gen_ai.completion.0.tool_calls.0.arguments": '{"x": 1}'}  # fmt: skip
    [step] = only(call(1, attributes=prompts | answer)).steps
    assert [one["content"] for one in step.body.input] == [
        f"message {n}" for n in range(12)
    ]
    assert step.body.output == [
        {"role": "assistant", "tool_calls": [{"id": "c1", "arguments": {"x": 1}}]}
    ]


def test_it_keeps_the_exception_as_the_error_of_the_step():
    one = call(1, status={"code": 2, "message": "backend timeout"})
    one["events"] = [
        {
            "name": "exception",
            "attributes": [
                {"key": "exception.type", "value": {"stringValue": "TimeoutError"}}
            ],
        }
    ]
    [trace] = traces_of(as_json(one))
    [step] = trace.steps
    assert step.status is StepStatus.ERROR
    assert (step.error_type, step.error_message) == ("TimeoutError", "backend timeout")


def test_it_takes_task_trial_session_and_outcome_from_conventions():
    about = {"evalsite.task": "refund", "evalsite.trial": 3, "session.id": "s-1",
             "evalsite.outcome": "fail"}  # fmt: skip
    trace = only(span(1, attributes=about), call(2, 1))
    assert (trace.task, trace.trial, trace.session) == ("refund", 3, "s-1")
    assert trace.outcome.kind == "fail"
    assert trace.native_id == TRACE


def test_it_gathers_one_trace_from_many_requests_and_keeps_traces_apart():
    other = call(2) | {"traceId": "f" * 32}
    traces = traces_of(lines(document(call(1)), document(other), document(call(3))))
    assert [(one.native_id, len(one.steps)) for one in traces] == [
        (TRACE, 2),
        ("f" * 32, 1),
    ]


def test_it_rejects_spans_without_ids_and_keeps_the_others():
    bad = call(2) | {"spanId": ""}
    items = items_of(as_json(call(1), bad))
    [rejected] = rejected_of(items)
    assert "no trace id or no span id" in rejected.reason
    assert "spans[1]" in rejected.place


def test_it_keeps_the_whole_messages_of_a_protobuf_file_that_is_cut_off():
    whole = as_protobuf(call(1))
    items = items_of(whole + as_protobuf(call(2))[:-3])
    assert "ends after" in rejected_of(items)[0].reason
    assert len([item for item in items if type(item).__name__ == "Trace"]) == 1


def test_it_replaces_nul_in_protobuf_texts():
    [trace] = traces_of(
        as_protobuf(span(1, name="a\x00b", attributes={"k\x00": "\x00"}))
    )
    assert trace.name == "a\ufffdb"
    assert trace.steps[0].body.attributes == {"k\ufffd": "\ufffd"}
