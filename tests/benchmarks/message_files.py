"""The made runs as conversations, in the formats of APIs, agents and harnesses."""

from __future__ import annotations

import json
from typing import Any

from tests.benchmarks.runs import Run, Turn, as_lines, iso

USAGE = {"input_tokens": 900}


def _chat(run: Run) -> list[dict[str, Any]]:
    """The messages of a run as OpenAI's chat API has them."""
    said: list[dict[str, Any]] = [
        {"role": "system", "content": run.prompt},
        {"role": "user", "content": run.question},
    ]
    for turn in run.turns:
        said += [_asking(turn), _given(turn)]
    return said


def _asking(turn: Turn) -> dict[str, Any]:
    function = {"name": turn.tool, "arguments": turn.arguments}
    call = {"id": turn.call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": turn.text, "tool_calls": [call]}


def _given(turn: Turn) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": turn.call_id, "content": turn.result}


def openai_chat(runs: list[Run]) -> bytes:
    """One conversation a line."""
    return as_lines([{"messages": _chat(run)} for run in runs])


def tau_bench(runs: list[Run]) -> bytes:
    """A results file: one list of trials."""
    trials = [
        {
            "task_id": run.number,
            "trial": 0,
            "reward": 1.0,
            "info": {},
            "traj": _chat(run),
        }
        for run in runs
    ]
    return json.dumps(trials).encode()


def who_and_when(runs: list[Run]) -> bytes:
    """One history of all runs with its labels."""
    history = [
        {"content": f"{turn.text} {turn.result}", "role": f"Expert{turn.number % 3}"}
        for run in runs
        for turn in run.turns
    ]
    labels = {"mistake_agent": "Expert0", "mistake_step": "3", "mistake_reason": "r"}
    asked = {"question": runs[0].question, "is_correct": False, "ground_truth": "x"}
    return json.dumps({"history": history, **labels, **asked}).encode()


def request_log(runs: list[Run]) -> bytes:
    """One request with its response a line, the conversation growing."""
    return as_lines([record for run in runs for record in _requests(run)])


def _requests(run: Run) -> list[dict[str, Any]]:
    said = _chat(run)
    return [
        {
            "request": {"model": "m-1", "messages": said[: 2 + 2 * turn.number]},
            "response": {
                "id": f"chatcmpl-{run.number}-{turn.number}",
                "object": "chat.completion",
                "model": "m-1",
                "choices": [
                    {
                        "index": 0,
                        "message": _asking(turn),
                        "finish_reason": "tool_calls",
                    }
                ],
                "usage": {
                    "prompt_tokens": 900,
                    "completion_tokens": turn.output_tokens,
                },
            },
        }
        for turn in run.turns[:4]
    ]


def openai_responses(runs: list[Run]) -> bytes:
    """Input items of one long run."""
    items: list[dict[str, Any]] = [{"role": "user", "content": runs[0].question}]
    for turn in (turn for run in runs for turn in run.turns):
        part = {"type": "output_text", "text": turn.text, "annotations": []}
        items += [
            {"id": f"msg_{turn.call_id}", "type": "message", "role": "assistant",
             "status": "completed", "content": [part]},
            {"id": f"fc_{turn.call_id}", "type": "function_call", "name": turn.tool,
             "call_id": turn.call_id, "arguments": turn.arguments},
            {"type": "function_call_output", "call_id": turn.call_id,
             "output": turn.result},
        ]  # fmt: skip
    return json.dumps(items).encode()


def _blocks(turn: Turn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What an assistant and the user's side say in a turn, in Anthropic's blocks."""
    use = {"type": "tool_use", "id": turn.call_id, "name": turn.tool,
           "input": json.loads(turn.arguments)}  # fmt: skip
    result = {
        "type": "tool_result",
        "tool_use_id": turn.call_id,
        "content": turn.result,
    }
    return [{"type": "text", "text": turn.text}, use], [result]


def anthropic(runs: list[Run]) -> bytes:
    """One request's messages."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": runs[0].question}]
    for run in runs:
        for turn in run.turns:
            asking, given = _blocks(turn)
            messages += [
                {"role": "assistant", "content": asking},
                {"role": "user", "content": given},
            ]
    return json.dumps({"system": runs[0].prompt, "messages": messages}).encode()


def claude_code(runs: list[Run]) -> bytes:
    """One session with two lines for each answer."""
    own: list[object] = []
    for turn in (turn for run in runs for turn in run.turns):
        asking, given = _blocks(turn)
        usage = USAGE | {"output_tokens": turn.output_tokens}
        message = {"id": f"msg_{turn.call_id}", "role": "assistant", "model": "m-1",
                   "stop_reason": "tool_use", "usage": usage}  # fmt: skip
        line = {"sessionId": "s1", "timestamp": iso(turn.at_ns), "isSidechain": False}
        told = [
            ("assistant", message | {"content": [block]}, f"u{turn.call_id}{number}")
            for number, block in enumerate(asking)
        ]
        told.append(("user", {"role": "user", "content": given}, f"r{turn.call_id}"))
        own += [
            {"type": kind, "message": one, "uuid": uuid, "parentUuid": None, **line}
            for kind, one, uuid in told
        ]
    return as_lines(own)


def codex(runs: list[Run]) -> bytes:
    """One rollout with the usage of each call."""
    values: list[object] = [
        _rollout(
            0, "session_meta", id="s1", model_provider="p", cwd="/w", cli_version="1"
        ),
        _rollout(0, "turn_context", model="m-1"),
    ]
    total = 0
    for at, turn in enumerate(turn for run in runs for turn in run.turns):
        part = {"type": "output_text", "text": turn.text}
        total += turn.output_tokens
        values += [
            _rollout(at, "response_item", type="message", role="assistant", content=[part]),
            _rollout(at, "response_item", type="function_call", call_id=turn.call_id,
                     name=turn.tool, arguments=turn.arguments),
            _rollout(at, "event_msg", type="token_count", info={
                "last_token_usage": _tokens(turn.output_tokens),
                "total_token_usage": _tokens(total)}),
            _rollout(at, "response_item", type="function_call_output",
                     call_id=turn.call_id, output=turn.result),
        ]  # fmt: skip
    return as_lines(values)


def _rollout(at: int, kind: str, **payload: Any) -> dict[str, Any]:
    second = f"2026-01-01T{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}Z"
    return {"timestamp": second, "type": kind, "payload": payload}


def _tokens(output: int) -> dict[str, int]:
    return {"input_tokens": 900, "cached_input_tokens": 0, "output_tokens": output,
            "reasoning_output_tokens": 0, "total_tokens": 900 + output}  # fmt: skip


def langchain(runs: list[Run]) -> bytes:
    """The messages of one thread."""
    messages: list[dict[str, Any]] = [{"type": "human", "content": runs[0].question}]
    for turn in (turn for run in runs for turn in run.turns):
        call = {"name": turn.tool, "args": json.loads(turn.arguments),
                "id": turn.call_id, "type": "tool_call"}  # fmt: skip
        usage = USAGE | {"output_tokens": turn.output_tokens, "total_tokens": 900}
        messages += [
            {"type": "ai", "content": turn.text, "name": "desk", "id": f"r{turn.call_id}",
             "tool_calls": [call], "usage_metadata": usage,
             "response_metadata": {"finish_reason": "tool_calls", "model_name": "m-1"}},
            {"type": "tool", "content": turn.result, "name": turn.tool,
             "tool_call_id": turn.call_id, "status": "success"},
        ]  # fmt: skip
    return json.dumps(messages).encode()


def pydantic_ai(runs: list[Run]) -> bytes:
    """The message history of one run."""
    asked = {"part_kind": "user-prompt", "content": runs[0].question}
    history: list[dict[str, Any]] = [{"kind": "request", "parts": [asked]}]
    for turn in (turn for run in runs for turn in run.turns):
        moment = iso(turn.at_ns)
        said = {"part_kind": "text", "content": turn.text}
        call = {"part_kind": "tool-call", "tool_name": turn.tool,
                "args": turn.arguments, "tool_call_id": turn.call_id}  # fmt: skip
        given = {"part_kind": "tool-return", "tool_name": turn.tool,
                 "content": turn.result, "tool_call_id": turn.call_id,
                 "timestamp": moment}  # fmt: skip
        history += [
            {"kind": "response", "parts": [said, call], "model_name": "m-1",
             "timestamp": moment, "finish_reason": "tool_call",
             "usage": USAGE | {"output_tokens": turn.output_tokens}},
            {"kind": "request", "parts": [given], "timestamp": moment},
        ]  # fmt: skip
    return json.dumps(history).encode()


def atif(runs: list[Run]) -> bytes:
    """One trajectory."""
    steps: list[dict[str, Any]] = [
        {"step_id": 1, "source": "user", "message": runs[0].question}
    ]
    for at, turn in enumerate(turn for run in runs for turn in run.turns):
        call = {"tool_call_id": turn.call_id, "function_name": turn.tool,
                "arguments": json.loads(turn.arguments)}  # fmt: skip
        result = {"source_call_id": turn.call_id, "content": turn.result}
        steps.append(
            {"step_id": at + 2, "source": "agent", "model_name": "m-1",
             "timestamp": iso(turn.at_ns), "message": turn.text, "tool_calls": [call],
             "observation": {"results": [result]},
             "metrics": {"prompt_tokens": 900, "completion_tokens": turn.output_tokens}}
        )  # fmt: skip
    agent = {"name": "desk", "version": "1", "model_name": "m-1"}
    whole = {"schema_version": "ATIF-v1.6", "session_id": "s1", "agent": agent}
    return json.dumps(whole | {"steps": steps}).encode()


def inspect_log(runs: list[Run]) -> bytes:
    """One log with a sample for each run."""
    return json.dumps(
        {"version": 2, "status": "success", "eval": {"task": "desk", "model": "m-1"},
         "samples": [_sample(run) for run in runs]}
    ).encode()  # fmt: skip


def _sample(run: Run) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    for turn in run.turns:
        moment = iso(turn.at_ns).replace("Z", "+00:00")
        message = {"role": "assistant", "content": turn.text,
                   "tool_calls": [{"id": turn.call_id, "function": turn.tool}]}  # fmt: skip
        usage = USAGE | {"output_tokens": turn.output_tokens, "total_tokens": 900}
        choices = [{"message": message, "stop_reason": "tool_calls"}]
        events += [
            {"event": "model", "timestamp": moment, "completed": moment, "model": "m-1",
             "input": [], "uuid": f"m{turn.call_id}",
             "output": {"model": "m-1", "usage": usage, "choices": choices}},
            {"event": "tool", "timestamp": moment, "completed": moment,
             "id": turn.call_id, "function": turn.tool, "uuid": f"t{turn.call_id}",
             "arguments": json.loads(turn.arguments), "result": turn.result},
        ]  # fmt: skip
    return {"id": f"q{run.number}", "epoch": 1, "input": run.question, "target": "x",
            "scores": {"match": {"value": "C"}}, "events": events}  # fmt: skip
