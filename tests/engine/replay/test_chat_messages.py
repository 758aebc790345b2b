"""Messages of many vendors as those of chat completions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.replay.chat_messages import chat_of
from apps.engine.replay.tool_offers import offered_tools
from apps.engine.trace import Body

USER = {"role": "user", "content": "Refund order 7"}
SYSTEM = {"role": "system", "content": "Be brief."}


def asks(*calls, content=None):
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [
            {
                "id": own,
                "type": "function",
                "function": {"name": name, "arguments": arguments},
            }
            for own, name, arguments in calls
        ],
    }


def answers(own, content):
    return {"role": "tool", "tool_call_id": own, "content": content}


CALLED = asks(("c1", "get_order", '{"id": 7}'))
CONVERSATION = [SYSTEM, USER, CALLED, answers("c1", "paid")]
SHAPES = {
    "a text": ("Refund order 7", [USER]),
    "chat completions": (CONVERSATION, CONVERSATION),
    "an object with messages": ({"model": "m", "messages": [USER]}, [USER]),
    "messages as JSON text": (json.dumps([USER]), [USER]),
    "Anthropic": (
        {
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Refund order 7"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "Hm"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "c1", "name": "get_order",
                     "input": {"id": 7}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1",
                     "content": [{"type": "text", "text": "paid"}]}]},
            ],
        },
        [SYSTEM, USER, asks(("c1", "get_order", '{"id": 7}'), content="I look."),
         answers("c1", "paid")],
    ),
    "Responses": (
        {
            "instructions": "Be brief.",
            "input": [
                {"type": "message", "role": "user",
                 "content": [{"type": "input_text", "text": "Refund order 7"}]},
                {"type": "reasoning", "summary": []},
                {"type": "function_call", "call_id": "c1", "id": "fc_1",
                 "name": "get_order", "arguments": '{"id": 7}'},
                {"type": "function_call", "call_id": "c2", "name": "ping",
                 "arguments": ""},
                {"type": "function_call_output", "call_id": "c1", "output": "paid"},
                {"type": "function_call_output", "call_id": "c2", "output": "pong"},
            ],
        },
        [SYSTEM, USER, asks(("c1", "get_order", '{"id": 7}'), ("c2", "ping", "{}")),
         answers("c1", "paid"), answers("c2", "pong")],
    ),
    "Gemini": (
        {
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "Refund order 7"}]},
                {"role": "model", "parts": [
                    {"text": "Thinking", "thought": True},
                    {"functionCall": {"name": "get_order", "args": {"id": 7}}}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "get_order",
                                          "response": {"status": "paid"}}}]},
            ],
        },
        [SYSTEM, USER, asks(("call_1", "get_order", '{"id": 7}')),
         answers("call_1", '{"status": "paid"}')],
    ),
    "OpenTelemetry": (
        [
            {"role": "system", "parts": [{"type": "text", "content": "Be brief."}]},
            {"role": "user", "parts": [{"type": "text", "content": "Refund order 7"}]},
            {"role": "assistant", "parts": [
                {"type": "tool_call", "id": "c1", "name": "get_order",
                 "arguments": {"id": 7}}]},
            {"role": "tool", "parts": [
                {"type": "tool_call_response", "id": "c1", "result": "paid"}]},
        ],
        [SYSTEM, USER, CALLED, answers("c1", "paid")],
    ),
    "LangChain": (
        {"messages": [[
            {"lc": 1, "type": "constructor",
             "id": ["langchain", "schema", "messages", "SystemMessage"],
             "kwargs": {"content": "Be brief."}},
            {"lc": 1, "type": "constructor",
             "id": ["langchain", "schema", "messages", "HumanMessage"],
             "kwargs": {"content": "Refund order 7", "type": "human"}},
            {"type": "ai", "data": {"content": "", "tool_calls": [
                {"name": "get_order", "args": {"id": 7}, "id": "c1"}]}},
            {"type": "tool", "content": "paid", "tool_call_id": "c1"},
        ]]},
        [SYSTEM, USER, CALLED, answers("c1", "paid")],
    ),
    "definitions among messages are none": (
        [USER, {"role": "tool", "content": {"type": "function", "function": {
            "name": "get_order", "parameters": {}}}}],
        [USER],
    ),
    "an image is kept as it is": (
        [{"role": "user", "content": [
            {"type": "text", "text": "See"},
            {"type": "image_url", "image_url": {"url": "data:x"}}]}],
        [{"role": "user", "content": [
            {"type": "text", "text": "See"},
            {"type": "image_url", "image_url": {"url": "data:x"}}]}],
    ),
    "nothing": (None, []),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_who_said_what_is_the_same_in_every_shape(name):
    recorded, expected = SHAPES[name]
    chat = chat_of(recorded)
    assert list(chat.messages) == expected
    assert chat.left_out == 0


def test_instructions_beside_the_messages_are_the_first_message():
    for attributes in (
        {"gen_ai.system_instructions": '[{"type": "text", "content": "Be brief."}]'},
        {"llm.invocation_parameters": '{"instructions": "Be brief."}'},
    ):
        assert list(chat_of([USER], attributes).messages) == [SYSTEM, USER]
    # The provider is called `gen_ai.system`, and a system that spoke is enough.
    assert list(chat_of([USER], {"gen_ai.system": "openai"}).messages) == [USER]
    own = {"instructions": "Be long."}
    assert list(chat_of([SYSTEM, USER], own).messages) == [SYSTEM, USER]


def test_what_cannot_be_told_is_counted_and_the_rest_is_kept():
    chat = chat_of([USER, {"role": "Tool Input", "content": "x"}, 7])
    assert (list(chat.messages), chat.left_out) == ([USER], 2)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["role", "content", "type", "parts", "tool_calls", "function", "name", "id",
             "arguments", "messages", "text", "kwargs", "data", "functionCall",
             "functionResponse", "function_response", "input", "system"]
        ),
        inner | st.sampled_from(["user", "tool", "tool_use", "tool_result", "ai"]),
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=150)
@given(json_values, st.none() | st.dictionaries(st.just("instructions"), json_values))
def test_any_json_value_gives_messages_that_can_be_sent(value, attributes):
    for message in chat_of(value, attributes).messages:
        json.dumps(message)
        assert message["role"] in {"system", "developer", "user", "assistant", "tool"}
        for call in message.get("tool_calls", ()):
            assert isinstance(call["function"]["arguments"], str)
            assert call["id"]
    offered_tools([Body(input=value, attributes=attributes)], ["x"])


@pytest.mark.parametrize(
    "definition",
    [
        {"type": "function", "function": {"name": "get", "description": "Gets",
                                          "parameters": {"type": "object"}}},
        {"type": "function", "name": "get", "description": "Gets",
         "parameters": {"type": "object"}},
        {"name": "get", "description": "Gets", "input_schema": {"type": "object"}},
        {"toolSpec": {"name": "get", "description": "Gets",
                      "inputSchema": {"json": {"type": "object"}}}},
        {"functionDeclarations": [{"name": "get", "description": "Gets",
                                   "parameters": {"type": "object"}}]},
    ],
)  # fmt: skip
def test_a_definition_of_any_vendor_keeps_its_schema(definition):
    for body in (
        Body(attributes={"tools": [definition]}),
        Body(input={"messages": [], "tools": json.dumps([definition])}),
    ):
        (offer,) = offered_tools([body], [])
        assert (offer.name, offer.description) == ("get", "Gets")
        assert offer.parameters == {"type": "object"}


def test_a_renamed_tool_keeps_the_name_that_was_called():
    body = Body(attributes={"tools": ["files_read", "ping"]})
    offers = offered_tools([body], ["files.read", "other"])
    assert [offer.name for offer in offers] == ["files.read", "ping", "other"]
    metadata = Body(
        attributes={"tools": ["ping"], "x": {"name": "n", "parameters": {}}}
    )
    assert [offer.name for offer in offered_tools([metadata], [])] == ["ping"]
