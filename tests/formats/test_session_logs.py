"""Small session logs: Gemini CLI, gptme, Vibe, Grok, pi, OpenClaw, opencode, messages."""

from __future__ import annotations

import pytest

from apps.engine.trace import FinishReason, StepKind, StepStatus, UsageState
from tests.formats.index import DATA, rows
from tests.formats.reading import (
    as_json,
    items_of,
    lines,
    messages,
    notes_of,
    refusal_of,
    rejected_of,
    slug_of,
    traces_of,
)
from tests.formats.session_files import (
    calls_of,
    found_and_expected,
    outputs_of,
    tools_of,
)

AT = "2026-01-01T10:00:00Z"


def response(output):
    return [{"functionResponse": {"id": "c1", "name": "ls", "response": output}}]


TOKENS = {
    "input": 100,
    "output": 20,
    "cached": 60,
    "thoughts": 30,
    "tool": 0,
    "total": 150,
}
GEMINI = {
    "sessionId": "s1", "projectHash": "h", "startTime": AT, "lastUpdated": AT,
    "messages": [
        {"id": "u1", "timestamp": AT, "type": "user", "content": [{"text": "go"}]},
        {"id": "a1", "timestamp": AT, "type": "gemini", "content": "I look.",
         "model": "gemini-x", "tokens": TOKENS,
         "thoughts": [{"subject": "Plan", "description": "look"}],
         "toolCalls": [
             {"id": "c1", "name": "ls", "args": {"p": 1}, "status": "success",
              "result": response({"output": "files"}), "timestamp": AT},
             {"id": "c2", "name": "rm", "args": {}, "status": "error",
              "resultDisplay": "denied"},
             {"id": "c3", "name": "cp", "args": {}, "status": "cancelled"}]},
        {"id": "e1", "timestamp": AT, "type": "error", "content": "quota"},
        {"id": "q1", "timestamp": AT, "type": "quiz", "content": ""},
    ],
}  # fmt: skip


def test_it_reads_a_session_of_gemini_cli_with_its_tokens():
    [trace] = traces_of(as_json(GEMINI))
    [call] = calls_of(trace)
    usage = call.call.usage
    assert (usage.input_total, usage.input_cached, usage.output_total) == (100, 60, 20)
    assert (usage.output_reasoning, usage.total) == (30, 150)
    assert (call.body.output, call.body.reasoning) == ("I look.", "Plan: look")
    good, bad, stopped = tools_of(trace)
    assert (good.body.output, good.status) == ("files", StepStatus.OK)
    assert (bad.error_message, bad.status) == ("denied", StepStatus.ERROR)
    assert stopped.status is StepStatus.UNFINISHED
    assert trace.steps[-1].status is StepStatus.ERROR
    assert trace.session == "s1"
    assert trace.notes == ("Records of kinds that are not read: 1 (quiz).",)


def test_it_replays_the_newer_log_of_gemini_cli():
    head = {key: item for key, item in GEMINI.items() if key != "messages"}
    user, answer = GEMINI["messages"][:2]
    early = answer | {"toolCalls": [], "tokens": None}
    later = answer | {"id": "a2", "toolCalls": []}
    log = lines(head, user, early, answer, {"$set": {"summary": "x"}},
                {"$rewindTo": "u1"}, later)  # fmt: skip
    assert slug_of(log) == "gemini-cli"
    [trace] = traces_of(log)
    assert outputs_of(trace) == [20, 20]
    assert [step.call.resets_context for step in calls_of(trace)] == [False, True]
    assert trace.metadata == {"summary": "x"}
    assert "taken back" in trace.notes[0]


@pytest.mark.parametrize(
    "wrap", [lambda value: value, lambda value: {"history": value}]
)
def test_it_reads_a_checkpoint_of_gemini_cli_which_records_no_tokens(wrap):
    contents = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "I look."},
                                    {"functionCall": {"name": "ls", "args": {"p": 1}}}]},
        {"role": "user", "parts": response({"output": "x"})},
        {"role": "model", "parts": [{"text": "done"}]},
    ]  # fmt: skip
    contents[2]["parts"][0]["functionResponse"].pop("id")
    data = as_json(wrap(contents))
    assert slug_of(data) == "gemini-cli"
    [trace] = traces_of(data)
    first, last = calls_of(trace)
    assert (first.body.output, first.body.reasoning) == ("I look.", "hm")
    assert last.call.usage.state is UsageState.MISSING
    assert tools_of(trace)[0].body.output == "x"


GPTME = [
    {"role": "system", "content": "rules", "timestamp": AT, "pinned": True},
    {"role": "user", "content": "go", "timestamp": AT},
    {"role": "assistant", "content": 'I save.\n@save(call-1): {"path": "x"}', "timestamp": AT,
     "metadata": {"model": "m-1", "usage": {
         "input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 80,
         "cache_creation_tokens": 2}}},
    {"role": "system", "content": "Saved.", "timestamp": AT, "call_id": "call-1"},
    {"role": "assistant", "content": "Done.", "timestamp": AT,
     "metadata": {"model": "m-1", "input_tokens": 3, "output_tokens": 4}},
]  # fmt: skip


def test_it_reads_a_file_of_gptme_as_one_conversation_with_usage():
    assert slug_of(lines(*GPTME)) == "gptme"
    [trace] = traces_of(lines(*GPTME))
    first, second = calls_of(trace)
    usage = first.call.usage
    assert (usage.input_total, usage.input_cached, usage.input_cache_write) == (
        92,
        80,
        2,
    )
    assert (second.call.usage.input_total, second.call.usage.output_total) == (3, 4)
    [tool] = tools_of(trace)
    assert (tool.name, tool.body.input, tool.body.output) == (
        "save", {"path": "x"}, "Saved.")  # fmt: skip
    assert trace.start_ns == trace.end_ns == 1767261600 * 10**9


VIBE = [
    {"role": "user", "content": "go", "message_id": "1"},
    {"role": "assistant", "content": "", "message_id": "2", "tool_calls": [
        {"id": "c", "function": {"name": "ls", "arguments": '{"p": 1}'}}]},
    {"role": "tool", "content": "x", "tool_call_id": "c", "message_id": "3"},
]  # fmt: skip


def test_it_reads_a_file_of_vibe_as_one_conversation():
    assert slug_of(lines(*VIBE)) == "mistral-vibe"
    [trace] = traces_of(lines(*VIBE))
    assert [step.native_id for step in calls_of(trace)] == ["2"]
    assert tools_of(trace)[0].body.output == "x"


def test_it_reads_bare_messages_one_a_line_as_one_conversation_and_says_so():
    data = lines({"metadata": {"task": "t"}}, *messages("q", "a", "r", "b"))
    assert slug_of(data) == "openai-chat"
    [trace] = traces_of(data)
    assert [step.body.output for step in trace.steps] == ["q", "a", "r", "b"]
    assert trace.task == "t"
    assert "one message a line" in trace.notes[0]


def test_it_tells_a_line_of_messages_from_a_line_that_is_a_conversation():
    assert len(traces_of(lines({"messages": messages("a", "b")}, messages("c")))) == 2
    with_metadata = {"role": "user", "content": "q", "metadata": {"a": 1}}
    [trace] = traces_of(lines(with_metadata, *messages("x", "y")))
    assert len(trace.steps) == 3


@pytest.mark.parametrize(
    "line",
    [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "x"}]},
        {"role": "user", "content": "x", "parts": []},
        {"role": "user"},
    ],
)
def test_it_takes_no_message_of_another_kind_for_a_bare_one(line):
    [rejected] = rejected_of(items_of(lines(*messages("a"), line), "openai-chat"))
    assert rejected.place.startswith("record 2")


GROK = [
    {"type": "system", "content": "rules"},
    {"type": "user", "content": [{"type": "text", "text": "p"}], "synthetic_reason": "policy"},
    {"type": "user", "content": [{"type": "text", "text": "go"}], "prompt_index": 0},
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "why"}]},
    {"type": "backend_tool_call", "kind": {
        "tool_type": "web_search", "action": {"query": "q"}, "id": "w",
        "status": "completed"}},
    {"type": "assistant", "content": "I read.", "model_id": "grok-x",
     "tool_calls": [{"id": "c", "name": "read", "arguments": '{"f": 1}'}]},
    {"type": "tool_result", "tool_call_id": "c", "content": "text"},
    {"type": "assistant", "content": "Done.", "model_id": "grok-x"},
]  # fmt: skip


def test_it_reads_a_history_of_grok_build():
    assert slug_of(lines(*GROK)) == "grok-build"
    [trace] = traces_of(lines(*GROK))
    first, second = calls_of(trace)
    assert (first.body.output, first.body.reasoning) == ("I read.", "why")
    assert (first.call.model, second.body.output) == ("grok-x", "Done.")
    search, read = tools_of(trace)
    assert (search.name, search.status) == ("web_search", StepStatus.OK)
    assert (read.body.input, read.body.output) == ({"f": 1}, "text")
    kinds = [step.kind for step in trace.steps[:3]]
    assert kinds == [StepKind.SYSTEM, StepKind.SYSTEM, StepKind.USER_MESSAGE]


def pi_answer(*blocks, stop="toolUse", output=7):
    return {"role": "assistant", "content": list(blocks), "provider": "p", "model": "m-1",
            "stopReason": stop, "timestamp": 1767261600000,
            "usage": {"input": 3, "output": output, "cacheRead": 10, "cacheWrite": 2,
                      "totalTokens": 22}}  # fmt: skip


CALL = {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "ls"}}
RESULT = {"role": "toolResult", "toolCallId": "c", "toolName": "bash", "isError": True,
          "content": [{"type": "text", "text": "no"}]}  # fmt: skip
PI = [
    {"type": "session", "version": 3, "id": "s1", "timestamp": AT, "cwd": "/w"},
    {"type": "message", "id": "1", "parentId": None,
     "message": {"role": "user", "content": "go"}},
    {"type": "message", "id": "2", "parentId": "1",
     "message": pi_answer({"type": "thinking", "thinking": "why"}, CALL)},
    {"type": "message", "id": "3", "parentId": "2", "message": RESULT},
    {"type": "compaction", "id": "4", "parentId": "3", "timestamp": AT, "summary": "s"},
    {"type": "message", "id": "5", "parentId": "4",
     "message": pi_answer({"type": "text", "text": "done"}, stop="length", output=9)},
    {"type": "message", "id": "6", "parentId": "4",
     "message": pi_answer(stop="error") | {"errorMessage": "529"}},
    {"type": "label", "id": "7", "parentId": "6"},
]  # fmt: skip


def test_it_reads_a_session_of_pi_whose_lines_have_the_type_message():
    assert slug_of(lines(*PI)) == "pi"
    [trace] = traces_of(lines(*PI))
    first, second, failed = calls_of(trace)
    usage = first.call.usage
    assert (usage.input_total, usage.input_cached, usage.total) == (15, 10, 22)
    assert first.call.finish is FinishReason.TOOL_CALLS
    assert second.call.finish is FinishReason.LENGTH
    assert (failed.status, failed.error_message) == (StepStatus.ERROR, "529")
    assert [step.call.resets_context for step in calls_of(trace)] == [False, True, True]
    [tool] = tools_of(trace)
    assert (tool.status, tool.body.output) == (StepStatus.ERROR, "no")
    assert trace.session == "s1"
    assert len(traces_of(lines(*PI, *PI))) == 2


def claw(kind, seq, **fields):
    return {"type": kind, "seq": seq, "ts": 1767261600000 + seq, "agentId": "main",
            "sessionKey": "agent:main"} | fields  # fmt: skip


CLAW = [
    {"type": "message.in", "content": "hi", "seq": 1, "ts": 1767261600000},
    claw("agent.start", 2, prompt="go"),
    claw("tool.start", 3, toolName="bash", params={"command": "ls"}),
    claw("tool.end", 4, toolName="bash", success=False, error="no"),
    claw("llm.usage", 5, model="m-1", inputTokens=4, outputTokens=6),
    claw("agent.end", 6, success=True, messages=[
        {"role": "user", "content": "go"}, pi_answer(CALL), RESULT,
        pi_answer({"type": "text", "text": "done"}, stop="stop")]),
]  # fmt: skip


def test_it_reads_a_run_of_openclaw_from_the_messages_at_its_end():
    assert slug_of(lines(*CLAW)) == "openclaw-telemetry"
    [trace] = traces_of(lines(*CLAW))
    assert outputs_of(trace) == [7, 7]
    assert len(tools_of(trace)) == 1
    assert trace.invocations[0].agent == "main"
    assert trace.notes == ()
    note = notes_of(items_of(lines(*CLAW)))["openclaw_events_not_read"]
    assert (note.count, "message.in" in note.sentence) == (1, True)


def test_it_reads_a_run_of_openclaw_that_never_ended_from_its_events():
    [trace] = traces_of(lines(*CLAW[:5]))
    assert outputs_of(trace) == [6]
    [tool] = tools_of(trace)
    assert (tool.status, tool.error_message) == (StepStatus.ERROR, "no")
    assert "no recorded end" in trace.notes[0]


def step_finish(output):
    return {"type": "step-finish", "reason": "tool-calls", "tokens": {
        "input": 5, "output": output, "reasoning": 1, "cache": {"read": 30, "write": 2}}}  # fmt: skip


OPENCODE = {
    "info": {"id": "ses_1", "title": "t", "version": "1"},
    "messages": [
        {"info": {"id": "m1", "role": "user", "time": {"created": 1767261600000}},
         "parts": [{"type": "text", "text": "go"}]},
        {"info": {"id": "m2", "role": "assistant", "modelID": "m-1", "providerID": "p", "mode": "build",
                  "time": {"created": 1767261601000, "completed": 1767261609000}},
         "parts": [
             {"type": "step-start"}, {"type": "reasoning", "text": "why"},
             {"type": "text", "text": "I look."},
             {"type": "tool", "tool": "bash", "callID": "c",
              "state": {"status": "completed", "input": {"a": 1}, "output": "x",
                        "time": {"start": 1767261602000, "end": 1767261603000}}},
             step_finish(20), {"type": "step-start"},
             {"type": "tool", "tool": "read", "callID": "d",
              "state": {"status": "error", "input": {}, "error": "no"}},
             step_finish(9), {"type": "odd"}]},
        {"info": {"id": "m3", "role": "assistant", "modelID": "m-1",
                  "error": {"name": "APIError", "data": {"message": "529"}}},
         "parts": []},
    ],
}  # fmt: skip


def test_it_reads_each_step_of_a_session_of_opencode():
    assert slug_of(as_json(OPENCODE)) == "opencode"
    [trace] = traces_of(as_json(OPENCODE))
    assert outputs_of(trace) == [20, 9, None]
    first, second, failed = calls_of(trace)
    assert (first.body.output, first.body.reasoning) == ("I look.", "why")
    assert first.call.usage.input_total == 37
    assert (failed.status, failed.error_message) == (StepStatus.ERROR, "529")
    good, bad = tools_of(trace)
    assert (good.call.requested_by, bad.call.requested_by) == (first.seq, second.seq)
    assert (good.body.output, bad.error_message) == ("x", "no")
    assert (trace.session, trace.metadata["title"]) == ("ses_1", "t")
    assert trace.notes == ("Parts of kinds that are not read: 1 (odd).",)
    [listed] = traces_of(as_json(OPENCODE["messages"]))
    assert outputs_of(listed) == [20, 9, None]
    assert [one.agent for one in listed.invocations] == ["build"]


# gptme: the usage stands in metadata.usage of both answers. Grok: the history is a whole
# conversation. OpenClaw: the ends of two runs hold eight answers with usage and the
# seven tools that they asked for.
DIFFERENCES = {
    "gptme_jsonl/av_gptme__2026-06-13-write-hello-world__conversation.jsonl":
        {"usage_known": 2, "usage_missing": 0},
    "grok_build/av_grok-build__current___workspace_grok-worktrees_parser-audit__"
    "019f6000-0000-7000-8000-000000000001__chat_history.jsonl":
        {"n_traces": 1, "model_calls": 2, "tool_calls": 2, "usage_missing": 2},
    "openclaw_telemetry_jsonl/crux1-sample-telemetry.jsonl":
        {"n_traces": 2, "model_calls": 8, "tool_calls": 7, "usage_known": 8},
}  # fmt: skip
FOLDERS = ("gemini_cli_json", "gptme_jsonl", "mistral_vibe", "grok_build",
           "openclaw_telemetry_jsonl")  # fmt: skip


@pytest.mark.parametrize("row", rows(*FOLDERS))
def test_it_finds_the_counts_of_the_index(row):
    if row["path"].endswith("__summary.json"):
        # A summary beside a history: no step stands in it.
        assert refusal_of((DATA / row["path"]).read_bytes()).endswith(".")
        return
    found, wanted = found_and_expected(row, DIFFERENCES)
    assert found == wanted
