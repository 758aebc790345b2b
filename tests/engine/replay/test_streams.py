"""A stream becomes the answer that its events say, however its bytes are cut."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.replay.answer_gate import AnswerGate, BadAnswer, text_of
from apps.engine.replay.streams import AnswerStream, CutOff, EventLines
from apps.engine.replay.turns import Api


def data(value) -> bytes:
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode()


def delta(finish=None, **more) -> dict:
    choice = {"index": 0, "delta": more, "finish_reason": finish}
    return {"id": "chatcmpl-1", "model": "m", "choices": [choice]}


CALL = {"index": 0, "id": "call_1", "function": {"name": "lookup", "arguments": ""}}
CHAT = b": a comment\n\n\xef\xbb\xbf" + b"".join(
    [
        data(delta(role="assistant", reasoning_content="Hm, ")),
        data(delta(reasoning_content="ja.", content="Größe ")),
        data(delta(content="☃", tool_calls=[CALL])),
        data(delta(tool_calls=[{"index": 0, "function": {"arguments": '{"n":'}}])),
        data(delta(tool_calls=[{"index": 0, "function": {"arguments": "1}"}}])),
        data({"choices": [{"index": 1, "delta": {"content": "another choice"}}]}),
        data(delta(finish="tool_calls")),
        data({"id": "chatcmpl-1", "choices": [], "usage": {"completion_tokens": 4}}),
        b"event: done\ndata: [DONE]\n\n",
        data(delta(content="after the end")),
    ]
)
WHOLE = {
    "object": "chat.completion",
    "id": "chatcmpl-1",
    "model": "m",
    "usage": {"completion_tokens": 4},
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Größe ☃",
                "reasoning_content": "Hm, ja.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "lookup", "arguments": '{"n":1}'},
                    }
                ],
            },
            "finish_reason": "tool_calls",
        }
    ],
}


def whole_of(raw: bytes, api=Api.CHAT_COMPLETIONS) -> dict:
    stream = AnswerStream(api)
    stream.feed(raw)
    return stream.whole()


@given(
    st.lists(st.integers(1, 40), max_size=60), st.sampled_from([b"\n", b"\r\n", b"\r"])
)
def test_where_the_bytes_are_cut_does_not_matter(sizes, line_end):
    raw = CHAT.replace(b"\n", line_end)
    stream, at = AnswerStream(Api.CHAT_COMPLETIONS), 0
    for size in [*sizes, len(raw)]:
        stream.feed(raw[at : at + size])
        at += size
    assert stream.whole() == WHOLE


def test_it_says_when_the_answer_is_whole():
    stream = AnswerStream(Api.CHAT_COMPLETIONS)
    end = CHAT.index(b"event: done")
    assert not stream.feed(CHAT[:end])
    assert stream.feed(CHAT[end:])


def test_data_of_several_lines_is_one_text():
    lines = EventLines()
    assert list(lines.feed(b"data: a\ndata:b\nid: 7\nretry: 1\n\ndata\n\n")) == [
        "a\nb",
        "",
    ]
    assert list(lines.feed(b"data: open")) == []
    assert list(lines.feed(b"", is_last=True)) == ["open"]


class TestBrokenStreams:
    """What stops early, or is no stream, is no answer."""

    @pytest.mark.parametrize(
        "raw",
        [b"", data(delta(content="half of")), b"data: [DONE]\n\n", b"event: ping\n\n"],
    )
    def test_a_stream_without_an_end_is_cut_off(self, raw):
        with pytest.raises(CutOff, match="before the answer did"):
            whole_of(raw)

    @pytest.mark.parametrize(
        "raw",
        [
            b"data: {broken\n\n",
            b"data: \xff\xfe\n\n",
            b"data: " + b"[" * 5_000 + b"\n\n",
            b"".join(
                data(delta(tool_calls=[{"index": n, "id": "x"}])) for n in range(1_001)
            ),
        ],
    )
    def test_a_stream_of_something_else_is_a_bad_answer(self, raw):
        with pytest.raises(BadAnswer):
            whole_of(raw)

    @pytest.mark.parametrize(
        ("api", "event", "error"),
        [
            (Api.CHAT_COMPLETIONS, {"error": {"code": 429}}, {"code": 429}),
            (
                Api.RESPONSES,
                {"type": "error", "code": "rate_limit_exceeded"},
                {"type": "error", "code": "rate_limit_exceeded"},
            ),
            (Api.RESPONSES, {"error": {"message": "no"}}, {"message": "no"}),
        ],
    )
    def test_an_error_in_the_stream_is_the_answer(self, api, event, error):
        assert whole_of(data(event), api) == {"error": error}

    def test_a_failed_response_is_whole_and_says_its_error(self):
        failed = {"status": "failed", "error": {"code": "server_error"}, "output": []}
        found = whole_of(
            data({"type": "response.failed", "response": failed}), Api.RESPONSES
        )
        assert found == failed

    def test_items_stand_in_for_an_end_without_them(self):
        item = {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}
        raw = data({"type": "response.output_item.done", "item": item}) + data(
            {"type": "response.completed", "response": {"id": "resp_1"}}
        )
        assert whole_of(raw, Api.RESPONSES) == {"id": "resp_1", "output": [item]}

    def test_many_small_pieces_take_time_in_proportion(self):
        raw = data(delta(content="so ")) * 30_000 + data(delta(finish="stop"))
        began = time.monotonic()
        assert len(whole_of(raw)["choices"][0]["message"]["content"]) == 90_000
        one_line = AnswerStream(Api.CHAT_COMPLETIONS)
        for at in range(0, 6_000_000, 65_536):
            one_line.feed(b"x" * 65_536 if at else b"data: x")
        assert time.monotonic() - began < 5


class TestTheGate:
    """What targets send can be stored, or is refused in a sentence."""

    def test_what_is_replaced_is_told(self):
        gate = AnswerGate()
        found = gate.value('\ufeff {"a": NaN, "b": "x\\u0000", "a": 1e999}\n')
        assert found == {"a": None, "b": "x\ufffd"}
        assert len(gate.notes()) == 3

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            (" \n", "is empty"),
            ("{} {}", "behind the JSON"),
            ('{"a": ', "cut off"),
            ("<html>", "web page"),
            ("[" * 129 + "]" * 129, "deeper than 128"),
            ("9" * 5_000, "thousands of digits"),
            ("[" + "0," * 500_001 + "0]", "500,000 values"),
        ],
    )
    def test_what_is_refused_is_refused_in_a_sentence(self, text, words):
        with pytest.raises(BadAnswer, match=words):
            AnswerGate().value(text)

    def test_the_first_byte_at_fault_is_named(self):
        with pytest.raises(BadAnswer, match="byte 3 "):
            text_of(b"caf\xe9")
