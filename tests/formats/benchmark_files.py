"""Small files of benchmark harnesses, made by hand for the tests of their readers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from apps.engine.trace import ModelCall, Step, StepKind, StepStatus, Trace
from tests.formats.index import COUNTED
from tests.formats.reading import counts_of


def index_counts(traces: list[Trace]) -> dict[str, int]:
    """The counts of the index for harnesses: there a failed tool counts once."""
    counts = counts_of(traces)
    steps = [step for trace in traces for step in trace.steps]
    counts["errors"] = sum(step.status is StepStatus.ERROR for step in steps)
    return {key: counts[key] for key in COUNTED}


def of_kind(trace: Trace, kind: StepKind) -> list[Step]:
    return [step for step in trace.steps if step.kind is kind]


def calls_of(trace: Trace) -> list[ModelCall]:
    """The model calls of a trace in order."""
    return [step.call for step in of_kind(trace, StepKind.MODEL_CALL)]


def agents_of(trace: Trace, kind: StepKind) -> list[str | None]:
    """The agent of each step of a kind."""
    return [trace.invocations[one.invocation].agent for one in of_kind(trace, kind)]


UUID = "0e0f0a0b-1c1d-4e1f-8a8b-2c2d2e2f3a3b"


# tau2-bench


def said(role: str, text: str, output: int | None = None, **more: Any) -> dict:
    usage = (
        None if output is None else {"completion_tokens": output, "prompt_tokens": 9}
    )
    return {"role": role, "content": text, "usage": usage, "cost": 0.1,
            "timestamp": "2026-01-05T10:00:01", **more}  # fmt: skip


def tool_call(own_id: str, name: str, requestor: str) -> dict:
    return {"id": own_id, "name": name, "arguments": {"n": 1}, "requestor": requestor}


def tau2_run(messages: list, **more: Any) -> dict:
    return {"id": UUID, "task_id": "t1", "trial": 2, "termination_reason": "user_stop",
            "reward_info": {"reward": 1.0, "action_checks": ["secret"]},
            "messages": messages, **more}  # fmt: skip


def tau2_results(*runs: Any, **more: Any) -> dict:
    info = {"agent_info": {"implementation": "llm_agent", "llm": "m-1"},
            "user_info": {"implementation": "user_simulator", "llm": "m-2"},
            "environment_info": {"domain_name": "mock", "policy": "rules"}}  # fmt: skip
    tasks = [{"id": "t1", "evaluation_criteria": {"actions": ["secret"]}}]
    return {"info": info, "tasks": tasks, "simulations": list(runs), **more}


# ATIF


def atif_step(number: int, message: str = "", **more: Any) -> dict:
    return {"step_id": number, "source": "agent", "message": message,
            "timestamp": f"2026-01-05T10:00:{number:02}Z", **more}  # fmt: skip


def ran(number: int, own_id: str, at: int, **more: Any) -> dict:
    call = {"tool_call_id": own_id, "function_name": "Bash", "arguments": {"c": "ls"}}
    result = {"source_call_id": own_id, "content": f"result {own_id}"}
    step = atif_step(
        number, f"Executed Bash {own_id}", tool_calls=[call],
        observation={"results": [result]}, **more,
    )  # fmt: skip
    return {**step, "timestamp": f"2026-01-05T10:00:{at:02}Z"}


def tokens(output: int, given: int = 9) -> dict:
    return {
        "prompt_tokens": given,
        "completion_tokens": output,
        "cached_tokens": min(given, 4),
    }


def trajectory(*steps: Any, **more: Any) -> dict:
    return {"schema_version": "ATIF-v1.6", "session_id": "s-1",
            "agent": {"name": "terminus", "version": "1", "model_name": "m-1"},
            "steps": list(steps), **more}  # fmt: skip


# Inspect AI


def event(kind: str, second: int, **more: Any) -> dict:
    return {"event": kind, "timestamp": f"2026-01-05T10:00:{second:02}+00:00", **more}


def model(second: int, output: int | None, asks: tuple = (), **more: Any) -> dict:
    usage = None if output is None else {"input_tokens": 9, "output_tokens": output,
                                         "total_tokens": 9 + output}  # fmt: skip
    message = {"role": "assistant", "content": "hm",
               "tool_calls": [{"id": one, "function": "f"} for one in asks]}  # fmt: skip
    answer = {"model": "m-1", "usage": usage,
              "choices": [{"message": message, "stop_reason": "tool_calls"}]}  # fmt: skip
    return event("model", second, model="openai/m-1", input=[], output=answer,
                 completed=f"2026-01-05T10:00:{second + 1:02}+00:00", **more)  # fmt: skip


def tool(second: int, own_id: str, **more: Any) -> dict:
    return event("tool", second, id=own_id, function="f", arguments={"n": 1},
                 result="r", completed=f"2026-01-05T10:00:{second + 1:02}+00:00",
                 **more)  # fmt: skip


def begin(second: int, own_id: str, kind: str, name: str, parent: Any = None) -> dict:
    return event("span_begin", second, id=own_id, span_id=own_id, type=kind, name=name,
                 parent_id=parent)  # fmt: skip


def end(second: int, own_id: str) -> dict:
    return event("span_end", second, id=own_id, span_id=own_id)


def sample(*events: Any, **more: Any) -> dict:
    return {"id": "q1", "epoch": 2, "input": "how?", "target": "secret",
            "scores": {"match": {"value": "C"}}, "events": list(events), **more}  # fmt: skip


def inspect_log(*samples: Any, **more: Any) -> dict:
    return {"version": 2, "status": "success", "eval": {"task": "quiz", "model": "m"},
            "samples": list(samples), **more}  # fmt: skip


INSPECT_RUN = (
    event("sample_init", 1, sample={"input": "how?", "target": "secret"}),
    begin(2, "s", "solver", "react"),
    begin(2, "a", "agent", "billing", "s"),
    model(3, 40, ("c1",), span_id="a", uuid="m1"),
    tool(5, "c1", span_id="a", uuid="t1"),
    model(7, 30, span_id="a", uuid="m2"),
    end(9, "a"),
    end(9, "s"),
    begin(10, "g", "scorer", "graded"),
    model(11, 5, span_id="g"),
    end(13, "g"),
)


# OpenHands


def action(own_id: int, kind: str, args: dict | None = None, **more: Any) -> dict:
    return {"id": own_id, "source": "agent", "action": kind, "args": args or {},
            "timestamp": f"2026-01-05T10:00:{own_id:02}", **more}  # fmt: skip


def saw(own_id: int, kind: str, cause: int, content: str = "seen", **more: Any) -> dict:
    return {"id": own_id, "source": "agent", "observation": kind, "cause": cause,
            "content": content, "timestamp": f"2026-01-05T10:00:{own_id:02}",
            "extras": {}, **more}  # fmt: skip


def answered(response: str, call: str, output: int | None) -> dict:
    usage = {} if output is None else {
        "usage": {"completion_tokens": output, "prompt_tokens": 9}}  # fmt: skip
    choice = {"finish_reason": "tool_calls", "message": {"content": "words"}}
    return {"function_name": "execute_bash", "tool_call_id": call,
            "model_response": {"id": response, "model": "m-1", "choices": [choice],
                               **usage}}  # fmt: skip


def sdk(kind: str, own_id: str, source: str = "agent", **more: Any) -> dict:
    return {"kind": kind, "id": own_id, "source": source,
            "timestamp": "2026-01-05T10:00:01.5", **more}  # fmt: skip


def sdk_action(own_id: str, response: str, call: str) -> dict:
    return sdk("ActionEvent", own_id, llm_response_id=response, tool_call_id=call,
               tool_name="terminal", thought=[{"type": "text", "text": "hm"}],
               tool_call={"id": call, "name": "terminal", "arguments": '{"c": "ls"}'})  # fmt: skip


def sdk_seen(own_id: str, call: str, **more: Any) -> dict:
    seen = {"kind": "TerminalObservation", "content": [{"type": "text", "text": "out"}]}
    return sdk("ObservationEvent", own_id, "environment", tool_call_id=call,
               tool_name="terminal", observation={**seen, **more})  # fmt: skip


def harbor_job(folder: Path) -> Path:
    """A job of Harbor with one trial, and what lies around it."""
    files = {
        "a__b/agent/trajectory.json": trajectory(atif_step(1, "x", metrics=tokens(5))),
        "a__b/agent/trajectory.cont-1.json": trajectory(atif_step(1, "y")),
        "a__b/config.json": {"trial_name": "a__b", "trials_dir": "jobs"},
        "a__b/result.json": {
            "id": "1", "task_name": "a", "trial_name": "a__b",
            "verifier_result": {"rewards": {"reward": 1}},
        },
        "config.json": {"job_name": "j", "jobs_dir": "jobs", "n_attempts": 1},
        "result.json": {"id": "2", "n_total_trials": 1, "stats": {}},
        ".git/config.json": {},
        "node_modules/x/package.json": {},
    }  # fmt: skip
    for name, value in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    (folder / "job.log").write_text("started\n")
    return folder
