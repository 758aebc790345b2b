"""The made runs as the files of agent frameworks, coding agents and session logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.benchmarks.runs import SECOND, Run, Turn, as_lines, iso


def turns_of(runs: list[Run]) -> Iterator[Turn]:
    """The turns of all runs, as one long run."""
    return (turn for run in runs for turn in run.turns)


def _function(turn: Turn) -> dict[str, Any]:
    function = {"name": turn.tool, "arguments": turn.arguments}
    return {"id": turn.call_id, "type": "function", "function": function}


def claude_stream(runs: list[Run]) -> bytes:
    """The stream of one run: one line for each answer and each result."""
    values: list[object] = [
        {"type": "system", "subtype": "init", "session_id": "s1", "model": "m-1"}
    ]
    for turn in turns_of(runs):
        use = {"type": "tool_use", "id": turn.call_id, "name": turn.tool,
               "input": json.loads(turn.arguments)}  # fmt: skip
        result = {"type": "tool_result", "tool_use_id": turn.call_id,
                  "content": turn.result}  # fmt: skip
        usage = {"input_tokens": 900, "output_tokens": turn.output_tokens}
        said = [{"type": "text", "text": turn.text}, use]
        answer = {"id": f"msg_{turn.call_id}", "role": "assistant", "model": "m-1",
                  "content": said, "stop_reason": "tool_use", "usage": usage}  # fmt: skip
        own = {"session_id": "s1", "parent_tool_use_id": None}
        values += [
            {"type": "assistant", "message": answer, **own},
            {"type": "user", "message": {"role": "user", "content": [result]}, **own},
        ]
    return as_lines(values)


def swe_agent(runs: list[Run]) -> bytes:
    """One trajectory with its history."""
    history: list[dict[str, Any]] = [
        {"role": "system", "content": runs[0].prompt, "agent": "main"},
        {"role": "user", "content": runs[0].question, "agent": "main"},
    ]
    steps = []
    for turn in turns_of(runs):
        action = f"{turn.tool} {turn.number}"
        history += [
            {
                "role": "assistant",
                "content": turn.text,
                "action": action,
                "agent": "main",
            },
            {"role": "user", "content": turn.result, "agent": "main"},
        ]
        steps.append(
            {"action": action, "observation": turn.result, "response": turn.text,
             "thought": turn.text}
        )  # fmt: skip
    info = {"exit_status": "submitted", "submission": "x", "model_stats": {}}
    return json.dumps(
        {"environment": "main", "trajectory": steps, "history": history, "info": info}
    ).encode()


def mini_swe_agent(runs: list[Run]) -> bytes:
    """One trajectory, with the API's response beside each answer."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": runs[0].prompt},
        {"role": "user", "content": runs[0].question},
    ]
    for turn in turns_of(runs):
        said = {
            "role": "assistant",
            "content": turn.text,
            "tool_calls": [_function(turn)],
        }
        response = {
            "id": f"chatcmpl-{turn.call_id}", "object": "chat.completion", "model": "m-1",
            "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 900, "completion_tokens": turn.output_tokens},
        }  # fmt: skip
        at = turn.at_ns / SECOND
        messages += [
            said | {"extra": {"response": response, "timestamp": at}},
            {"role": "tool", "tool_call_id": turn.call_id, "content": turn.result,
             "extra": {"returncode": 0, "timestamp": at + 1}},
        ]  # fmt: skip
    return json.dumps(
        {"trajectory_format": "mini-swe-agent-1.1", "messages": messages,
         "info": {"exit_status": "Submitted", "model_stats": {}}}
    ).encode()  # fmt: skip


def autogen(runs: list[Run]) -> bytes:
    """The result of one task."""
    messages = [
        _autogen("TextMessage", "user", "q", runs[0].question, runs[0].turns[0])
    ]
    for turn in turns_of(runs):
        usage = {"prompt_tokens": 900, "completion_tokens": turn.output_tokens}
        call = {"id": turn.call_id, "name": turn.tool, "arguments": turn.arguments}
        done = {"call_id": turn.call_id, "name": turn.tool, "content": turn.result,
                "is_error": False}  # fmt: skip
        messages += [
            _autogen("ThoughtEvent", "desk", "t", turn.text, turn),
            _autogen("ToolCallRequestEvent", "desk", "a", [call], turn)
            | {"models_usage": usage},
            _autogen("ToolCallExecutionEvent", "desk", "r", [done], turn),
        ]
    return json.dumps({"messages": messages, "stop_reason": "done"}).encode()


def _autogen(
    kind: str, source: str, mark: str, content: Any, turn: Turn
) -> dict[str, Any]:
    return {"id": f"{mark}-{turn.call_id}", "type": kind, "source": source,
            "content": content, "models_usage": None, "created_at": iso(turn.at_ns),
            "metadata": {}}  # fmt: skip


def crewai(runs: list[Run]) -> bytes:
    """The event bus of one crew, one event a line."""
    events = [_crew(1, "crew_kickoff_started", crew_name="desk"),
              _crew(2, "agent_execution_started", agent={"role": "Clerk"})]  # fmt: skip
    for number, turn in enumerate(turns_of(runs)):
        own = {"parent_event_id": "e-2", "agent_role": "Clerk"}
        at = 3 + number * 4
        usage = {"prompt_tokens": 900, "completion_tokens": turn.output_tokens}
        tool = {"tool_name": turn.tool, "tool_args": turn.arguments}
        events += [
            _crew(at, "llm_call_started", **own),
            _crew(at + 1, "llm_call_completed", started_event_id=f"e-{at}", model="m-1",
                  response=turn.text, usage=usage, response_id=f"r{turn.call_id}",
                  finish_reason="tool_calls", **own),
            _crew(at + 2, "tool_usage_started", **tool, **own),
            _crew(at + 3, "tool_usage_finished", started_event_id=f"e-{at + 2}",
                  output=turn.result, **tool, **own),
        ]  # fmt: skip
    return as_lines(list(events))


def _crew(number: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "event_id": f"e-{number}", "emission_sequence": number,
            "timestamp": f"2026-03-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:"
            f"{number % 60:02}Z", **more}  # fmt: skip


def smolagents(runs: list[Run]) -> bytes:
    """The full steps of one run."""
    steps: list[dict[str, Any]] = [{"task": runs[0].question}]
    for number, turn in enumerate(turns_of(runs), 1):
        at = turn.at_ns / SECOND
        function = {"name": turn.tool, "arguments": json.loads(turn.arguments)}
        steps.append(
            {"step_number": number, "timing": {"start_time": at, "end_time": at + 1},
             "model_input_messages": [{"role": "user", "content": "go on"}],
             "model_output_message": {"role": "assistant", "content": turn.text},
             "model_output": turn.text, "error": None, "observations": turn.result,
             "tool_calls": [{"id": turn.call_id, "type": "function", "function": function}],
             "token_usage": {"input_tokens": 900, "output_tokens": turn.output_tokens}}
        )  # fmt: skip
    return json.dumps(steps).encode()


def vercel_ai(runs: list[Run]) -> bytes:
    """The result of one `generateText` with its steps."""
    steps = []
    for number, turn in enumerate(turns_of(runs)):
        own = {"toolCallId": turn.call_id, "toolName": turn.tool,
               "input": json.loads(turn.arguments)}  # fmt: skip
        content = [{"type": "text", "text": turn.text}, {"type": "tool-call", **own},
                   {"type": "tool-result", **own, "output": turn.result}]  # fmt: skip
        steps.append(
            {"stepNumber": number, "model": {"provider": "p", "modelId": "m-1"},
             "functionId": "desk", "content": content, "finishReason": "tool-calls",
             "usage": {"inputTokens": 900, "outputTokens": turn.output_tokens},
             "response": {"id": f"r{turn.call_id}", "timestamp": iso(turn.at_ns)}}
        )  # fmt: skip
    return json.dumps({"text": "x", "finishReason": "stop", "steps": steps}).encode()


def google_adk(runs: list[Run]) -> bytes:
    """One session."""
    events = [_adk("user", runs[0].turns[0], {"text": runs[0].question})]
    for turn in turns_of(runs):
        call = {
            "id": turn.call_id,
            "name": turn.tool,
            "args": json.loads(turn.arguments),
        }
        given = {
            "id": turn.call_id,
            "name": turn.tool,
            "response": {"out": turn.result},
        }
        usage = {"prompt_token_count": 900, "candidates_token_count": turn.output_tokens,
                 "total_token_count": 900 + turn.output_tokens}  # fmt: skip
        events += [
            _adk("desk", turn, {"text": turn.text}, {"function_call": call})
            | {"usage_metadata": usage},
            _adk("desk", turn, {"function_response": given}),
        ]
    whole = {"id": "s1", "app_name": "desk", "user_id": "u", "events": events}
    return json.dumps(whole).encode()


def _adk(author: str, turn: Turn, *parts: dict[str, Any]) -> dict[str, Any]:
    kind = "-".join(sorted(key for part in parts for key in part))
    role = "user" if author == "user" else "model"
    return {"id": f"{author}-{kind}-{turn.call_id}", "invocation_id": "i", "actions": {},
            "author": author, "timestamp": turn.at_ns / SECOND,
            "content": {"role": role, "parts": list(parts)}}  # fmt: skip


def tau2(runs: list[Run]) -> bytes:
    """A results file with a simulation for each run."""
    info = {"agent_info": {"implementation": "llm_agent", "llm": "m-1"},
            "user_info": {"implementation": "user_simulator", "llm": "m-2"}}  # fmt: skip
    runs_of = [
        {"id": f"0e0f0a0b-1c1d-4e1f-8a8b-{run.number:012x}", "task_id": f"t{run.number}",
         "trial": 0, "termination_reason": "user_stop", "reward_info": {"reward": 1.0},
         "messages": [message for turn in run.turns for message in _tau2(turn)]}
        for run in runs
    ]  # fmt: skip
    return json.dumps({"info": info, "tasks": [], "simulations": runs_of}).encode()


def _tau2(turn: Turn) -> list[dict[str, Any]]:
    call = {"id": turn.call_id, "name": turn.tool, "requestor": "assistant",
            "arguments": json.loads(turn.arguments)}  # fmt: skip
    usage = {"completion_tokens": turn.output_tokens, "prompt_tokens": 900}
    return [
        {"role": "assistant", "content": turn.text, "tool_calls": [call], "cost": 0.1,
         "usage": usage, "timestamp": iso(turn.at_ns)},
        {"role": "tool", "id": turn.call_id, "content": turn.result, "error": False,
         "requestor": "assistant", "timestamp": iso(turn.at_ns)},
    ]  # fmt: skip


def openhands(runs: list[Run]) -> bytes:
    """The events of one conversation with the API's responses."""
    events: list[dict[str, Any]] = []
    for number, turn in enumerate(turns_of(runs)):
        usage = {"completion_tokens": turn.output_tokens, "prompt_tokens": 900}
        choices = [{"finish_reason": "tool_calls", "message": {"content": turn.text}}]
        response = {"id": f"r{turn.call_id}", "model": "m-1", "choices": choices,
                    "usage": usage}  # fmt: skip
        meta = {"function_name": "execute_bash", "tool_call_id": turn.call_id,
                "model_response": response}  # fmt: skip
        own = {"source": "agent", "timestamp": iso(turn.at_ns)[:-1]}
        events += [
            {"id": number * 2, "action": "run", "args": {"command": turn.tool},
             "tool_call_metadata": meta, **own},
            {"id": number * 2 + 1, "observation": "run", "cause": number * 2,
             "content": turn.result, "extras": {}, "tool_call_metadata": meta, **own},
        ]  # fmt: skip
    return json.dumps(events).encode()


def gptme(runs: list[Run]) -> bytes:
    """One conversation, one message a line."""
    values: list[object] = []
    for turn in turns_of(runs):
        at = iso(turn.at_ns)[:-1] + ".000000"
        usage = {"input_tokens": 900, "output_tokens": turn.output_tokens}
        values += [
            {"role": "assistant", "content": turn.text, "timestamp": at,
             "metadata": {"model": "p/m-1", "usage": usage}},
            {"role": "tool", "content": turn.result, "timestamp": at},
        ]  # fmt: skip
    return as_lines(values)


def mistral_vibe(runs: list[Run]) -> bytes:
    """One conversation, one message a line."""
    values: list[object] = [
        {"role": "user", "content": runs[0].question, "message_id": "q"}
    ]
    for turn in turns_of(runs):
        values += [
            {"role": "assistant", "content": turn.text, "message_id": f"a{turn.call_id}",
             "tool_calls": [{"index": 0, **_function(turn)}]},
            {"role": "tool", "content": turn.result, "name": turn.tool,
             "tool_call_id": turn.call_id, "message_id": f"r{turn.call_id}"},
        ]  # fmt: skip
    return as_lines(values)


def opik(runs: list[Run]) -> bytes:
    """Traces with their spans, one a line."""
    return as_lines([_opik(run) for run in runs])


def _opik(run: Run) -> dict[str, Any]:
    own_id = f"01a22a79-993b-7ecd-b87d-{run.number:012x}"
    spans: list[dict[str, Any]] = []
    for turn in run.turns:
        own = {"trace_id": own_id, "start_time": iso(turn.at_ns),
               "end_time": iso(turn.at_ns + SECOND)}  # fmt: skip
        usage = {"prompt_tokens": 900, "completion_tokens": turn.output_tokens}
        mark = f"{run.number:08x}{turn.number:04x}"
        spans += [
            {"id": f"01a22a79-0000-7000-8000-{mark}", "type": "llm", "name": "chat",
             "model": "m-1", "usage": usage, "input": {"messages": [run.question]},
             "output": {"output": turn.text}, **own},
            {"id": f"01a22a79-0001-7000-8000-{mark}", "type": "tool", "name": turn.tool,
             "input": json.loads(turn.arguments), "output": {"output": turn.result},
             **own},
        ]  # fmt: skip
    trace = {"id": own_id, "project_name": "desk", "name": "desk",
             "start_time": iso(run.turns[0].at_ns), "input": {"q": run.question},
             "output": {"output": "x"}, "metadata": {}, "tags": []}  # fmt: skip
    return {"trace": trace, "spans": spans}
