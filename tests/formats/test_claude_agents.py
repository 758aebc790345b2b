"""Claude Code: subagents, sessions in one file or a folder, the SDK, and iFlow."""

from __future__ import annotations

import pytest

from apps.engine.format import Opened
from apps.engine.sequences import serial_sequences
from apps.engine.trace import StepStatus, UsageState, Via
from tests.formats.archives import archive_items, zip_of
from tests.formats.claude_files import (
    OUTPUTS,
    SESSION,
    answer,
    ending,
    read,
    result,
    said,
    stream,
    text,
    use,
)
from tests.formats.reading import (
    as_json,
    lines,
    rejected_of,
    slug_of,
    traces_of,
)
from tests.formats.session_files import (
    calls_of,
    outputs_of,
    tools_of,
)


def test_it_hangs_subagents_under_the_call_that_started_them():
    trace = read(*SESSION)
    main, explore = trace.invocations
    assert (main.agent, main.via) == ("main", Via.ROOT)
    assert (explore.agent, explore.parent, explore.via) == ("Explore", 0, Via.SUBAGENT)
    task, inner = tools_of(trace)
    assert [step.invocation for step in calls_of(trace)] == [0, 1, 1, 0]
    assert {trace.steps[step.seq].parent for step in calls_of(trace)[1:3]} == {task.seq}
    assert (inner.status, inner.error_message) == (StepStatus.ERROR, "bad")
    assert task.body.attributes == {"status": "completed", "totalTokens": 9}


def test_it_tells_parallel_subagents_apart_by_the_id_of_the_call_in_a_stream():
    calls = [use("a", "Agent", subagent_type="x"), use("b", "Agent", subagent_type="y")]
    trace = read(
        *stream(
            answer("m1", *calls, stop="tool_use"),
            answer("m2", use("c"), parent_tool_use_id="a"),
            answer("m3", use("d"), parent_tool_use_id="b"),
            result("c", parent_tool_use_id="a"),
            result("a", "done"),
        )
    )
    assert [one.agent for one in trace.invocations] == ["main", "x", "y"]
    assert [step.invocation for step in calls_of(trace)] == [0, 1, 2]
    assert not [note for note in trace.notes if "not in the file" in note]


def test_it_reads_what_a_subagent_said_while_it_worked():
    inner = {
        "type": "assistant",
        "uuid": "i1",
        "message": answer("m2", text("x"))["message"],
    }
    progress = {"type": "progress", "sessionId": "s1", "parentToolUseID": "t1",
                "data": {"type": "agent_progress", "agentId": "g", "message": inner}}  # fmt: skip
    hook = {"type": "progress", "sessionId": "s1", "data": {"type": "hook_progress"}}
    task = answer("m1", use("t1", "Task", subagent_type="Plan"))
    trace = read(task, progress, progress, hook)
    assert [one.agent for one in trace.invocations] == ["main", "Plan"]
    assert len(calls_of(trace)) == 2
    assert "Lines of kinds that are not read: 1 (progress)." in trace.notes


def test_it_reads_a_result_alone_as_a_run_whose_calls_are_not_recorded():
    [trace] = traces_of(as_json(ending(result="done")))
    assert [step.body.output for step in trace.steps] == ["done"]
    assert "its model calls are not recorded" in trace.notes[0]


def test_it_reads_the_same_run_alike_from_a_session_and_from_a_stream():
    usages = [{"input_tokens": 9, "output_tokens": count} for count in OUTPUTS]
    events = []
    for number, usage in enumerate(usages):
        events.append(
            answer(f"m{number}", use(f"t{number}"), usage=usage, stop="tool_use")
        )
        events.append(result(f"t{number}"))
    session, streamed = read(*events), read(*stream(*events))
    for trace in (session, streamed):
        [sequence] = serial_sequences(trace)
        assert list(sequence.outputs) == OUTPUTS
    listed = traces_of(as_json(stream(*events)))
    assert outputs_of(listed[0]) == OUTPUTS


def test_it_reads_messages_of_the_agent_sdk_with_and_without_their_classes():
    plain = [
        {"subtype": "init", "data": {"session_id": "s1", "type": "system"}},
        {"content": [{"text": "hi"}, {"id": "t1", "name": "Bash", "input": {}}],
         "model": "m-1", "parent_tool_use_id": None,
         "usage": {"input_tokens": 2, "output_tokens": 6}},
        {"content": [{"tool_use_id": "t1", "content": "no", "is_error": True}],
         "parent_tool_use_id": None},
        {"subtype": "success", "duration_ms": 1, "num_turns": 1, "session_id": "s1"},
    ]  # fmt: skip
    names = ("SystemMessage", "AssistantMessage", "UserMessage", "ResultMessage")
    tagged = [{"type": name} | one for name, one in zip(names, plain, strict=True)]
    for events in (plain, tagged):
        assert slug_of(as_json(events)) == "claude-code-stream"
        [trace] = traces_of(as_json(events))
        assert outputs_of(trace) == [6]
        assert tools_of(trace)[0].status is StepStatus.ERROR
        assert trace.session == "s1"


def test_it_leaves_classes_of_the_same_name_to_others():
    other = [{"type": "AssistantMessage", "content": "x", "source": "a"}]
    assert slug_of(as_json(other)) != "claude-code-stream"


def test_it_splits_a_file_of_several_sessions_and_joins_what_continues_one():
    first = [said("a", uuid="a", parentUuid=None), answer("m1", text("b"), uuid="b")]
    other = [said("c", uuid="c", parentUuid=None, sessionId="s2"),
             answer("m2", text("d"), uuid="d", parentUuid="c", sessionId="s2")]  # fmt: skip
    resumed = answer("m3", text("e"), uuid="e", parentUuid="d", sessionId="s3")
    one, two = traces_of(lines(*first, *other, resumed))
    assert (one.session, two.session) == ("s1", "s2")
    assert len(calls_of(two)) == 2
    assert "Lines of other sessions that continue this one: 1." in two.notes


@pytest.mark.parametrize("own_id", [{"agentId": "g"}, {}])
@pytest.mark.parametrize("folder", ["p", "p/s1/subagents"])
def test_it_reads_a_session_with_the_files_of_its_subagents_as_one_trace(
    folder, own_id
):
    main = lines(
        answer(
            "m1", use("t1", "Task", prompt="look"), timestamp="2026-01-01T10:00:00Z"
        ),
        result("t1", toolUseResult={"agentId": "g"}, timestamp="2026-01-01T10:09:00Z"),
        answer("m4", text("end"), timestamp="2026-01-01T10:10:00Z"),
    )
    # Older files say only in their name whose lines they hold.
    side = {"isSidechain": True, "timestamp": "2026-01-01T10:05:00Z", **own_id}
    agent = lines(said("look", **side), answer("m2", text("x"), **side), {"bad": 1})
    files = {"p/s1.jsonl": main, f"{folder}/agent-g.jsonl": agent,
             f"{folder}/agent-g.meta.json": as_json({"agentType": "Explore"})}  # fmt: skip
    items = archive_items(zip_of(files))
    assert [one.format for one in items if isinstance(one, Opened)] == [
        "claude-code-folder"
    ]
    [trace] = [one for one in items if hasattr(one, "steps")]
    assert [one.agent for one in trace.invocations] == ["main", "Explore"]
    assert [step.native_id for step in calls_of(trace)] == ["m1", "m2", "m4"]
    assert trace.steps[3].parent == tools_of(trace)[0].seq
    [rejected] = rejected_of(items)
    assert "agent-g.jsonl, record 3 (line 3), $" in rejected.place


def test_it_names_a_subagent_that_stands_alone_by_its_place():
    trace = read(
        *(line | {"isSidechain": True, "agentId": "g"} for line in SESSION[:3])
    )
    [root] = trace.invocations
    assert (root.via, root.native_id, root.agent) == (Via.SUBAGENT, "g", None)


def test_it_merges_the_overlapping_lines_of_iflow_and_takes_their_zeros_for_missing():
    own = {"sessionId": "session-0a1b2c3d-0000-4000-8000-00000000000a"}
    zero = {"input_tokens": 0, "output_tokens": 0}
    data = lines(
        said("go", uuid="u0", **own),
        answer("r1", text("look"), use("a"), usage=zero, stop=None, uuid="u1", **own),
        answer("r2", use("a"), use("b"), usage=zero, stop=None, uuid="u2", **own),
        answer("r3", use("b"), usage=zero, stop=None, uuid="u3", **own),
        result("a", uuid="u4", **own),
        result("b", uuid="u5", **own),
        answer("r4", use("b"), text("done"), usage=zero, stop=None, uuid="u6", **own),
    )
    assert slug_of(data) == "iflow"
    [trace] = traces_of(data)
    real = [step for step in calls_of(trace) if not step.call.is_placeholder]
    assert [step.body.output for step in real] == ["look", "done"]
    assert real[0].call.tool_call_ids == ("a", "b")
    assert {step.call.usage.state for step in real} == {UsageState.ZERO_SUSPECT}
    assert len(tools_of(trace)) == 2
