"""What is recorded is asked again in the words of either API."""

from __future__ import annotations

import pytest

from apps.engine.replay.case import ToolOffer
from apps.engine.replay.chat_completions import ChatCompletions
from apps.engine.replay.responses import Responses
from apps.engine.replay.run import AnswerSource, ToolAnswer
from apps.engine.replay.turns import (
    Asking,
    NoAnswer,
    WireNames,
    result_text,
)
from apps.engine.trace import FinishReason

ASKING = Asking(model="m", max_tokens=100)
NOTHING = WireNames([])


def test_messages_become_input_items():
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    asked = {"id": "call_1", "function": {"name": "look", "arguments": '{"n": 1}'}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "See."}, image, "Well?"]},
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"a": 1}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Yes."}]},
    ]
    call = {"type": "function_call", "call_id": "call_1", "name": "look"}
    assert Responses().begin(messages) == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "See."},
                {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
                {"type": "input_text", "text": "Well?"},
            ],
        },
        call | {"arguments": '{"n": 1}'},
        {"type": "function_call_output", "call_id": "call_1", "output": '[{"a": 1}]'},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
    ]
    assert ChatCompletions().begin(messages) == messages


def test_recorded_settings_have_their_place_in_either():
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}
    choice = {"type": "function", "function": {"name": "look"}}
    asking = Asking(
        model="m",
        max_tokens=100,
        tools=(ToolOffer(name="look"),),
        parameters={
            "response_format": schema, "stop": ["x"], "seed": 7, "top_k": 3,
            "temperature": 1, "max_tokens": 5, "tool_choice": choice,
        },
        temperature=0.0,
    )  # fmt: skip
    chat = ChatCompletions().request(asking, [])
    assert chat["response_format"] == schema
    assert chat["tool_choice"] == choice
    assert (chat["stop"], chat["temperature"], chat["max_tokens"]) == (["x"], 0.0, 100)
    assert chat.keys().isdisjoint({"top_k", "seed"})
    other = Responses().request(asking, [])
    assert other["text"] == {
        "format": {"type": "json_schema", "name": "x", "schema": {}}
    }
    assert other["tool_choice"] == {"type": "function", "name": "look"}
    assert other["max_output_tokens"] == 100
    assert other.keys().isdisjoint({"stop", "seed", "max_tokens"})
    without = Asking(model="m", max_tokens=100, parameters={"tool_choice": "auto"})
    assert "tool_choice" not in ChatCompletions().request(without, [])


def test_sealed_reasoning_goes_back_and_open_reasoning_does_not():
    value = {
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "reasoning", "id": "rs_2", "encrypted_content": "xyz"},
            {"type": "message", "content": [{"type": "output_text", "text": "Wait."}]},
            {"type": "function_call", "call_id": "c", "name": "look", "arguments": ""},
        ]
    }
    dialect = Responses()
    answer = dialect.answer(value, NOTHING)
    onward = dialect.onward(value, answer, ["seen"])
    assert [one.get("id") or one.get("type") for one in onward] == [
        "rs_2", None, "function_call", "function_call_output",
    ]  # fmt: skip
    assert answer.asked[0].arguments == {}


@pytest.mark.parametrize(
    ("sent", "arguments", "is_object"),
    [
        (None, {}, True),
        ("", {}, True),
        (' {"n": 1} ', {"n": 1}, True),
        ({"n": 1}, {"n": 1}, True),
        ('{"n": ', '{"n":', False),
        ("[1]", [1], False),
        ("seven", "seven", False),
        (7, 7, False),
    ],
)
def test_arguments_are_an_object_or_what_was_sent(sent, arguments, is_object):
    call = {"id": None, "function": {"name": "look", "arguments": sent}}
    message = {"role": "assistant", "tool_calls": [call, call, "noise"]}
    value = {"choices": [{"message": message}]}
    first, second = ChatCompletions().answer(value, NOTHING).asked
    assert (first.arguments, first.has_arguments) == (arguments, is_object)
    assert (first.call_id, second.call_id) == ("call_1", "call_2")


def test_an_answer_that_was_cut_before_it_said_anything_says_why_it_ended():
    for finish, reason in (
        ("length", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
    ):
        message = {"role": "assistant", "content": None}
        value = {"choices": [{"message": message, "finish_reason": finish}]}
        assert ChatCompletions().answer(value, NOTHING).finish is reason
    with pytest.raises(NoAnswer):
        Responses().answer({"output": [], "status": "completed"}, NOTHING)


def test_names_stay_apart_on_the_wire():
    names = ["a.b", "a_b", "a b", "x" * 80, "x" * 90, "", "größe"]
    wire = WireNames([ToolOffer(name=name) for name in names])
    sent = [wire.sent(name) for name in names]
    assert len(set(sent)) == len(names)
    assert wire.sent("a_b") == "a_b"
    assert all(len(one) <= 64 and one.isascii() for one in sent)
    assert [wire.recorded(one) for one in sent] == names
    assert wire.recorded("never offered") == "never offered"


@pytest.mark.parametrize(
    ("result", "error", "told"),
    [
        ("open", "", "open"),
        ({"a": "é"}, "", '{"a": "é"}'),
        (None, "", "null"),
        (None, "There is no such tool.", "There is no such tool."),
        ("Error 7", "failed", "Error 7"),
    ],
)
def test_the_model_is_told_what_the_tool_said(result, error, told):
    answer = ToolAnswer(source=AnswerSource.STATIC, result=result, error=error)
    assert result_text(answer) == told
