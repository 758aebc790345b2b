"""Codex: items of one response are one call, with the usage of its own line."""

from __future__ import annotations

import pytest

from apps.engine.sequences import serial_sequences
from apps.engine.trace import StepKind, StepStatus, UsageState, Via
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

OUTPUTS = [112, 100, 86, 78, 70, 43]
AT = "2026-01-01T10:00:00Z"


def line(kind, **payload):
    return {"timestamp": AT, "type": kind, "payload": payload}


def item(kind, **fields):
    return line("response_item", type=kind, **fields)


def event(kind, **fields):
    return line("event_msg", type=kind, **fields)


def spoke(words):
    return item(
        "message", role="assistant", content=[{"type": "output_text", "text": words}]
    )


def asked(own_id, arguments='{"cmd": "ls"}', name="shell"):
    return item("function_call", call_id=own_id, name=name, arguments=arguments)


def gave(own_id, output="ok"):
    return item("function_call_output", call_id=own_id, output=output)


def tokens(given, output, total=None):
    made = {"input_tokens": given, "cached_input_tokens": 3, "output_tokens": output,
            "reasoning_output_tokens": 1, "total_tokens": given + output}  # fmt: skip
    return made if total is None else made | {"total_tokens": total}


def count(last, total):
    return event(
        "token_count", info={"last_token_usage": last, "total_token_usage": total}
    )


META = line("session_meta", id="s1", model_provider="openai", cwd="/w", cli_version="1")
TURN = line("turn_context", model="gpt-x")
SESSION = [
    META,
    event("token_count", info=None),
    TURN,
    item("message", role="user", content=[{"type": "input_text", "text": "go"}]),
    item("reasoning", summary=[{"type": "summary_text", "text": "why"}],
         encrypted_content="gAAA"),
    spoke("I look."),
    asked("c1"),
    asked("c2"),
    event("exec_command_end", call_id="c1", exit_code=2),
    gave("c1", '{"output": "no", "metadata": {"exit_code": 2}}'),
    gave("c2", "Chunk ID: 1\nProcess exited with code 0\nOutput:\nExit code: 9"),
    count(tokens(10, 20), tokens(10, 20)),
    count(tokens(10, 20), tokens(10, 20)),
    asked("c3"),
    line("token_usage_record", response_id="r2", usage=tokens(11, 8),
         thread_token_usage=tokens(21, 28)),
    gave("c3", [{"type": "input_text", "text": "x"}]),
    count(tokens(11, 8), tokens(21, 28)),
    line("compacted", message="a summary"),
    count({"input_tokens": 0, "output_tokens": 0, "total_tokens": 500}, tokens(21, 28, 1)),
    event("turn_aborted", reason="interrupted"),
    spoke("Done."),
]  # fmt: skip


def read(*values):
    [trace] = traces_of(lines(*values))
    return trace


def test_it_joins_the_items_of_a_response_with_its_usage_before_or_after_the_results():
    trace = read(*SESSION)
    first, second, last = calls_of(trace)
    assert outputs_of(trace) == [20, 8, None]
    assert (first.body.output, first.body.reasoning) == ("I look.", "why")
    assert first.call.tool_call_ids == ("c1", "c2")
    assert (second.call.response_id, second.call.tool_call_ids) == ("r2", ("c3",))
    assert last.call.usage.state is UsageState.MISSING
    assert {step.call.model for step in calls_of(trace)} == {"gpt-x"}
    assert {step.call.provider for step in calls_of(trace)} == {"openai"}
    usage = first.call.usage
    assert (usage.input_total, usage.input_cached, usage.output_reasoning) == (10, 3, 1)


def test_it_reads_how_a_tool_ended_from_fields_and_from_its_head_never_from_its_output():
    one, two, three = tools_of(read(*SESSION))
    assert (one.status, one.error_message) == (StepStatus.ERROR, "exit code 2")
    assert one.body.output == "no"
    assert two.status is StepStatus.OK
    assert three.status is StepStatus.UNSET
    assert three.body.output == "x"


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("Exit code: 1\nWall time: 2\nOutput:\nx", StepStatus.ERROR),
        ("Wall time: 2\nOutput:\nExit code: 1", StepStatus.UNSET),
        ({"content": "no", "success": False}, StepStatus.ERROR),
        ({"content": "yes", "success": True}, StepStatus.OK),
        ("it exited with code 1", StepStatus.UNSET),
    ],
)
def test_it_finds_the_exit_code_of_every_version(output, status):
    [tool] = tools_of(read(META, asked("c"), gave("c", output)))
    assert tool.status is status


def test_it_takes_the_end_of_an_item_from_an_event():
    ended = event(
        "item_completed", item={"id": "c", "exit_code": 3, "status": "failed"}
    )
    [tool] = tools_of(read(META, asked("c"), ended, gave("c", "x")))
    assert (tool.status, tool.error_message) == (StepStatus.ERROR, "exit code 3")


def test_it_resets_the_context_at_a_compaction_and_counts_no_estimate():
    trace = read(*SESSION)
    assert [step.call.resets_context for step in calls_of(trace)] == [
        False,
        False,
        True,
    ]
    assert (
        "Usage lines that only estimate the size of the context, not counted: 1."
        in (trace.notes)
    )


def test_it_compares_the_total_of_the_session_with_the_sum_of_its_calls():
    trace = read(META, spoke("a"), count(tokens(5, 6), tokens(5, 6)))
    assert trace.notes == ()
    trace = read(META, spoke("a"), count(tokens(5, 6), tokens(50, 60)))
    assert trace.notes == (
        "The session records 50 input tokens in all; its calls sum up to 5.",
        "The session records 60 output tokens in all; its calls sum up to 6.",
    )


def test_it_makes_a_call_of_a_usage_that_no_response_waits_for():
    trace = read(META, spoke("a"), count(tokens(5, 6), tokens(5, 6)),
                 count(tokens(7, 9), tokens(12, 15)))  # fmt: skip
    assert outputs_of(trace) == [6, 9]
    assert "Model calls of which only the usage is recorded: 1." in trace.notes


def test_it_finds_the_serial_sequence_of_a_run():
    total, values = 0, [META, TURN]
    for number, output in enumerate(OUTPUTS):
        total += output
        values += [asked(f"c{number}"), gave(f"c{number}"),
                   count(tokens(9, output), tokens(9 * number + 9, total))]  # fmt: skip
    [sequence] = serial_sequences(read(*values))
    assert list(sequence.outputs) == OUTPUTS
    assert sequence.agent == "codex"


def test_it_reads_the_older_forms_alike():
    head = {"id": "s1", "timestamp": AT, "instructions": None}
    body = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"record_type": "state"},
        {"type": "reasoning", "summary": []},
        {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"type": "message", "role": "assistant", "content": "done"},
    ]  # fmt: skip
    bare = read(head, *body)
    assert len(calls_of(bare)) == 2
    assert tools_of(bare)[0].body.input == {"command": ["ls"]}
    assert bare.session == "s1"
    [first] = traces_of(as_json({"session": head, "items": [body[0], *body[2:]]}))
    assert [step.kind for step in first.steps] == [step.kind for step in bare.steps]


def test_it_names_a_subagent_and_says_that_a_fork_repeats_its_origin():
    fork = line("session_meta", id="s2", agent_role="scout",
                source={"subagent": {"thread_spawn": {"parent_thread_id": "s1"}}})  # fmt: skip
    trace = read(fork, META, spoke("a"))
    assert (trace.invocations[0].agent, trace.invocations[0].via) == (
        "scout",
        Via.SUBAGENT,
    )
    assert "forked" in trace.notes[0]
    assert trace.session == "s2"


def test_it_keeps_errors_as_steps_and_retries_as_notices():
    trace = read(META, event("stream_error", message="again"),
                 event("error", message="quota", codex_error_info="usage_limit"))  # fmt: skip
    retry, error = trace.steps
    assert retry.status is StepStatus.UNSET
    assert (error.status, error.error_type) == (StepStatus.ERROR, "usage_limit")
    assert "Failed requests to the model that were tried again: 1." in trace.notes


def test_it_rejects_lines_that_are_none_and_counts_kinds_that_it_does_not_read():
    data = lines(META, 7, {"a": 1}, line("world_state"), spoke("a"), item("odd"))
    assert [one.place for one in rejected_of(items_of(data))] == [
        "record 2 (line 2), $",
        "record 3 (line 3), $",
    ]
    assert "2 (response_item/odd, world_state)" in traces_of(data)[0].notes[0]
    assert refusal_of(lines(META)) == "The file holds no line of a Codex session."


def done(own_id, kind, **fields):
    return {"type": "item.completed", "item": {"id": own_id, "type": kind} | fields}


def started(own_id, kind, **fields):
    return {"type": "item.started", "item": {"id": own_id, "type": kind} | fields}


def ran(own_id, code):
    status = "failed" if code else "completed"
    return done(own_id, "command_execution", command="ls", aggregated_output="x",
                exit_code=code, status=status)  # fmt: skip


EXEC = [
    {"type": "thread.started", "thread_id": "t1"},
    {"type": "turn.started"},
    done("i1", "reasoning", text="why"),
    done("i2", "agent_message", text="I look."),
    started("i3", "command_execution", command="ls", status="in_progress"),
    started("i4", "command_execution", command="pwd", status="in_progress"),
    ran("i3", 0),
    ran("i4", 1),
    done("i5", "reasoning", text="more"),
    ran("i6", 0),
    ran("i7", 0),
    done("i8", "mcp_tool_call", server="s", tool="find", arguments={"q": 1},
         result=None, error={"message": "no"}, status="failed"),
    done("i9", "agent_message", text="Done."),
    {"type": "turn.completed", "usage": tokens(40, 30)},
]  # fmt: skip


def test_it_reads_a_stream_of_exec_whose_usage_is_of_the_whole_turn():
    trace = read(*EXEC)
    assert [step.body.output for step in calls_of(trace)] == ["I look.", None, "Done."]
    assert {step.call.usage.state for step in calls_of(trace)} == {UsageState.MISSING}
    assert "40 input and 30 output" in " ".join(trace.notes)
    assert trace.session == "t1"
    [sequence] = serial_sequences(trace)
    assert sequence.outputs == (None, None, None)


def test_it_gives_tools_to_the_call_that_spoke_before_them_and_says_where_none_did():
    trace = read(*EXEC)
    first, second, _ = calls_of(trace)
    by = [step.call.requested_by for step in tools_of(trace)]
    assert by == [first.seq, first.seq, second.seq, None, None]
    assert [step.status for step in tools_of(trace)] == [
        StepStatus.OK, StepStatus.ERROR, StepStatus.OK, StepStatus.OK, StepStatus.ERROR,
    ]  # fmt: skip
    assert tools_of(trace)[4].error_message == "no"
    assert tools_of(trace)[4].name == "find"
    assert any("said nothing: 2" in note for note in trace.notes)


def test_it_shows_a_failed_turn_as_a_failed_step():
    failed = {"type": "turn.failed", "error": {"message": "quota"}}
    trace = read(EXEC[0], EXEC[3], {"type": "error", "message": "again"}, failed)
    assert trace.steps[-1].error_message == "quota"
    assert trace.steps[-1].kind is StepKind.SYSTEM
    assert trace.invocations[0].status is StepStatus.ERROR


def test_it_makes_a_trace_of_each_thread_of_a_file():
    again = {"type": "thread.started", "thread_id": "t2"}
    traces = traces_of(lines(*EXEC, again, *EXEC[1:]))
    assert [trace.session for trace in traces] == ["t1", "t2"]


# The index counts model calls by usage lines and by messages of type "message". In these
# two files a model plainly answered: with a message without a type, and with a request
# for a tool; neither has a usage line.
DIFFERENCES = {
    f"codex_rollout_jsonl/av_codex__{name}.jsonl": {
        "model_calls": 1,
        "usage_missing": 1,
    }
    for name in ("standard_session", "fc_args_2")
}


@pytest.mark.parametrize("row", rows("codex_rollout_jsonl", "codex_exec_json"))
def test_it_finds_the_counts_of_the_index(row):
    found, wanted = found_and_expected(row, DIFFERENCES)
    assert found == wanted
