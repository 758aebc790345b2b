"""What was said in a recorded value, in the shapes that providers and SDKs write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.web.pages.spoken import conversation, new_from, saying

TEXT = "It left Graz."
CALL = 'find({"id": 7})'


def said(value, most=10_000):
    found = conversation(value)
    assert found is not None, value
    return [saying(message, most=most) for message in found.messages]


def texts(value):
    return [(one.role, one.text) for one in said(value)]


SHAPES = {
    "a bare text": (TEXT, [("", TEXT)]),
    "chat messages": (
        [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": TEXT}],
        [("user", "Where?"), ("assistant", TEXT)],
    ),
    "GenAI messages with parts": (
        [{"role": "assistant", "parts": [{"type": "text", "content": TEXT}]}],
        [("assistant", TEXT)],
    ),
    "a chat completion": (
        {
            "id": "chatcmpl-1",
            "choices": [
                {
                    "finish_reason": "stop",
                    "index": 0,
                    "message": {"role": "assistant", "content": TEXT},
                }
            ],
        },
        [("assistant", TEXT)],
    ),
    "a request with messages": (
        {"model": "m", "messages": [{"role": "user", "content": TEXT}]},
        [("user", TEXT)],
    ),
    "content parts without a role": ([{"type": "text", "text": TEXT}], [("", TEXT)]),
    "an answer of the Responses API": (
        {
            "id": "resp_1",
            "output": [
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": TEXT}],
                }
            ],
        },
        [("assistant", TEXT)],
    ),
    "items of the Responses API": (
        [
            {"type": "function_call", "name": "find", "arguments": '{"id": 7}'},
            {"type": "function_call_output", "call_id": "c", "output": "none"},
        ],
        [("assistant", CALL), ("tool", "result: none")],
    ),
    "candidates with parts": (
        {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": TEXT}]}, "index": 0}
            ]
        },
        [("model", TEXT)],
    ),
    "parts of which most fields are null": (
        [{"text": TEXT, "function_call": None, "inline_data": None}],
        [("", TEXT)],
    ),
    "an answer in Anthropic's shape": (
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {"type": "text", "text": TEXT},
                {"type": "tool_use", "id": "t", "name": "find", "input": {"id": 7}},
            ],
        },
        [("assistant", f'{TEXT}\nfind({{"id":7}})')],
    ),
    "a result in Anthropic's shape": (
        [
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "content": [{"type": "text", "text": TEXT}],
                    }
                ],
            }
        ],
        [("user", f"result: {TEXT}")],
    ),
    "LangChain messages": (
        {
            "messages": [
                {"type": "human", "content": "Where?", "additional_kwargs": {}},
                {"type": "ai", "content": TEXT, "response_metadata": {}},
            ]
        },
        [("user", "Where?"), ("assistant", TEXT)],
    ),
    "serialised LangChain messages": (
        {
            "messages": [
                [
                    {
                        "lc": 1,
                        "type": "constructor",
                        "id": ["langchain", "schema", "messages", "HumanMessage"],
                        "kwargs": {"content": TEXT},
                    }
                ]
            ]
        },
        [("user", TEXT)],
    ),
    "LangChain generations": (
        {
            "generations": [
                [
                    {
                        "text": TEXT,
                        "message": {
                            "lc": 1,
                            "type": "constructor",
                            "id": ["langchain", "AIMessage"],
                            "kwargs": {"content": TEXT, "type": "ai"},
                        },
                    }
                ]
            ]
        },
        [("assistant", TEXT)],
    ),
    "LangChain messages with data": (
        {"type": "tool", "data": {"content": TEXT, "name": "find", "type": "tool"}},
        [("tool", TEXT)],
    ),
    "parts of the Vercel SDK": (
        [
            {
                "role": "assistant",
                "parts": [
                    {"type": "step-start"},
                    {"type": "text", "text": TEXT},
                    {
                        "type": "tool-find",
                        "toolCallId": "c",
                        "toolName": "find",
                        "input": {"id": 7},
                        "output": "none",
                    },
                ],
            }
        ],
        [("assistant", f'{TEXT}\nfind({{"id":7}})\nresult: none')],
    ),
    "a text beside calls of the Vercel SDK": (
        {"text": TEXT, "toolCalls": [{"toolName": "find", "input": '{"id": 7}'}]},
        [("", f"{TEXT}\n{CALL}")],
    ),
    "parts of Pydantic AI": (
        {
            "role": "assistant",
            "parts": [
                {"part_kind": "text", "content": TEXT},
                {"part_kind": "tool-call", "tool_name": "find", "args": '{"id": 7}'},
            ],
        },
        [("assistant", f"{TEXT}\n{CALL}")],
    ),
    "an event of an agent kit": (
        {"author": "desk", "content": {"role": "model", "parts": [{"text": TEXT}]}},
        [("model", TEXT)],
    ),
    "only a call": (
        [{"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"id": 7}'}}],
        [("", CALL)],
    ),
    "a call with dotted names": (
        [{"tool.name": "find", "tool.args": '{"id": 7}'}],
        [("", CALL)],
    ),
    "a text in a field of its own": ({"output": TEXT}, [("", TEXT)]),
    "a file, an image and a sound": (
        [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "AAAA"}},
            {"type": "blob", "modality": "audio", "content": "AAAA"},
        ],
        [("", "[image]\n[file a.pdf]\n[audio]")],
    ),
    "a part of an unknown kind": (
        [{"role": "user", "content": [{"type": "hologram", "beam": 3}]}],
        [("user", '{"type":"hologram","beam":3}')],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_it_finds_the_text_of(name):
    value, expected = SHAPES[name]
    assert texts(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        {"status": "active"},
        [{"id": "L1", "amount": 42.0}],
        {"output": "done", "exit_code": 1},
        {"path": "a.txt", "content": "text of a file"},
        [{"type": "file", "name": "a.txt", "size": 3}],
        [{"type": "function", "function": {"name": "f", "parameters": {}}}],
        {"data": {"content": "a row"}, "next": 2},
        {"message": "not found", "code": 404},
        [],
        {},
        None,
        17,
    ],
)
def test_values_of_tools_stay_json(value):
    assert conversation(value) is None


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "reasoning_content": "Hm.", "content": TEXT},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": TEXT}]},
        {"role": "assistant", "parts": [{"type": "reasoning", "content": "Hm."}, {"type": "text", "content": TEXT}]},
        {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": TEXT}]},
        {"role": "assistant", "content": [{"reasoningContent": {"reasoningText": {"text": "Hm."}}}, {"text": TEXT}]},
    ],
)  # fmt: skip
def test_thinking_is_apart_from_what_was_said(message):
    (one,) = said([message])
    assert (one.thought, one.text) == ("Hm.", TEXT)


def test_thinking_that_cannot_be_read_is_said_to_be_there():
    redacted = {"type": "redacted_thinking", "data": "AAAA"}
    (one,) = said([{"role": "assistant", "content": [redacted]}])
    assert "encrypted or left out" in one.thought


def test_a_call_that_is_recorded_twice_is_shown_once_but_repeated_calls_all():
    call = {"type": "tool_use", "id": "t", "name": "find", "input": {}}
    again = {"id": "t", "name": "find", "args": {}}
    (one,) = said([{"role": "assistant", "content": [call], "tool_calls": [again]}])
    assert one.text == "find({})"
    twice = [{"name": "find", "args": {}}, {"name": "find", "args": {}}]
    (one,) = said([{"role": "assistant", "content": "", "tool_calls": twice}])
    assert one.text == "find({})\nfind({})"


def test_fields_that_are_in_no_text_are_named():
    value = {"model": "m", "choices": [{"message": {"role": "assistant", "content": TEXT, "annotations": [1]}, "index": 1}]}  # fmt: skip
    found = conversation(value)
    assert found.beside == ("model",)
    assert saying(found.messages[0], most=100).beside == ("annotations", "index")


def test_what_is_longer_than_asked_for_is_cut_and_says_so():
    (one,) = said([{"role": "user", "content": "x" * 500}], most=100)
    assert (len(one.text), one.is_cut) == (100, True)
    (one,) = said([{"role": "user", "content": "x" * 100}], most=100)
    assert (len(one.text), one.is_cut) == (100, False)


@pytest.mark.parametrize(
    ("roles", "start"),
    [
        ("system user", 1),
        ("system user assistant user", 3),
        ("user assistant tool", 2),
        ("user assistant tool tool", 2),
        ("user assistant", 0),
        ("system system", 0),
    ],
)
def test_what_is_new_to_the_model_begins_behind_its_last_answer(roles, start):
    messages = [{"role": role, "content": "x"} for role in roles.split()]
    assert new_from(messages) == start


@pytest.mark.parametrize("key", ["message", "kwargs", "output", "content", "parts"])
def test_deep_values_come_to_an_end(key):
    value = {"role": "user", "content": TEXT}
    for _ in range(120):
        value = {key: [value] if key in {"output", "content", "parts"} else value}
    found = conversation({"role": "user", "content": [value]})
    one = saying(found.messages[0], most=1000)
    assert (one.role, len(one.text)) == ("user", 1000)
    assert conversation(value) is None or saying(value, most=1000).text


KEYS = st.sampled_from(
    [
        "role",
        "type",
        "content",
        "parts",
        "text",
        "message",
        "kwargs",
        "data",
        "output",
        "choices",
        "candidates",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "input",
        "thought",
        "generations",
        "lc",
        "id",
    ]
)
WORDS = st.sampled_from(
    [
        "user",
        "ai",
        "text",
        "tool_use",
        "thinking",
        "image",
        "function",
        "message",
        "constructor",
        "x",
    ]
)
VALUES = st.recursive(
    st.none() | WORDS | st.booleans() | st.integers(0, 3),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5)
    ),
    max_leaves=25,
)


@given(VALUES)
def test_no_value_breaks_it(value):
    found = conversation(value)
    for message in found.messages if found else []:
        assert isinstance(saying(message, most=50).text, str)
    assert found is None or 0 <= new_from(found.messages) < len(found.messages)
