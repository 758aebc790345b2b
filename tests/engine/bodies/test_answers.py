"""The last answer of a trace, and the words inside answers of any shape."""

from __future__ import annotations

import pytest

from apps.engine.bodies import final_answer
from apps.engine.bodies.answers import said_by_models
from apps.engine.bodies.texts import holds_images, said_in, texts_of
from apps.engine.trace import ModelCall, Step, StepKind
from tests.engine.told import answer, said, told, used, user


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("Hello", "Hello"),
        (None, ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ({"role": "assistant", "content": "a", "tool_calls": [{"id": "x"}]}, "a"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}], "a"),
        ({"output": [{"type": "reasoning", "summary": "s"}, {"type": "message",
          "content": [{"type": "output_text", "text": "a"}]}],
          "text": {"format": {"type": "text"}}}, "a"),
        ([{"tool.name": "get", "tool.args": {"x": "y"}}], ""),
        ({"toolCalls": [{"toolName": "get"}], "text": "a"}, "a"),
        ({"messages": [{"type": "human", "content": "q"}, {"type": "ai",
          "content": "a"}]}, "a"),
        ({"total": 3, "city": "Bern"}, "3\nBern"),
        ({"id": "chatcmpl-1", "model": "m", "usage": {"total": 9}}, ""),
    ],
)  # fmt: skip
def test_only_what_was_said_is_read(output, words):
    assert said_in(output) == words


def test_texts_of_a_value_are_bounded_and_open_json():
    assert list(texts_of({"a": '{"b": "x", "c": 1.5}', "d": ["y", None, True]})) == [
        "x", "1.5", "y",
    ]  # fmt: skip
    assert sum(map(len, texts_of(["ab"] * 100, most=7))) == 7
    assert holds_images({"content": [{"type": "image"}]})
    assert not holds_images({"content": [{"type": "text", "text": "image"}]})


def test_the_last_model_call_answers_whatever_follows_it():
    found = final_answer(told(answer(0, "a"), answer(1, "b"), user(2, "###STOP###")))
    assert (found.step, found.text, found.agent) == (1, "b", "billing")


def test_placeholders_and_wrappers_do_not_answer():
    wrapper = answer(0, "whole")
    inner = answer(1, "inner", parent=0)
    synthetic = Step(
        seq=2,
        kind=StepKind.MODEL_CALL,
        invocation=0,
        call=ModelCall(is_placeholder=True),
        body=said("API error"),
    )
    assert final_answer(told(wrapper, inner, synthetic)).text == "inner"


def test_what_it_asks_for_is_named_in_order():
    trace = told(answer(0, "a"), used(2, "b", {}, by=0), used(1, "a", {}, by=0))
    assert final_answer(trace).asked == ("a", "b")


@pytest.mark.parametrize(
    "output", [{"type": []}, {"type": {}, "role": []}, [{"id": [{}]}]]
)
def test_a_type_or_role_that_is_no_text_is_none_and_breaks_nothing(output):
    found = final_answer(told(answer(0, output)))
    assert found.asked == ()
    assert not found.asks


def test_a_trace_without_answers_has_none():
    assert final_answer(told(user(0, "Hi"))) is None


def test_words_of_models_are_in_order_and_cut():
    trace = told(answer(1, "b" * 9_000, body={"reasoning": "r"}), answer(0, None))
    first, second = said_by_models(trace)
    assert (first.step, first.text) == (0, None)
    assert second.text == "b" * 8_192 + "\nr"
