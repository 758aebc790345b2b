"""Evalsite's own format: easy to write, strict about numbers, and it reads back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.formats.evalsite_fields import EXAMPLE, FIELDS
from apps.engine.formats.evalsite_jsonl import trace_of
from apps.engine.formats.evalsite_writer import dump
from apps.engine.trace import (
    AgentInvocation,
    Body,
    FinishReason,
    ModelCall,
    OrderSource,
    Outcome,
    OutcomeKind,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
    Usage,
    UsageState,
    Via,
)
from tests.formats.reading import (
    as_json,
    items_of,
    lines,
    refusal_of,
    rejected_of,
    traces_of,
)


def a_trace(*steps, **about):
    return {"evalsite": 1, "trace": about, "steps": list(steps)}


def a_call(**more):
    return {"kind": "model_call", **more}


def test_it_reads_the_example_of_its_own_page():
    [trace] = traces_of(EXAMPLE.encode())
    assert trace.outcome.kind is OutcomeKind.PASS
    assert [step.kind for step in trace.steps] == [
        "user_message",
        "model_call",
        "tool_call",
    ]
    assert trace.steps[1].call.usage == Usage(
        state=UsageState.REPORTED,
        input_total=30,
        output_total=112,
        source="usage.output",
    )
    assert trace.steps[1].end_ns - trace.steps[1].start_ns == 2 * 10**9
    assert [one.agent for one in trace.invocations] == ["billing"]


def test_it_needs_no_more_than_a_version_and_the_kind_of_each_step():
    [trace] = traces_of(as_json({"evalsite": 1, "steps": [{"kind": "model_call"}]}))
    assert trace.name == "trace 1"
    assert trace.steps[0].call.usage.state is UsageState.MISSING
    assert [field.path for field in FIELDS if field.required] == [
        "evalsite",
        "steps",
        "steps[].kind",
    ]


@pytest.mark.parametrize("value", [1_767_607_200, 1_767_607_200.0, 1_767_607_200_000,
                                   1_767_607_200_000_000, 1_767_607_200 * 10**9,
                                   "1767607200", "2026-01-05T10:00:00Z",
                                   "2026-01-05 10:00:00", "2026-01-05T11:00:00+01:00",
                                   "2026-01-05T10:00:00.000000000Z"])  # fmt: skip
def test_it_reads_a_time_however_it_is_written(value):
    [trace] = traces_of(as_json(a_trace(a_call(start=value))))
    assert trace.steps[0].start_ns == 1_767_607_200 * 10**9


def test_it_gives_steps_of_one_agent_name_to_one_invocation_and_ids_to_many():
    agents = [{"id": "b1", "name": "billing"}, {"id": "b2", "name": "billing",
              "parent": "b1", "via": "handoff"}]  # fmt: skip
    record = a_trace(
        a_call(agent="billing"), a_call(invocation="b2"), a_call(agent="new")
    )
    [trace] = traces_of(as_json({**record, "agents": agents}))
    assert [step.invocation for step in trace.steps] == [0, 1, 2]
    assert trace.invocations[1].via is Via.HANDOFF
    assert trace.invocations[2].agent == "new"


@pytest.mark.parametrize(
    ("step", "place", "words"),
    [
        (a_call(usage={"output": -5}), "$.steps[0].usage.output", "Found -5"),
        (a_call(usage={"output": 7.5}), "$.steps[0].usage.output", "Found 7.5"),
        (a_call(usage={"output": True}), "$.steps[0].usage.output", "Found true"),
        (a_call(usage={"output": 2**63}), "$.steps[0].usage.output", "Found 9223372036"),
        (a_call(usage={"output": [1]}), "$.steps[0].usage.output", "Found [1]"),
        (a_call(usage={"output": "many"}), "$.steps[0].usage.output", 'Found "many"'),
        (a_call(usage=[1]), "$.steps[0].usage", "object was expected"),
        (a_call(usage={"state": "missing", "output": 1}), "$.steps[0].usage.state", "allows no"),
        ({"kind": "thought"}, "$.steps[0].kind", "model_call, tool_call, handoff"),
        ({}, "$.steps[0].kind", "model_call, tool_call"),
        ("x", "$.steps[0]", "object was expected"),
        (a_call(start="2026-02-30T00:00:00Z"), "$.steps[0].start", "ISO 8601"),
        (a_call(start="soon"), "$.steps[0].start", "ISO 8601"),
        (a_call(start_ns=2**63), "$.steps[0].start_ns", "below 2^63"),
        (a_call(parent=0), "$.steps[0].parent", "earlier step"),
        (a_call(invocation="nobody"), "$.steps[0].invocation", "one of the agents"),
        (a_call(status="fine"), "$.steps[0].status", "ok, error, unset, unfinished"),
        (a_call(name=["x"]), "$.steps[0].name", "a text"),
        (a_call(placeholder=1), "$.steps[0].placeholder", "true, false"),
        (a_call(tool_call_ids="x"), "$.steps[0].tool_call_ids", "a list"),
        (a_call(attributes=[1]), "$.steps[0].attributes", "an object"),
        ({"kind": "tool_call", "requested_by": 5}, "$.steps[0].requested_by", "Found 5"),
    ],
)  # fmt: skip
def test_it_rejects_a_broken_rule_with_path_and_found_value(step, place, words):
    items = items_of(lines(a_trace(a_call()), a_trace(step), a_trace(a_call())))
    [rejected] = rejected_of(items)
    assert rejected.place == f"record 2 (line 2), {place}"
    assert words in rejected.reason
    assert len([item for item in items if isinstance(item, Trace)]) == 2


@pytest.mark.parametrize("value", ["700", 700.0, "700.0"])
def test_it_accepts_a_whole_number_in_other_clothes(value):
    [trace] = traces_of(as_json(a_trace(a_call(usage={"output": value}))))
    assert trace.steps[0].call.usage.output_total == 700


def test_it_reads_null_as_not_recorded_everywhere():
    step = dict.fromkeys(("agent", "name", "start", "usage", "error", "input", "model"))
    [trace] = traces_of(as_json(a_trace(a_call(**step), task=None, outcome=None)))
    assert trace.steps[0].call == ModelCall()
    assert trace.steps[0].body is None
    assert trace.outcome.kind is OutcomeKind.UNKNOWN


def test_it_refuses_another_version_of_itself():
    assert "only version 1" in refusal_of(as_json({"evalsite": 2, "steps": []}))


SHORT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    min_size=1,
    max_size=9,
).filter(str.strip)
MAYBE = st.none() | SHORT
NS = st.none() | st.integers(-(2**63) + 1, 2**63 - 1)
COUNT = st.none() | st.integers(0, 2**63 - 1)
JSON = st.recursive(
    st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | SHORT | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(SHORT, inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
BAG = st.dictionaries(SHORT, JSON, max_size=2)
USAGES = st.builds(
    Usage,
    state=st.sampled_from([UsageState.REPORTED, UsageState.PARTIAL,
                           UsageState.VENDOR_ESTIMATE, UsageState.AGGREGATE_ONLY]),
    input_total=COUNT, input_cached=COUNT, input_cache_write=COUNT, output_total=COUNT,
    output_reasoning=COUNT, total=COUNT, source=SHORT,
) | st.sampled_from([Usage(), Usage(state=UsageState.ZERO_SUSPECT)])  # fmt: skip
BODIES = st.none() | st.builds(
    Body, input=JSON, output=JSON, reasoning=JSON,
    attributes=st.none() | st.dictionaries(SHORT, JSON, min_size=1, max_size=2),
).filter(lambda body: body != Body())  # fmt: skip


@st.composite
def traces(draw):
    agents = tuple(
        AgentInvocation(
            number=number, agent=draw(MAYBE), via=draw(st.sampled_from(Via)),
            parent=draw(st.none() | st.integers(0, number - 1)) if number else None,
            start_ns=draw(NS), end_ns=draw(NS), native_id=draw(MAYBE),
            status=draw(st.sampled_from(StepStatus)),
        )
        for number in range(draw(st.integers(0, 3)))
    )  # fmt: skip
    size = draw(st.integers(0, 4))
    return Trace(
        name=draw(SHORT),
        steps=tuple(draw(steps(seq, size, len(agents))) for seq in range(size)),
        invocations=agents,
        native_id=draw(MAYBE), session=draw(MAYBE), task=draw(MAYBE), trial=draw(COUNT),
        start_ns=draw(NS), end_ns=draw(NS), order=draw(st.sampled_from(OrderSource)),
        metadata=draw(BAG), labels=draw(BAG), notes=tuple(draw(st.lists(SHORT, max_size=2))),
        outcome=draw(st.just(Outcome()) | st.builds(
            Outcome, kind=st.sampled_from(OutcomeKind), source=SHORT, label=MAYBE,
            score=st.none() | st.floats(-1e9, 1e9), out_of=st.none() | st.floats(0, 1e9))),
    )  # fmt: skip


@st.composite
def steps(draw, seq, size, agents):
    kind = draw(st.sampled_from(StepKind))
    other = st.none() | st.integers(0, size - 1)
    call = None
    if kind is StepKind.MODEL_CALL:
        call = ModelCall(
            provider=draw(MAYBE), model=draw(MAYBE), response_id=draw(MAYBE),
            finish=draw(st.sampled_from(FinishReason)), finish_raw=draw(MAYBE),
            usage=draw(USAGES), conversation=draw(MAYBE), retry_of=draw(other),
            is_placeholder=draw(st.booleans()), resets_context=draw(st.booleans()),
            tool_call_ids=tuple(draw(st.lists(SHORT, max_size=2))),
        )  # fmt: skip
    elif kind is StepKind.TOOL_CALL:
        call = ToolCall(name=draw(SHORT), call_id=draw(MAYBE), requested_by=draw(other))
    return Step(
        seq=seq, kind=kind, call=call, body=draw(BODIES), name=draw(MAYBE),
        invocation=draw(st.none() | st.integers(0, agents - 1)) if agents else None,
        parent=draw(st.none() | st.integers(0, seq - 1)) if seq else None,
        start_ns=draw(NS), end_ns=draw(NS), status=draw(st.sampled_from(StepStatus)),
        error_type=draw(MAYBE), error_message=draw(MAYBE), native_id=draw(MAYBE),
        native_kind=draw(MAYBE),
    )  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(traces())
def test_every_trace_reads_back_as_it_was_written(trace):
    line = dump(trace)
    assert line.endswith(b"\n")
    assert traces_of(line) == [trace]
    assert trace_of(json.loads(line)) == trace


def test_a_real_trace_of_each_format_reads_back_as_it_was_written(shared_data):
    for path in (
        "tau_bench_results/gpt-4o-airline.json",
        "otlp_json/openinference_openai_agents__responses_flaky_retries.otlp.json",
        "otlp_json/traceloop__tool_error.otlp.json",
        "otlp_json/vercel_ai__stream.otlp.jsonl",
        "openai_chat_messages/fncall-llm-message.json",
    ):
        traces = traces_of((shared_data / path).read_bytes())
        assert traces_of(b"".join(map(dump, traces))) == traces
