"""Small files of our own as SWE-agent, AutoGen, CrewAI, smolagents and others write them."""

from __future__ import annotations

from typing import Any

from tests.formats.provider_samples import ASKED, FOUND, LOOKED, completion, tool

SWE_AGENT = {
    "environment": "main",
    "trajectory": [
        {
            "action": "find_file parcel.py",
            "observation": "found 1 file",
            "response": "Let us look.",
            "thought": "Look first.",
        },
        {
            "action": "/usr/bin/python -m pytest\n",
            "observation": "1 passed",
            "response": "Now test.",
            "thought": "Now test.",
        },
        {"action": "", "observation": "", "response": "Done.", "thought": "Done."},
    ],
    "history": [
        {"role": "system", "content": "You fix code.", "agent": "main"},
        {"role": "user", "content": "Fix it.", "agent": "main"},
        {
            "role": "assistant",
            "content": "Let us look.",
            "action": "find_file parcel.py",
            "agent": "main",
            "tool_calls": [tool("find_file", "call_1")],
        },
    ],
    "info": {"exit_status": "submitted", "submission": "diff", "model_stats": {}},
}

MINI_SWE = {
    "trajectory_format": "mini-swe-agent-1.1",
    "info": {"exit_status": "Submitted", "model_stats": {"api_calls": 3}},
    "messages": [
        {"role": "system", "content": "You fix code."},
        {"role": "user", "content": "Fix it."},
        {
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": [tool("bash", "call_1", '{"command": "ls"}')],
            "extra": {
                "response": completion("Looking.", number=1),
                "actions": [{"command": "ls", "tool_call_id": "call_1"}],
                "timestamp": 1_790_000_000.5,
            },
        },
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": "a.py",
            "extra": {"returncode": 0, "timestamp": 1_790_000_001.5},
        },
        {
            "role": "user",
            "content": "Use a tool.",
            "extra": {
                "interrupt_type": "FormatError",
                "response": completion("No.", number=2, output=3),
            },
        },
        {"role": "assistant", "content": "ok", "extra": {}},
        {"role": "exit", "content": "Submitted", "extra": {}},
    ],
}


def autogen_message(kind: str, source: str, content: Any, usage=None) -> dict[str, Any]:
    return {
        "id": f"{kind}-{source}",
        "type": kind,
        "source": source,
        "content": content,
        "models_usage": usage,
        "created_at": "2026-03-01T10:00:00Z",
    }


AUTOGEN = {
    "messages": [
        autogen_message("TextMessage", "user", "Where is parcel A-1?"),
        autogen_message("ThoughtEvent", "clerk", "Look it up."),
        autogen_message(
            "ToolCallRequestEvent",
            "clerk",
            [{"id": "call_1", "name": "find_parcel", "arguments": '{"id": "A-1"}'}],
            {"prompt_tokens": 20, "completion_tokens": 12},
        ),
        autogen_message(
            "ToolCallExecutionEvent",
            "clerk",
            [
                {
                    "call_id": "call_1",
                    "name": "find_parcel",
                    "content": "no such parcel",
                    "is_error": True,
                }
            ],
        ),
        autogen_message(
            "TextMessage",
            "clerk",
            "It is unknown.",
            {"prompt_tokens": 0, "completion_tokens": 0},
        ),
    ],
    "stop_reason": "done",
}

AUTOGEN_LOG = [
    {
        "type": "LLMCall",
        "agent_id": "clerk_0a1b2c3d-0000-4000-8000-000000000001/0a1b2c3d",
        "messages": ASKED,
        "response": completion(None, number=1, tool_calls=LOOKED["tool_calls"]),
        "prompt_tokens": 30,
        "completion_tokens": 12,
    },
    {"type": "Message", "payload": "{}", "delivery_stage": "DeliveryStage.SEND"},
    {
        "type": "LLMCall",
        "agent_id": "clerk_0a1b2c3d-0000-4000-8000-000000000001/0a1b2c3d",
        "messages": [*ASKED, LOOKED, FOUND],
        "response": completion("It is in Graz.", number=2, output=5),
        "prompt_tokens": 30,
        "completion_tokens": 5,
    },
]


def crew_event(number: int, kind: str, **more) -> dict[str, Any]:
    return {
        "type": kind,
        "event_id": f"e-{number}",
        "emission_sequence": number,
        "timestamp": f"2026-03-01T10:00:{number:02}Z",
        "agent_role": None,
        **more,
    }


CREW = [
    crew_event(1, "crew_kickoff_started", crew_name="parcels"),
    crew_event(2, "agent_execution_started", agent={"role": "Clerk"}),
    crew_event(3, "llm_call_started", parent_event_id="e-2", agent_role="Clerk"),
    crew_event(
        4,
        "llm_call_completed",
        parent_event_id="e-2",
        started_event_id="e-3",
        agent_role="Clerk",
        model="gpt-x",
        response=[tool("find_parcel", "call_1")],
        usage={"prompt_tokens": 20, "completion_tokens": 12},
        finish_reason="tool_calls",
        response_id="chatcmpl-1",
    ),
    crew_event(
        5,
        "tool_usage_error",
        parent_event_id="e-2",
        tool_name="find_parcel",
        tool_args='{"id": "A-1"}',
        error="no such parcel",
    ),
    crew_event(
        6,
        "llm_call_completed",
        parent_event_id="e-2",
        model="gpt-x",
        response="It is unknown.",
        usage={"prompt_tokens": 20, "completion_tokens": 5},
    ),
    crew_event(
        7,
        "crew_kickoff_completed",
        output={"raw": "x", "token_usage": {"completion_tokens": 34}},
    ),
]

CREW_OUTPUT = {
    "raw": "It is unknown.",
    "tasks_output": [
        {"description": "Find it", "agent": "Clerk", "raw": "It is unknown."}
    ],
    "token_usage": {"completion_tokens": 34},
}

CREW_LOG = [
    {
        "timestamp": "2026-03-01 10:00:01",
        "task": "Find it",
        "agent": "Clerk",
        "status": "started",
    },
    {
        "timestamp": "2026-03-01 10:00:02",
        "task": "Find it",
        "agent": "Clerk",
        "status": "completed",
        "output": "It is unknown.",
    },
]


def smol_step(number: int, output: int, **more) -> dict[str, Any]:
    return {
        "step_number": number,
        "timing": {
            "start_time": 1_790_000_000.0 + number,
            "end_time": 1_790_000_000.5 + number,
        },
        "model_input_messages": [{"role": "user", "content": "x"}],
        "model_output_message": {"role": "assistant", "content": "Look."},
        "model_output": "Look.",
        "tool_calls": [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": "find_parcel", "arguments": {"id": "A-1"}},
            }
        ],
        "observations": "in Graz",
        "error": None,
        "token_usage": {"input_tokens": 20, "output_tokens": output},
        **more,
    }


SMOL = [
    {"task": "Where is parcel A-1?"},
    smol_step(1, 12),
    smol_step(2, 5, error={"type": "AgentExecutionError", "message": "no such parcel"}),
    smol_step(
        3,
        4,
        tool_calls=[],
        observations=None,
        error={"type": "AgentMaxStepsError", "message": "Reached max steps."},
    ),
]

WHO_AND_WHEN = {
    "history": [
        {"role": "human", "content": "Where is parcel A-1?"},
        {"role": "Orchestrator (thought)", "content": "Plan."},
        {"role": "Orchestrator (-> WebSurfer)", "content": "Search."},
        {"role": "WebSurfer", "content": "Found."},
        {"role": "Websurfer", "content": "Again."},
    ],
    "question": "Where is parcel A-1?",
    "question_ID": "q-1",
    "ground_truth": "Graz",
    "mistake_agent": "WebSurfer",
    "mistake_step": "3",
    "mistake_reason": "It searched the wrong shop.",
}
