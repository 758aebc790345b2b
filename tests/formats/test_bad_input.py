"""Bad input: every file gets a sentence or a correct reading, never a surprise."""

from __future__ import annotations

import gzip
import io
import json
import resource
import time

import pytest
import zstandard

from apps.engine.format import UnreadableTrace
from apps.engine.formats import TooLarge, by_slug, open_source
from tests.formats.otlp_files import as_json as otlp_json
from tests.formats.otlp_files import as_protobuf, call, document
from tests.formats.reading import (
    as_json,
    items_of,
    lines,
    messages,
    notes_of,
    refusal_of,
    rejected_of,
    traces_of,
)

CHAT = as_json(messages("hello", "hi"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b" \n\t\r\n", "nothing but blanks"),
        (b"\xef\xbb\xbf", "nothing but blanks"),
        (b"{", "cut off"),
        (b"[]", "empty list"),
        (b"<!DOCTYPE html><html>login</html>", "web page"),
        (b"{'role': 'user', 'content': None}", "Python value"),
        (b"// a comment\n{}", "comments"),
        (b'{"a": 1,}', "comma too many"),
        (b'{"a": 1 "b": 2}', "a comma or the end"),
        (b'{"a": "\x01"}', "control character"),
        (b"plain words", "traces are read from JSON"),
        (b'{"hello": "world"}', '"hello"'),
        (b"[1, 2, 3]", "not a trace"),
        (b"%PDF-1.7 \x00\x01", "PDF"),
        (b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n", "a PDF document"),
        (b"MZ is how this text begins", "traces are read from JSON"),
        (b"\x7fELF\x02\x01\x01\x00", "a program"),
        (b"\x80\x04\x95\x00\x00junk", "pickle"),
        (b"PK\x03\x04rest", "directory is damaged"),
        (b"\x00" * 10_240, "an empty archive"),
        (b'{"messages": "a\x00b"}', "which no text has: the first is byte 15"),
        (b"\x00" * 257 + b"ustar" + b"\x00" * 250, "binary file of no kind"),
        (b"\x1f\x8b", "cannot be unpacked"),
        (b"\x1f\x8b\x08\x00garbage that is no gzip", "cannot be unpacked"),
        (b"\x28\xb5\x2f\xfdgarbage", "cannot be unpacked"),
        (gzip.compress(gzip.compress(CHAT, mtime=0), mtime=0), "packed twice"),
        (as_json({"messages": []}), "known format"),
        (as_json({"resourceSpans": []}), "holds no spans"),
        (as_json({"resourceMetrics": [{}]}), "metrics, not traces"),
        (as_json({"resourceLogs": [{}]}), "logs, not traces"),
        (b"[" * 3000 + b"]" * 3000, "nested deeper than 128 levels"),
        (b'{"a":' * 200_000, "nested deeper"),
        (b"1" * 5000, "traces are read from JSON"),
        (b'{"messages": ' + b"9" * 5000 + b"}", "thousands of digits"),
    ],
)
def test_it_refuses_what_holds_no_trace_with_a_sentence(data, words):
    refusal = refusal_of(data)
    assert words in refusal
    assert refusal.endswith(".")


@pytest.mark.parametrize("slug", ["tau-bench", "openai-chat", "otlp-json",
                                  "otlp-protobuf", "evalsite-jsonl"])  # fmt: skip
@pytest.mark.parametrize(
    "data", [b"[]", b"{}", b"1", b"null", b'"x"', b"[[]]", b"[null]", b"{", b"\n\n{}",
             b"\n\x03\x12\x01\x0a", b"\xff\xfe", b"nonsense", b'[{"a": ', b"\x0a\xff"],
)  # fmt: skip
def test_it_refuses_with_a_sentence_even_when_the_user_insists_on_a_format(slug, data):
    refusal = refusal_of(data, slug)
    assert refusal.endswith(".")


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbf" + CHAT,
        CHAT.decode().encode("utf-16"),
        b"\xfe\xff" + CHAT.decode().encode("utf-16-be"),
        CHAT.decode().encode("utf-32"),
        CHAT.replace(b", ", b",\r\n"),
        b"\r\n\n" + CHAT + b"\n\n",
        gzip.compress(CHAT, mtime=0),
        gzip.compress(CHAT[:20], mtime=0) + gzip.compress(CHAT[20:], mtime=0),
        zstandard.compress(CHAT),
        zstandard.compress(CHAT[:20]) + zstandard.compress(CHAT[20:]),
    ],
)
def test_it_reads_the_same_whatever_the_encoding_or_packing(data):
    assert traces_of(data) == traces_of(CHAT)


def test_it_shows_bytes_that_are_not_utf8_and_counts_them():
    data = as_json(messages("caf_ cr_me", "ok")).replace(b"_", b"\xe9")
    items = items_of(data)
    note = notes_of(items)["not_utf8"]
    assert note.count == 2
    assert f"byte {data.index(0xE9)}" in note.sentence
    [trace] = traces_of(data)
    assert trace.steps[0].body.output == "caf\ufffd cr\ufffdme"


def test_it_counts_broken_bytes_right_across_chunks():
    text = "é\ufffd" * 100_000
    data = as_json(messages("x", "y"))[:-1] + b', {"role": "user", "content": "'
    data += text.encode() + b'\xe9"}]'
    note = notes_of(items_of(data))["not_utf8"]
    assert note.count == 1
    assert f"byte {data.rindex(0xE9):,}" in note.sentence
    assert traces_of(data)[0].steps[2].body.output == text + "\ufffd"


def test_it_replaces_nul_and_lone_surrogates_everywhere_and_counts_them():
    raw = rb'[{"role": "user", "content": "a\u0000b\ud83d", "k\u0000": "\udc00"}]'
    items = items_of(raw)
    assert notes_of(items)["replaced_characters"].count == 3
    [trace] = traces_of(raw)
    body = trace.steps[0].body
    assert body.output == "a\ufffdb\ufffd"
    assert body.attributes == {"k\ufffd": "\ufffd"}


def test_it_keeps_a_whole_character_pair_and_an_escaped_backslash():
    raw = rb'[{"role": "user", "content": "\ud83d\ude00 \\u0000"}]'
    items = items_of(raw)
    assert "replaced_characters" not in notes_of(items)
    assert traces_of(raw)[0].steps[0].body.output == "\U0001f600 \\u0000"


def test_it_reads_nan_and_infinity_as_not_recorded_and_names_the_first():
    raw = (
        b'{"messages": [{"role": "user", "content": "x"}], "score": NaN, '
        b'"list": [1e999, -Infinity]}'
    )
    note = notes_of(items_of(raw))["not_finite"]
    assert note.count == 3
    assert "line 1, $.score" in note.sentence
    assert traces_of(raw)[0].metadata == {"score": None, "list": [None, None]}


def test_it_keeps_the_last_of_duplicate_keys_and_names_key_and_line():
    raw = b'[{"role": "user",\n"content": "a",\n"content": "b"}]'
    note = notes_of(items_of(raw))["duplicate_keys"]
    assert '"content" at line 3' in note.sentence
    assert traces_of(raw)[0].steps[0].body.output == "b"


def test_it_does_not_take_a_value_for_a_duplicate_key():
    raw = b'[{"role": "user", "content": "content", "a": {"role": ":"}}]'
    assert "duplicate_keys" not in notes_of(items_of(raw))


def test_it_keeps_integers_beyond_64_bits_in_bodies():
    raw = b'[{"role": "user", "content": "x", "id": 123456789012345678901234567890}]'
    [trace] = traces_of(raw)
    assert trace.steps[0].body.attributes == {"id": 123456789012345678901234567890}


def test_it_rejects_a_record_with_a_huge_integer_and_keeps_the_others():
    good = {"messages": messages("a", "b")}
    data = lines(good) + b'{"messages": ' + b"7" * 5000 + b"}\n" + lines(good)
    items = items_of(data)
    [rejected] = rejected_of(items)
    assert rejected.place == "line 2, column 1"
    assert "thousands of digits" in rejected.reason
    assert len(traces_of(data)) == 2


@pytest.mark.parametrize("depth", [129, 900, 3000, 100_000])
def test_it_rejects_one_record_that_is_too_deep_in_lines_and_in_a_list(depth):
    good = as_json({"messages": messages("a", "b")})
    deep = b'{"messages": ' + b"[" * depth + b"]" * depth + b"}"
    for data in (
        b"\n".join([good, deep, good]),
        b"[" + b",".join([good, deep, good]) + b"]",
    ):
        items = items_of(data)
        [rejected] = rejected_of(items)
        assert rejected.reason == "The record is nested deeper than 128 levels."
        assert len([item for item in items if type(item).__name__ == "Trace"]) == 2


def test_it_accepts_nesting_of_a_hundred_levels():
    content = "x"
    for _ in range(100):
        content = [content]
    [trace] = traces_of(as_json([{"role": "user", "content": content}]))
    assert trace.steps[0].body.output == content


def test_it_keeps_the_lines_around_a_bad_one():
    good = as_json({"messages": messages("a", "b")})
    data = b"\n".join([good, b"", b'{"messages": [', good, b"{'a': 1}", good])
    items = items_of(data)
    first, second = rejected_of(items)
    assert first.place == "line 3"
    assert first.reason.endswith("It shows at line 5, column 1.")
    assert second.place == "line 5, column 2"
    assert len(traces_of(data)) == 3


def test_it_keeps_what_came_before_a_cut():
    data = as_json([{"messages": messages("a", "b")}] * 5)
    items = items_of(data[:-60])
    assert len(traces_of(data[:-60])) == 4
    assert "cut off" in rejected_of(items)[0].reason


def test_it_says_that_a_list_is_not_closed():
    data = as_json([{"messages": messages("a", "b")}] * 3)[:-1]
    assert len(traces_of(data)) == 3
    assert "not closed" in rejected_of(items_of(data))[0].reason


def test_it_rejects_what_stands_after_the_document():
    items = items_of(CHAT + b" trailing words")
    [rejected] = rejected_of(items)
    assert rejected.place == f"line 1, column {len(CHAT) + 2}"
    assert len(traces_of(CHAT + b" trailing words")) == 1


def test_it_reads_documents_one_after_another_without_line_breaks():
    one = json.dumps({"messages": messages("a", "b")}, indent=2).encode()
    assert len(traces_of(one + b"\n" + one + one)) == 3


def test_it_reads_lines_that_end_in_carriage_returns_only():
    one = as_json({"messages": messages("a\u2028b", "c")})
    assert len(traces_of(b"\r".join([one, b"{bad", one]))) == 2


def test_it_rejects_twenty_thousand_bad_lines_and_keeps_the_good_ones():
    good = as_json({"messages": messages("a", "b")}) + b"\n"
    data = good + b"{bad}\n" * 20_000 + good
    started = time.process_time()
    items = items_of(data)
    assert time.process_time() - started < 3
    assert len(rejected_of(items)) == 20_000
    assert len([item for item in items if type(item).__name__ == "Trace"]) == 2


def test_it_reads_one_line_of_fifty_megabytes():
    data = as_json(messages("x" * 50_000_000, "ok"))
    [trace] = traces_of(data)
    assert len(trace.steps[0].body.output) == 50_000_000


def test_it_reads_a_growing_record_in_linear_time():
    def seconds(size: int) -> float:
        data = as_json(messages(*["word " * 20] * size))
        started = time.process_time()
        traces_of(data)
        return time.process_time() - started

    small, large = min(seconds(5_000) for _ in range(3)), seconds(40_000)
    assert large < 8 * small * 4


HTML = "<script>alert(1)</script>"


def test_it_takes_html_in_every_text_field_as_text():
    message = {"role": "assistant", "content": HTML, "name": HTML, "tool_calls": [
        {"id": HTML, "function": {"name": HTML, "arguments": HTML}}]}  # fmt: skip
    data = as_json({"messages": [message], "metadata": {"session_id": HTML}})
    [trace] = traces_of(data)
    assert trace.session == HTML
    assert trace.invocations[0].agent == HTML
    assert trace.steps[0].body.output == HTML
    assert trace.steps[1].call.name == HTML
    assert trace.steps[1].body.input == HTML


def test_it_cuts_long_names_with_a_note():
    message = {"role": "assistant", "content": "x", "name": "n" * 5000}
    [trace] = traces_of(as_json([message]))
    assert len(trace.steps[0].name) == 300
    assert "cut to their limit" in trace.notes[0]


def test_it_goes_by_content_and_never_by_name():
    source = open_source(io.BytesIO(as_protobuf(call(1))), name="wrong.json")
    assert source.is_text is False
    assert traces_of(as_protobuf(call(1))) == traces_of(otlp_json(call(1)))


def test_it_reads_what_came_before_damage_in_packed_data():
    good = lines(*[{"messages": messages("a" * 50, str(n))} for n in range(5000)])
    packed = gzip.compress(good, mtime=0)
    items = items_of(packed[: len(packed) // 2])
    assert "damaged" in notes_of(items)["packed_data_damaged"].sentence
    assert len([item for item in items if type(item).__name__ == "Trace"]) > 100


def test_it_notes_bytes_behind_packed_data():
    items = items_of(gzip.compress(CHAT, mtime=0) + b"more")
    assert "packed_trailing_bytes" in notes_of(items)


def test_it_refuses_more_bytes_than_the_limit_and_takes_exactly_the_limit():
    with pytest.raises(TooLarge, match="which is the limit"):
        items_of(CHAT, max_unpacked_bytes=len(CHAT) - 1)
    assert items_of(CHAT, max_unpacked_bytes=len(CHAT))


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_it_refuses_a_bomb_quickly_and_within_little_memory(packing):
    block = b" " * 1024 * 1024
    file = io.BytesIO()
    if packing == "gzip":
        with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=9) as bomb:
            for _ in range(512):
                bomb.write(block)
    else:
        with zstandard.ZstdCompressor().stream_writer(file, closefd=False) as bomb:
            for _ in range(512):
                bomb.write(block)
    del bomb
    before, started = _peak_mib(), time.process_time()
    with pytest.raises(UnreadableTrace, match="grows more than"):
        items_of(b"" + file.getvalue(), "openai-chat")
    assert time.process_time() - started < 2
    assert _peak_mib() - before < 64


def test_it_refuses_a_zstd_window_that_needs_much_memory():
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    packed = zstandard.ZstdCompressor(compression_params=parameters)
    writer = packed.compressobj()
    data = writer.compress(CHAT) + writer.flush()
    assert "window of more than 8 MiB" in refusal_of(data)


def test_it_reads_a_large_list_without_holding_it():
    record = as_json({"messages": messages("w" * 5000, "x")})
    count = 4000

    class Endless(io.RawIOBase):
        """A file of 20 MB that is made while one reads."""

        def __init__(self) -> None:
            self.sent = 0
            self.rest = b"["

        def readable(self) -> bool:
            return True

        def read(self, size: int = -1) -> bytes:
            while len(self.rest) < size and self.sent < count:
                self.sent += 1
                self.rest += record + (b"," if self.sent < count else b"]")
            taken, self.rest = self.rest[:size], self.rest[size:]
            return taken

    before = _peak_mib()
    read = by_slug("openai-chat").read(open_source(Endless()))
    assert sum(type(item).__name__ == "Trace" for item in read) == count
    assert _peak_mib() - before < 16


def test_it_reports_progress_up_to_the_size_of_the_file():
    data = lines(*[{"messages": messages("a", "b")}] * 200)
    progress = [item for item in items_of(data) if type(item).__name__ == "Progress"]
    assert len(progress) >= 3
    assert progress[-1].bytes_read == progress[-1].bytes_total == len(data)


def test_it_rejects_lines_that_are_other_signals_and_keeps_the_spans():
    items = items_of(
        lines(document(call(1)), {"resourceMetrics": [{}]}, document(call(2)))
    )
    [rejected] = rejected_of(items)
    assert "metrics, not traces" in rejected.reason
    assert rejected.place == "record 2 (line 2), $"


@pytest.mark.parametrize("data", [b"{}", b"[{}]", b"{}\n{}\n"])
def test_a_record_without_keys_gets_no_advice_to_choose_a_format(data):
    said = refusal_of(data)
    assert said == "The file is JSON, but no trace: its first record has no keys."
