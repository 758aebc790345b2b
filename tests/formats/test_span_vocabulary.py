"""What spans mean under the names of every instrumentation that we know."""

from __future__ import annotations

import json

from apps.engine.sequences import serial_sequences
from apps.engine.trace import FinishReason, StepKind, StepStatus, UsageState
from tests.each import for_each
from tests.formats.otlp_files import START, any_value, as_json, span
from tests.formats.reading import traces_of

MODEL, TOOL, AGENT = StepKind.MODEL_CALL, StepKind.TOOL_CALL, StepKind.AGENT
OTHER, RETRIEVAL = StepKind.OTHER, StepKind.RETRIEVAL


def only(*spans):
    [trace] = traces_of(as_json(*spans))
    return trace


def step(name="x", **attributes):
    """The one step of a trace of one span; `__` in a name is a dot."""
    named = {key.replace("__", "."): item for key, item in attributes.items()}
    return only(span(1, None, name, attributes=named)).steps[0]


def event(name, **attributes):
    return {
        "name": name,
        "timeUnixNano": str(START),
        "attributes": [
            {"key": key.replace("__", "."), "value": any_value(item)}
            for key, item in attributes.items()
        ],
    }


@for_each(
    ("attributes", "kind"),
    [
        ({"gen_ai.operation.name": "chat"}, MODEL),
        ({"gen_ai.operation.name": "generate_content"}, MODEL),
        ({"gen_ai.operation.name": "text_completion"}, MODEL),
        ({"gen_ai.operation.name": "chat.completions"}, MODEL),
        ({"gen_ai.operation.name": "text_completions"}, MODEL),
        ({"gen_ai.operation.name": "execute_tool"}, TOOL),
        ({"gen_ai.operation.name": "invoke_agent"}, AGENT),
        ({"gen_ai.operation.name": "create_agent"}, OTHER),
        ({"gen_ai.operation.name": "invoke_workflow"}, OTHER),
        ({"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "m"}, OTHER),
        ({"gen_ai.operation.name": "execute_event_loop_cycle"}, OTHER),
        ({"llm.request.type": "chat"}, MODEL),
        ({"llm.request.type": "rerank"}, RETRIEVAL),
        ({"llm.request.type": "embedding", "gen_ai.request.model": "m"}, OTHER),
        ({"traceloop.span.kind": "agent"}, AGENT),
        ({"traceloop.span.kind": "tool"}, TOOL),
        ({"traceloop.span.kind": "workflow"}, OTHER),
        ({"openinference.span.kind": "LLM"}, MODEL),
        ({"openinference.span.kind": "GUARDRAIL"}, StepKind.GUARDRAIL),
        ({"openinference.span.kind": "CHAIN", "llm.model_name": "m"}, OTHER),
        ({"openinference.span.kind": "UNKNOWN", "gen_ai.operation.name": "chat"}, MODEL),
        ({"ai.operationId": "ai.streamText.doStream"}, MODEL),
        ({"ai.operationId": "ai.generateText"}, AGENT),
        ({"ai.operationId": "ai.embed.doEmbed"}, OTHER),
        ({"mlflow.spanType": '"CHAT_MODEL"'}, MODEL),
        ({"mlflow.spanType": '"MEMORY"'}, StepKind.MEMORY),
        ({"mlflow.spanType": '"CHAIN"', "gen_ai.request.model": "m"}, OTHER),
        ({"mlflow.spanType": '"UNKNOWN"', "gen_ai.request.model": "m"}, MODEL),
        ({"langfuse.observation.type": "generation"}, MODEL),
        ({"langfuse.observation.type": "agent"}, AGENT),
        ({"langfuse.observation.type": "span"}, OTHER),
        ({"langfuse.observation.type": "span", "gen_ai.operation.name": "chat"}, MODEL),
        ({"langsmith.span.kind": "llm", "gen_ai.operation.name": "chat"}, MODEL),
        ({"langsmith.span.kind": "prompt", "gen_ai.operation.name": "chat"}, OTHER),
        ({"langsmith.span.kind": "retriever", "gen_ai.operation.name": "embeddings"},
         RETRIEVAL),
        ({"ai.observability.span_type": "generation"}, MODEL),
        ({"ai.observability.span_type": "eval_root", "gen_ai.request.model": "m"}, OTHER),
        ({"gen_ai.system": "gcp.vertex.agent", "gen_ai.request.model": "gemini"}, MODEL),
        ({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)"},
         OTHER),
        ({"logfire.span_type": "pending_span", "gen_ai.operation.name": "chat"}, OTHER),
        ({"logfire.span_type": "log", "gen_ai.request.model": "m"}, OTHER),
        ({"logfire.span_type": "span", "gen_ai.request.model": "m"}, MODEL),
        ({"http.method": "POST"}, OTHER),
    ],
)  # fmt: skip
def test_it_knows_what_a_span_is(attributes, kind):
    assert step(**attributes).kind is kind


@for_each("value", [7, 1.5, True, ["LLM"], "", "no such word"])
@for_each(
    "key",
    ["openinference.span.kind", "gen_ai.operation.name", "ai.operationId",
     "logfire.span_type", "mlflow.spanType", "langfuse.observation.type",
     "langsmith.span.kind"],
)  # fmt: skip
def test_a_kind_that_is_no_word_of_ours_makes_no_call(key, value):
    assert step(**{key: value}).kind is OTHER


@for_each(
    ("name", "agent"),
    [
        ("invoke_agent billing", "billing"),
        ("agent_run [billing]", "billing"),
        ("invoke_agent [billing]", "billing"),
    ],
)
def test_it_reads_the_agent_out_of_the_name_of_a_span(name, agent):
    trace = only(span(1, None, name))
    assert trace.steps[0].kind is AGENT
    assert [one.agent for one in trace.invocations] == [agent]


@for_each(
    "attributes",
    [
        {"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 7},
        {"gen_ai.usage.prompt_tokens": 9, "gen_ai.usage.completion_tokens": 7},
        {"llm.usage.prompt_tokens": 9, "llm.usage.completion_tokens": 7},
        {"llm.token_count.prompt": 9, "llm.token_count.completion": 7},
        {"ai.usage.inputTokens": 9, "ai.usage.outputTokens": 7},
        {"ai.usage.promptTokens": "9", "ai.usage.completionTokens": "7"},
        {"gen_ai.response.prompt_tokens": 9, "gen_ai.response.completion_tokens": 7},
        {"mlflow.chat.tokenUsage": '{"input_tokens": 9, "output_tokens": 7}'},
        {"langfuse.observation.usage_details": '{"input": 9, "output": 7, "total": 16}'},
        {"langfuse.observation.usage_details":
         '{"prompt_tokens": 9, "completion_tokens": 7}'},
        {"ai.observability.cost.num_prompt_tokens": 9,
         "ai.observability.cost.num_completion_tokens": 7},
    ],
)  # fmt: skip
def test_it_reads_token_counts_under_every_name(attributes):
    usage = step(**{"gen_ai.operation.name": "chat"}, **attributes).call.usage
    assert (usage.input_total, usage.output_total) == (9, 7)
    assert usage.state is UsageState.REPORTED
    assert usage.source.split(".")[0] in {"gen_ai", "llm", "ai", "mlflow", "langfuse"}


@for_each(
    "usage", ["{}", "[]", '"x"', '{"output": -1}', '{"output": "many"}', "{broken"]
)
def test_an_object_without_counts_is_missing_usage(usage):
    found = step(**{"langfuse.observation.type": "generation",
                    "langfuse.observation.usage_details": usage})  # fmt: skip
    assert found.call.usage.state is UsageState.MISSING


@for_each(
    ("key", "field"),
    [
        ("gen_ai.usage.cache_read.input_tokens", "input_cached"),
        ("gen_ai.usage.cache_read_input_tokens", "input_cached"),
        ("llm.token_count.prompt_details.cache_read", "input_cached"),
        ("ai.usage.cachedInputTokens", "input_cached"),
        ("ai.usage.inputTokenDetails.cacheReadTokens", "input_cached"),
        ("gen_ai.usage.cache_creation.input_tokens", "input_cache_write"),
        ("gen_ai.usage.cache_write_input_tokens", "input_cache_write"),
        ("gen_ai.usage.reasoning.output_tokens", "output_reasoning"),
        ("gen_ai.usage.details.reasoning_tokens", "output_reasoning"),
        ("llm.usage.reasoning_tokens", "output_reasoning"),
        ("ai.usage.outputTokenDetails.reasoningTokens", "output_reasoning"),
        ("gen_ai.usage.experimental.reasoning_tokens", "output_reasoning"),
    ],
)
def test_it_keeps_cached_and_reasoning_tokens_apart(key, field):
    usage = step(**{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 9,
                    "gen_ai.usage.output_tokens": 7, key: 3}).call.usage  # fmt: skip
    assert getattr(usage, field) == 3
    assert (usage.input_total, usage.output_total) == (9, 7)


@for_each(
    "attributes",
    [
        {"gen_ai.response.finish_reasons": ["length"]},
        {"gen_ai.response.finish_reasons": '["length"]'},
        {"gen_ai.response.finish_reason": "FinishReason.LENGTH"},
        {"gen_ai.response.stop_reason": "max_tokens"},
        {"gen_ai.completion.0.finish_reason": "length"},
        {"llm.finish_reason": "length"},
        {"ai.response.finishReason": "length"},
        {
            "gen_ai.output.messages": '[{"role": "assistant", "finish_reason": "length"}]'
        },
        {"gcp.vertex.agent.llm_response": '{"finish_reason": "MAX_TOKENS"}'},
        {"output.value": '{"choices": [{"finish_reason": "length"}]}'},
        {"langfuse.observation.output": '{"stop_reason": "max_tokens"}'},
    ],
)
def test_it_reads_why_a_model_stopped_wherever_that_is_said(attributes):
    call = step(**{"gen_ai.operation.name": "chat"}, **attributes).call
    assert call.finish is FinishReason.LENGTH


def test_it_reads_messages_and_finish_out_of_events():
    """Agents of AWS write what was said into events."""
    attributes = {"gen_ai.operation.name": "chat"}
    content = json.dumps(
        [{"toolUse": {"toolUseId": "c1", "name": "look", "input": {}}}]
    )
    events = [
        event("gen_ai.user.message", content="why?"),
        event("gen_ai.choice", finish_reason="tool_use", message=content),
    ]
    [found] = only(span(1, None, "chat", attributes=attributes, events=events)).steps
    assert found.call.finish is FinishReason.TOOL_CALLS
    assert found.call.tool_call_ids == ("c1",)
    assert found.body.input == [{"role": "user", "content": "why?"}]


def test_it_reads_messages_out_of_the_event_of_the_newest_names():
    attributes = {"gen_ai.operation.name": "chat"}
    messages = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1"}],
                 "finish_reason": "stop"}]  # fmt: skip
    details = event(
        "gen_ai.client.inference.operation.details",
        gen_ai__input__messages='[{"role": "user"}]',
        gen_ai__output__messages=json.dumps(messages),
    )
    [found] = only(span(1, None, "chat", attributes=attributes, events=[details])).steps
    assert found.body.input == [{"role": "user"}]
    assert found.call.tool_call_ids == ("c1",)
    assert found.call.finish is FinishReason.STOP
    assert found.body.attributes == {"gen_ai.operation.name": "chat"}


def test_it_reads_messages_that_were_logged_into_one_attribute():
    """Older versions of Pydantic AI did so."""
    logged = [
        {"event.name": "gen_ai.user.message", "content": "why?", "role": "user"},
        {"event.name": "gen_ai.choice", "index": 0,
         "message": {"tool_calls": [{"id": "c1", "type": "function", "function": {}}]}},
    ]  # fmt: skip
    found = step(gen_ai__operation__name="chat", events=json.dumps(logged))
    assert found.body.input[0]["content"] == "why?"
    assert found.call.tool_call_ids == ("c1",)


@for_each(
    ("given", "answer"),
    [
        ("gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"),
        ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"),
        ("gen_ai.tool.args", "gen_ai.output"),
        ("tool_arguments", "tool_response"),
        ("ai.toolCall.args", "ai.toolCall.result"),
        ("ai.toolCall.input", "ai.toolCall.output"),
        ("langfuse.observation.input", "langfuse.observation.output"),
        ("mlflow.spanInputs", "mlflow.spanOutputs"),
        ("traceloop.entity.input", "traceloop.entity.output"),
        ("input.value", "output.value"),
    ],
)
def test_it_shows_what_a_tool_was_given_and_what_came_back(given, answer):
    found = step(**{"gen_ai.tool.name": "look", given: '{"q": 1}', answer: '["A"]'})
    assert (found.kind, found.name) == (TOOL, "look")
    assert (found.body.input, found.body.output) == ({"q": 1}, ["A"])


@for_each(
    "key",
    ["session.id", "gen_ai.conversation.id", "langfuse.session.id",
     "gcp.vertex.agent.session_id", "langsmith.metadata.thread_id",
     "traceloop.association.properties.session_id", "ai.telemetry.metadata.sessionId",
     "ai.observability.conversation_id"],
)  # fmt: skip
def test_it_reads_the_session_under_every_name(key):
    assert only(span(1, None, "x", attributes={key: "s1"})).session == "s1"


@for_each(
    "attributes",
    [
        {"metadata": '{"task": "refund", "trial": 2}'},
        {"metadata.task": "refund", "metadata.trial": "2"},
        {"evalsite.task": "refund", "evalsite.trial": 2},
        {
            "langfuse.trace.metadata.task": "refund",
            "langfuse.trace.metadata.trial": "2",
        },
        {"langsmith.metadata.task": "refund", "langsmith.metadata.trial": "2"},
    ],
)
def test_it_reads_task_and_trial_out_of_metadata(attributes):
    trace = only(span(1, None, "x", attributes=attributes))
    assert (trace.task, trace.trial) == ("refund", 2)


@for_each("metadata", ["{", "[]", '{"task": [1]}', "task trial", "7"])
def test_metadata_that_says_nothing_gives_no_task(metadata):
    trace = only(span(1, None, "x", attributes={"metadata": metadata}))
    assert (trace.task, trace.trial) == (None, None)


def test_expected_answers_are_labels_and_stand_in_no_step():
    attributes = {
        "langfuse.observation.type": "span",
        "langfuse.experiment.item.id": "q7",
        "langfuse.experiment.item.expected_output": '{"answer": "the secret"}',
    }
    trace = only(span(1, None, "x", attributes=attributes))
    assert trace.labels == {
        "langfuse.experiment.item.expected_output": {"answer": "the secret"}
    }
    assert trace.task == "q7"
    assert "the secret" not in repr(trace.steps) + repr(trace.metadata)


def model(number, parent, output, **more):
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": output,
    }
    return span(number, parent, "chat", attributes=attributes, **more)


def agent(number, parent, name, aggregated=None, **more):
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    if aggregated is not None:
        attributes["gen_ai.aggregated_usage.output_tokens"] = aggregated
    return span(number, parent, f"invoke_agent {name}", attributes=attributes, **more)


NESTED = [
    model(2, 1, 30, at=2, lasts=0.5),
    model(4, 3, 20, at=4, lasts=0.5),
    model(5, 3, 10, at=5, lasts=0.5),
]


@for_each("told", [60, 30])
def test_a_wrapper_may_count_all_calls_or_only_those_of_its_own_agent(told):
    trace = only(agent(1, None, "triage", told, lasts=50),
                 agent(3, 1, "billing", 30, lasts=20), *NESTED)  # fmt: skip
    assert trace.notes == ()
    found = [(one.agent, one.outputs) for one in serial_sequences(trace)]
    assert found == [("triage", (30,)), ("billing", (20, 10))]


def test_a_wrapper_that_counts_otherwise_is_told_with_both_numbers():
    trace = only(agent(1, None, "triage", 1184, lasts=50),
                 agent(3, 1, "billing", 30, lasts=20), *NESTED)  # fmt: skip
    assert trace.notes == (
        "Wrapper spans whose output tokens differ from the sum of their calls: 1 (one "
        "says 1,184, its calls 60).",
    )


def test_it_reads_a_run_of_googles_kit_with_calls_inside_calls():
    """Newer versions write the call of the model once more below `call_llm`."""

    def tool(number, parent, name):
        return span(number, parent, f"execute_tool {name}", attributes={
            "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name})  # fmt: skip

    def call_llm(number, parent):
        return span(number, parent, "call_llm", attributes={
            "gen_ai.system": "gcp.vertex.agent", "gen_ai.request.model": "m"}, lasts=0.8)  # fmt: skip

    trace = only(
        span(1, None, "invocation", lasts=60),
        span(2, 1, "agent_run [billing]", lasts=50),
        call_llm(3, 2), model(4, 3, 30, at=3.1, lasts=0.2),
        tool(6, 3, "look"), tool(7, 3, "look"), tool(8, 3, "(merged tools)"),
        call_llm(10, 2), model(11, 10, 20, at=10.1, lasts=0.2),
    )  # fmt: skip
    [sequence] = serial_sequences(trace)
    assert (sequence.agent, sequence.outputs) == ("billing", (30, 20))
    kinds = [one.kind for one in trace.steps]
    assert (kinds.count(MODEL), kinds.count(TOOL)) == (2, 2)


def test_a_span_that_logfire_writes_when_it_begins_is_not_a_second_call():
    begun = model(3, 2, None, at=2)
    begun["attributes"] = [
        pair for pair in begun["attributes"] if "usage" not in pair["key"]
    ] + [{"key": "logfire.span_type", "value": any_value("pending_span")}]
    trace = only(agent(1, None, "billing", lasts=9), model(2, 1, 30), begun)
    [sequence] = serial_sequences(trace)
    assert sequence.outputs == (30,)


def test_an_error_of_a_tool_is_read_from_the_event_of_its_exception():
    failed = span(
        1, None, "look", attributes={"gen_ai.tool.name": "look"},
        status={"code": 2},
        events=[event("exception", exception__type="KeyError", exception__message="A")],
    )  # fmt: skip
    [found] = only(failed).steps
    assert (found.status, found.error_type) == (StepStatus.ERROR, "KeyError")
    assert found.error_message == "A"
