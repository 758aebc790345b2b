"""The made runs as session logs of command-line agents, and as nested span exports."""

from __future__ import annotations

import json
from typing import Any

from tests.benchmarks.agent_files import turns_of
from tests.benchmarks.runs import SECOND, Run, Turn, as_lines, iso
from tests.benchmarks.span_files import Span, otlp_values, spans_of

MS = SECOND // 1000


def iflow(runs: list[Run]) -> bytes:
    """One session, whose counts are always zero."""
    session = "session-5de701fc-7454-4858-a249-000000000001"
    values: list[object] = []
    for turn in turns_of(runs):
        use = {"type": "tool_use", "id": turn.call_id, "name": turn.tool,
               "input": json.loads(turn.arguments)}  # fmt: skip
        result = {"type": "tool_result", "tool_use_id": turn.call_id,
                  "content": turn.result}  # fmt: skip
        answer = {"id": f"m{turn.call_id}", "type": "message", "role": "assistant",
                  "content": [{"type": "text", "text": turn.text}, use],
                  "model": "m-1", "stop_reason": None,
                  "usage": {"input_tokens": 0, "output_tokens": 0}}  # fmt: skip
        own = {"sessionId": session, "parentUuid": None, "isSidechain": False,
               "timestamp": iso(turn.at_ns)}  # fmt: skip
        values += [
            {"type": "assistant", "uuid": f"a{turn.call_id}", "message": answer, **own},
            {"type": "user", "uuid": f"r{turn.call_id}",
             "message": {"role": "user", "content": [result]}, **own},
        ]  # fmt: skip
    return as_lines(values)


def codex_exec(runs: list[Run]) -> bytes:
    """One thread of `codex exec --json`."""
    values: list[object] = [{"type": "thread.started", "thread_id": "t1"},
                            {"type": "turn.started"}]  # fmt: skip
    for turn in turns_of(runs):
        own = {"id": f"c{turn.call_id}", "type": "command_execution",
               "command": turn.tool}  # fmt: skip
        said = {"id": f"a{turn.call_id}", "type": "agent_message", "text": turn.text}
        done = {"aggregated_output": turn.result, "exit_code": 0, "status": "completed"}
        values += [
            {"type": "item.completed", "item": said},
            {"type": "item.started", "item": own | {"status": "in_progress"}},
            {"type": "item.completed", "item": own | done},
        ]
    return as_lines(values)


def _pi_messages(turn: Turn) -> tuple[dict[str, Any], dict[str, Any]]:
    call = {"type": "toolCall", "id": turn.call_id, "name": turn.tool,
            "arguments": json.loads(turn.arguments)}  # fmt: skip
    usage = {"input": 900, "output": turn.output_tokens, "cacheRead": 0, "cacheWrite": 0,
             "totalTokens": 900 + turn.output_tokens}  # fmt: skip
    answer = {"role": "assistant", "content": [{"type": "text", "text": turn.text}, call],
              "provider": "p", "model": "m-1", "stopReason": "toolUse",
              "timestamp": turn.at_ns // MS, "usage": usage}  # fmt: skip
    result = {"role": "toolResult", "toolCallId": turn.call_id, "toolName": turn.tool,
              "isError": False, "content": [{"type": "text", "text": turn.result}]}  # fmt: skip
    return answer, result


def pi(runs: list[Run]) -> bytes:
    """One session."""
    values: list[object] = [
        {"type": "session", "version": 3, "id": "s1", "timestamp": iso(0), "cwd": "/w"}
    ]
    parent = None
    for turn in turns_of(runs):
        for mark, message in zip("ar", _pi_messages(turn), strict=True):
            own_id = f"{mark}{turn.call_id}"
            values.append(
                {
                    "type": "message",
                    "id": own_id,
                    "parentId": parent,
                    "message": message,
                }
            )
            parent = own_id
    return as_lines(values)


def openclaw(runs: list[Run]) -> bytes:
    """One session with each run's messages at its end."""
    values: list[object] = []
    for run in runs:
        messages = [one for turn in run.turns for one in _pi_messages(turn)]
        values.append(
            {"type": "agent.end", "seq": run.number, "ts": run.turns[0].at_ns // MS,
             "agentId": "main", "sessionKey": f"agent:{run.number}", "success": True,
             "messages": messages}
        )  # fmt: skip
    return as_lines(values)


def grok_build(runs: list[Run]) -> bytes:
    """One chat history."""
    values: list[object] = [{"type": "system", "content": runs[0].prompt}]
    for turn in turns_of(runs):
        call = {"id": turn.call_id, "name": turn.tool, "arguments": turn.arguments}
        values += [
            {"type": "assistant", "content": turn.text, "model_id": "m-1",
             "tool_calls": [call]},
            {"type": "tool_result", "tool_call_id": turn.call_id, "content": turn.result},
        ]  # fmt: skip
    return as_lines(values)


def gemini_cli(runs: list[Run]) -> bytes:
    """One session."""
    messages = []
    for turn in turns_of(runs):
        answer = {"functionResponse": {"id": turn.call_id, "name": turn.tool,
                                       "response": {"output": turn.result}}}  # fmt: skip
        call = {"id": turn.call_id, "name": turn.tool, "status": "success",
                "args": json.loads(turn.arguments), "result": [answer]}  # fmt: skip
        tokens = {"input": 900, "output": turn.output_tokens, "cached": 0, "thoughts": 0,
                  "tool": 0, "total": 900 + turn.output_tokens}  # fmt: skip
        messages.append(
            {"id": f"a{turn.call_id}", "timestamp": iso(turn.at_ns), "type": "gemini",
             "content": turn.text, "model": "m-1", "tokens": tokens, "toolCalls": [call]}
        )  # fmt: skip
    whole = {"sessionId": "s1", "projectHash": "h", "messages": messages}
    return json.dumps(whole).encode()


def opencode(runs: list[Run]) -> bytes:
    """One session with a message for each run."""
    messages = []
    for run in runs:
        parts = [part for turn in run.turns for part in _opencode_parts(turn)]
        at = run.turns[0].at_ns // MS
        info = {"id": f"m{run.number}", "role": "assistant", "modelID": "m-1",
                "providerID": "p", "mode": "build",
                "time": {"created": at, "completed": at + 9}}  # fmt: skip
        messages.append({"info": info, "parts": parts})
    whole = {
        "info": {"id": "ses_1", "title": "t", "version": "1"},
        "messages": messages,
    }
    return json.dumps(whole).encode()


def _opencode_parts(turn: Turn) -> list[dict[str, Any]]:
    state = {"status": "completed", "input": json.loads(turn.arguments),
             "output": turn.result, "time": {"start": 1, "end": 2}}  # fmt: skip
    tokens = {"input": 900, "output": turn.output_tokens, "reasoning": 0,
              "cache": {"read": 0, "write": 0}}  # fmt: skip
    return [
        {"type": "step-start"},
        {"type": "text", "text": turn.text},
        {"type": "tool", "tool": turn.tool, "callID": turn.call_id, "state": state},
        {"type": "step-finish", "reason": "tool-calls", "tokens": tokens},
    ]


def deepeval(runs: list[Run]) -> bytes:
    """Traces whose spans are sorted by kind, one a line."""
    return as_lines([_deepeval(run) for run in runs])


def _deepeval(run: Run) -> dict[str, Any]:
    lists: dict[str, list[dict[str, Any]]] = {"LLM": [], "TOOL": [], "AGENT": []}
    for span in spans_of([run]):
        turn = span.turn
        own = {"uuid": span.span_id, "name": span.name, "status": "SUCCESS",
               "type": span.kind.lower(), "parentUuid": span.parent_id,
               "startTime": iso(span.start_ns), "endTime": iso(span.end_ns)}  # fmt: skip
        if turn and span.kind == "LLM":
            own |= {"model": "m-1", "inputTokenCount": 900.0, "input": span.said,
                    "outputTokenCount": float(turn.output_tokens),
                    "output": turn.text}  # fmt: skip
        elif turn:
            own |= {"input": turn.arguments, "output": turn.result}
        lists[span.kind].append(own)
    return {"uuid": f"c1a28627-3e36-4a27-91f0-{run.number:012x}", "name": "desk",
            "startTime": iso(run.turns[0].at_ns), "endTime": iso(run.turns[-1].at_ns),
            "baseSpans": [], "retrieverSpans": [], "agentSpans": lists["AGENT"],
            "llmSpans": lists["LLM"], "toolSpans": lists["TOOL"]}  # fmt: skip


def any_agent(runs: list[Run]) -> bytes:
    """Traces of any-agent, one a line."""
    return as_lines(
        [{"spans": [_any_agent(span) for span in spans_of([run])],
          "final_output": "x"} for run in runs]
    )  # fmt: skip


def _any_agent(span: Span) -> dict[str, Any]:
    def context(own_id: str) -> dict[str, Any]:
        trace = int(span.trace_id, 16)
        return {"trace_id": trace, "span_id": int(own_id, 16), "is_remote": False}

    values = otlp_values(span)
    if span.kind == "LLM":
        values["gen_ai.operation.name"] = "call_llm"
    return {"name": span.name, "kind": "internal", "context": context(span.span_id),
            "parent": context(span.parent_id) if span.parent_id else None,
            "start_time": span.start_ns, "end_time": span.end_ns, "events": [],
            "status": {"status_code": "ok", "description": None}, "links": [],
            "attributes": values, "resource": {"attributes": {}, "schema_url": ""}}  # fmt: skip


def trail(runs: list[Run]) -> bytes:
    """Trees of spans, one a line."""
    return as_lines([_tree(run) for run in runs])


def _tree(run: Run) -> dict[str, Any]:
    *children, root = spans_of([run])
    whole = _branch(root) | {"child_spans": [_branch(span) for span in children]}
    return {"trace_id": root.trace_id, "spans": [whole]}


def _branch(span: Span) -> dict[str, Any]:
    turn = span.turn
    values = {"openinference.span.kind": span.kind}
    if turn and span.kind == "LLM":
        values |= {"llm.model_name": "m-1", "llm.token_count.prompt": "900",
                   "llm.token_count.completion": str(turn.output_tokens),
                   "input.value": json.dumps(span.said), "output.value": turn.text}  # fmt: skip
    elif turn:
        values |= {"tool.name": turn.tool, "input.value": turn.arguments,
                   "output.value": turn.result}  # fmt: skip
    return {"timestamp": iso(span.start_ns), "trace_id": span.trace_id,
            "span_id": span.span_id, "parent_span_id": span.parent_id,
            "span_name": span.name, "span_kind": "Internal", "service_name": "desk",
            "resource_attributes": {}, "scope_name": "x", "span_attributes": values,
            "duration": "PT1S", "status_code": "Ok", "status_message": "", "events": [],
            "links": [], "logs": [], "child_spans": []}  # fmt: skip


def trulens(runs: list[Run]) -> bytes:
    """Rows of the event table, one a line."""
    return as_lines([_event(span) for span in spans_of(runs)])


def _event(span: Span) -> dict[str, Any]:
    turn, scope = span.turn, "ai.observability."
    kinds = {"LLM": "generation", "TOOL": "tool", "AGENT": "record_root"}
    values: dict[str, Any] = {f"{scope}span_type": kinds[span.kind]}
    if turn and span.kind == "LLM":
        values |= {f"{scope}cost.model": "m-1", f"{scope}cost.num_prompt_tokens": 900,
                   f"{scope}cost.num_completion_tokens": turn.output_tokens,
                   f"{scope}call.return": turn.text}  # fmt: skip
    elif turn:
        values[f"{scope}call.return"] = turn.result
    own, parent = str(int(span.span_id, 16)), span.parent_id
    above = str(int(parent, 16)) if parent else ""
    return {"event_id": own, "record_type": "SPAN", "resource_attributes": {},
            "record": {"name": span.name, "kind": 1, "parent_span_id": above,
                       "status": "STATUS_CODE_UNSET"},
            "start_timestamp": iso(span.start_ns)[:-1].replace("T", " "),
            "timestamp": iso(span.end_ns)[:-1].replace("T", " "),
            "trace": {"trace_id": str(int(span.trace_id, 16)), "span_id": own,
                      "parent_id": above},
            "record_attributes": values}  # fmt: skip
