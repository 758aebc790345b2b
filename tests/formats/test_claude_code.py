"""Claude Code: lines of one answer are one call; compaction, placeholders, totals."""

from __future__ import annotations

import pytest

from apps.engine.description import describe
from apps.engine.sequences import serial_sequences
from apps.engine.trace import FinishReason, StepKind, StepStatus, UsageState
from tests.formats.claude_files import (
    ZERO,
    answer,
    ending,
    read,
    result,
    retry,
    said,
    stream,
    text,
    use,
)
from tests.formats.index import rows
from tests.formats.reading import (
    as_json,
    items_of,
    lines,
    refusal_of,
    rejected_of,
    traces_of,
)
from tests.formats.session_files import (
    calls_of,
    found_and_expected,
    outputs_of,
    tools_of,
)


def test_it_makes_one_call_of_all_lines_with_one_message_id():
    usage = {"input_tokens": 3, "output_tokens": 1}
    grown = usage | {"output_tokens": 90}
    trace = read(
        answer("m1", {"type": "thinking", "thinking": "why"}, usage=usage, stop=None),
        answer("m1", text("a"), usage=usage, stop=None),
        answer("m1", text("a"), use("t1"), usage=grown, stop="tool_use"),
        answer("m1", use("t1"), use("t2"), usage=grown, stop="tool_use"),
    )
    [call] = calls_of(trace)
    assert call.call.usage.output_total == 90
    assert (call.body.output, call.body.reasoning) == ("a", "why")
    assert call.call.finish is FinishReason.TOOL_CALLS
    assert call.call.tool_call_ids == ("t1", "t2")


def test_it_adds_the_cache_to_the_input_and_keeps_its_parts():
    usage = {"input_tokens": 3, "cache_read_input_tokens": 40,
             "cache_creation_input_tokens": 200, "output_tokens": 9}  # fmt: skip
    [call] = calls_of(read(answer("m1", text("a"), usage=usage)))
    known = call.call.usage
    assert known.state is UsageState.REPORTED
    assert (known.input_total, known.input_cached, known.input_cache_write) == (
        243, 40, 200)  # fmt: skip


def test_it_marks_an_answer_that_was_given_again_as_a_placeholder():
    trace = read(
        said("go"),
        answer("p1", use("t1", cmd="ls"), usage=ZERO, stop=None),
        answer("p1", use("t9", cmd="rm"), usage=ZERO, stop=None),
        answer("m1", use("t1", cmd="ls -l"), stop="tool_use"),
        result("t1"),
    )
    placeholder, real = calls_of(trace)
    assert (placeholder.call.is_placeholder, real.call.is_placeholder) == (True, False)
    assert placeholder.call.usage.state is UsageState.ZERO_SUSPECT
    abandoned, run = tools_of(trace)
    assert abandoned.status is StepStatus.UNFINISHED
    assert run.body.input == {"cmd": "ls -l"}
    assert run.call.requested_by == real.seq
    [sequence] = serial_sequences(trace)
    assert sequence.steps == (real.seq,)
    assert sequence.placeholders_removed == (placeholder.seq,)
    assert describe(trace).usage.zero_suspect == 1


def test_it_keeps_a_call_without_usage_whose_tool_ran_as_a_real_call():
    trace = read(
        answer("p1", use("t1"), usage=ZERO, stop=None),
        result("t1"),
        answer("m1", text("x")),
    )
    first, _ = calls_of(trace)
    assert not first.call.is_placeholder
    assert first.call.usage.state is UsageState.ZERO_SUSPECT


@pytest.mark.parametrize(
    "forget",
    [
        said("<command-name>/clear</command-name>"),
        said("summary", isCompactSummary=True),
        {"type": "system", "subtype": "compact_boundary", "sessionId": "s1"},
    ],
)
def test_it_resets_the_context_where_the_conversation_was_cut(forget):
    trace = read(answer("m1", text("a")), forget, answer("m2", text("b")))
    assert [step.call.resets_context for step in calls_of(trace)] == [False, True]
    assert len(serial_sequences(trace)) == 2


def test_it_resets_the_context_where_a_prompt_was_written_anew():
    trace = read(
        answer("m1", text("a"), uuid="a"),
        said("b", uuid="b", parentUuid="a"),
        answer("m2", text("c"), uuid="c", parentUuid="b"),
        said("b again", uuid="d", parentUuid="a"),
        answer("m3", text("e"), uuid="e", parentUuid="d"),
    )
    assert [step.call.resets_context for step in calls_of(trace)] == [
        False,
        False,
        True,
    ]


def test_it_takes_an_api_error_for_a_failed_call_and_synthetic_words_for_a_notice():
    broken = answer("e1", text("API Error: 529"), usage=ZERO, isApiErrorMessage=True)
    broken["message"]["model"] = "<synthetic>"
    notice = answer("e2", text("No response requested."), usage=ZERO)
    notice["message"]["model"] = "<synthetic>"
    trace = read(said("go"), broken, notice, answer("m1", text("x")))
    failed, real = calls_of(trace)
    assert (failed.status, failed.error_message) == (StepStatus.ERROR, "API Error: 529")
    assert failed.call.usage.state is UsageState.MISSING
    assert failed.call.model is None
    assert [step.kind for step in trace.steps][2] is StepKind.SYSTEM
    assert real.call.usage.is_known


def test_it_compares_the_totals_of_the_result_with_the_sum_of_the_calls():
    usage = {"input_tokens": 10, "output_tokens": 20}
    told = {"m-1": {"inputTokens": 10, "outputTokens": 20},
            "small": {"inputTokens": 4, "outputTokens": 3}}  # fmt: skip
    events = stream(answer("m1", text("a"), usage=usage))
    trace = read(*events, ending(modelUsage=told))
    [note] = trace.notes
    assert "small (3 output)" in note
    wrong = {"m-1": {"inputTokens": 10, "outputTokens": 40}}
    [note] = read(*events, ending(modelUsage=wrong)).notes
    assert "10 input and 40 output" in note
    assert "10 and 20" in note
    [note] = read(*events, ending(usage={"input_tokens": 1, "output_tokens": 2})).notes
    assert "1 input and 2 output" in note


@pytest.mark.parametrize(
    ("subtype", "status"),
    [
        ("error_during_execution", StepStatus.ERROR),
        ("error_max_turns", StepStatus.UNFINISHED),
    ],
)
def test_it_never_makes_an_outcome_of_how_a_run_ended(subtype, status):
    trace = read(*stream(answer("m1", text("a"))), ending(subtype=subtype))
    assert trace.outcome.kind == "unknown"
    assert trace.steps[-1].status is status
    assert any(subtype in note for note in trace.notes)


def test_it_leaves_repeated_lines_out_and_says_so():
    line = answer("m1", text("a"), uuid="u")
    trace = read(line, line, said("x", uuid="v"), said("x", uuid="v"))
    assert len(trace.steps) == 2
    assert "Lines that repeat an earlier line, left out: 2." in trace.notes


def test_it_keeps_images_and_words_beside_tool_results():
    image = {"type": "image", "source": {"type": "base64", "data": "AA"}}
    block = {"type": "tool_result", "tool_use_id": "t1", "content": [image]}
    trace = read(answer("m1", use("t1")), said([block, text("and this")]))
    assert tools_of(trace)[0].body.output == [image]
    assert trace.steps[-1].body.output == [text("and this")]


def test_it_tells_a_reused_tool_id_from_a_repeated_one():
    trace = read(
        answer("m1", use("Bash:0", cmd="a")), result("Bash:0", "1"),
        answer("m2", use("Bash:0", cmd="a"), use("Bash:1", cmd="b")), result("Bash:1", "2"),
        answer("m3", use("Bash:0", cmd="c")), result("Bash:0", "3"),
    )  # fmt: skip
    assert [step.body.output for step in tools_of(trace)] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ([1], "$"),
        ({"silly": 1}, "$"),
        ({"type": "user", "message": "error"}, "$.message"),
        ({"type": "assistant", "message": {"role": "assistant"}}, "$.message.content"),
        ({"type": "attachment"}, "$.attachment"),
    ],
)
def test_it_rejects_a_line_that_cannot_be_read_and_keeps_the_others(line, place):
    data = lines(answer("m1", text("a")), line, answer("m2", text("b")))
    [rejected] = rejected_of(items_of(data))
    assert rejected.place == f"record 2 (line 2), {place}" or isinstance(line, list)
    assert len(calls_of(traces_of(data)[0])) == 2


def test_it_rejects_a_bad_line_inside_a_list_of_lines_by_its_place():
    data = as_json(
        {"loglines": [answer("m1", text("a")), {"type": "user", "message": 1}]}
    )
    [rejected] = rejected_of(items_of(data))
    assert rejected.place.endswith("$.loglines[1].message")


def test_it_says_that_a_file_of_notes_alone_holds_no_session():
    only = lines({"type": "summary", "summary": "x", "leafUuid": "u"})
    assert refusal_of(only) == "The file holds no line of a Claude Code session."


def test_it_shows_retries_as_steps_and_counts_them_in_a_note():
    trace = read(*stream(answer("m1", text("a"))), retry(1), retry(2))
    retries = [step for step in trace.steps if step.native_kind == "api_retry"]
    assert [step.body.attributes["attempt"] for step in retries] == [1, 2]
    assert "Failed requests to the model that were tried again: 2." in trace.notes


# The index takes all lines without a message id for one call. Each of these files has
# one line an answer, with a user's line between any two of them.
DIFFERENCES = {
    "claude_code_jsonl/av_claude__valid_session.jsonl":
        {"model_calls": 2, "usage_known": 2},
    "claude_code_jsonl/simonw_sample_session.json":
        {"model_calls": 15, "usage_missing": 15},
}  # fmt: skip


@pytest.mark.parametrize(
    "row", rows("claude_code_jsonl", "claude_code_stream_json", "iflow_jsonl")
)
def test_it_finds_the_counts_of_the_index(row):
    found, wanted = found_and_expected(row, DIFFERENCES)
    assert found == wanted


def test_its_sequences_hold_real_calls_and_not_their_placeholders(shared_data):
    folder = shared_data / "claude_code_stream_json"
    made = {
        path.name.split("__")[0]: [
            count
            for sequence in serial_sequences(traces_of(path.read_bytes())[0])
            for count in sequence.outputs
        ]
        for path in folder.iterdir()
    }
    found = {
        name: (len(counts), len(counts) - counts.count(None))
        for name, counts in made.items()
    }
    assert found["mteb-retrieve"] == (59, 59)
    # Two answers without usage were not given again: the first and the last one.
    assert found["train-fasttext"] == (46, 44)
    assert found["financial-document-processor"] == (2, 1)


def test_it_adds_up_to_what_the_cli_says_of_a_real_run(shared_data):
    path = "claude_code_stream_json/break-filter-js-from-html__U92hUwr.jsonl"
    [trace] = traces_of((shared_data / path).read_bytes())
    assert sum(count or 0 for count in outputs_of(trace)) == 9174
    assert not [note for note in trace.notes if "The result of the run" in note]
