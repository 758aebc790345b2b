"""Small files of our own in the formats of transcripts and provider APIs, by slug."""

from __future__ import annotations

from typing import Any


def tool(name: str, call_id: str, arguments: str = '{"id": "A-1"}') -> dict[str, Any]:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def completion(text: str | None, *, number: int = 1, output: int | None = 12, **more):
    usage = {
        "prompt_tokens": 30,
        "completion_tokens": output,
        "total_tokens": 30 + (output or 0),
        "prompt_tokens_details": {"cached_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }
    message = {"role": "assistant", "content": text, **more}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_790_000_000 + number,
        "model": "gpt-x",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls" if more else "stop",
                "message": message,
            }
        ],
        "usage": None if output is None else usage,
    }


ASKED = [{"role": "user", "content": "Where is parcel A-1?"}]
LOOKED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [tool("find_parcel", "call_1")],
}
FOUND = {"role": "tool", "tool_call_id": "call_1", "content": "in Graz"}

REQUEST_LOG = [
    {
        "timestamp": 1_790_000_000.5,
        "latency_ms": 250,
        "session_id": "s-1",
        "metadata": {"task": "parcel", "trial": 2},
        "request": {"model": "gpt-x", "messages": ASKED},
        "response": completion(None, number=1, tool_calls=LOOKED["tool_calls"]),
    },
    {
        "timestamp": 1_790_000_001.5,
        "latency_ms": 250,
        "session_id": "s-1",
        "request": {"model": "gpt-x", "messages": [*ASKED, LOOKED, FOUND]},
        "response": completion("It is in Graz.", number=2, output=5),
    },
]

BATCH = [
    {
        "id": "b-1",
        "custom_id": "req-1",
        "response": {"status_code": 200, "body": completion("yes", number=1)},
        "error": None,
    },
    {
        "id": "b-2",
        "custom_id": "req-2",
        "response": {
            "status_code": 429,
            "body": {"error": {"type": "rate_limit", "message": "slow down"}},
        },
        "error": None,
    },
]

ANTHROPIC = {
    "model": "claude-x",
    "system": "You track parcels.",
    "metadata": {"session_id": "s-2", "trial": "3"},
    "messages": [
        {"role": "user", "content": "Where is parcel A-1?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Look it up."},
                {"type": "text", "text": "One moment."},
                {
                    "type": "tool_use",
                    "id": "tu_1",
                    "name": "find_parcel",
                    "input": {"id": "A-1"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "tu_1",
                    "content": "no such parcel",
                    "is_error": True,
                }
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "It is unknown."}]},
    ],
}


def anthropic_answer(number: int, output: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [{"type": "text", "text": "Here."}],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 5,
            "cache_read_input_tokens": 20,
            "cache_creation_input_tokens": 7,
            "output_tokens": output,
        },
    }


RESPONSE_ITEMS = [
    {"role": "user", "content": "Where is parcel A-1?"},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Look it up."}],
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "find_parcel",
        "arguments": '{"id": "A-1"}',
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "in Graz"},
    {
        "type": "message",
        "role": "assistant",
        "id": "msg_1",
        "content": [{"type": "output_text", "text": "It is in Graz."}],
    },
]


def response(number: int, output: int, previous: str | None = None) -> dict[str, Any]:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_790_000_000 + number,
        "status": "completed",
        "model": "gpt-x",
        "previous_response_id": previous,
        "output": [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": f"answer {number}"}],
            }
        ],
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 8},
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": 20 + output,
        },
    }


def lc_ai(number: int, output: int, name: str = "clerk", **more) -> dict[str, Any]:
    return {
        "type": "ai",
        "content": f"answer {number}",
        "id": f"run-{number}",
        "name": name,
        "tool_calls": [],
        "usage_metadata": {
            "input_tokens": 20,
            "output_tokens": output,
            "total_tokens": 20 + output,
            "input_token_details": {"cache_read": 8},
            "output_token_details": {"reasoning": 3},
        },
        "response_metadata": {"finish_reason": "stop", "model_name": "gpt-x"},
        **more,
    }


LC_CALL = [{"name": "find_parcel", "args": {"id": "A-1"}, "id": "call_1"}]
LC_MESSAGES = [
    {"type": "human", "content": "Where is parcel A-1?", "id": "h-1"},
    lc_ai(1, 12, tool_calls=LC_CALL),
    {
        "type": "tool",
        "content": "no such parcel",
        "tool_call_id": "call_1",
        "id": "t-1",
        "status": "error",
    },
    lc_ai(2, 5),
]
LC_HISTORY = [
    {
        "values": {"messages": LC_MESSAGES},
        "next": [],
        "config": {"configurable": {"thread_id": "th-1"}},
        "metadata": {"step": 2, "trial": 4},
        "created_at": "2026-03-01T10:00:02+00:00",
    },
    {
        "values": {"messages": LC_MESSAGES[:2]},
        "next": ["tools"],
        "config": {"configurable": {"thread_id": "th-1"}},
        "metadata": {"step": 1},
        "created_at": "2026-03-01T10:00:01+00:00",
    },
    {
        "values": {},
        "next": ["__start__"],
        "config": {"configurable": {"thread_id": "th-1"}},
        "metadata": {"step": -1},
        "created_at": "2026-03-01T10:00:00+00:00",
    },
]

PYDANTIC = [
    {
        "kind": "request",
        "run_id": "r-1",
        "conversation_id": "c-1",
        "parts": [
            {"part_kind": "system-prompt", "content": "You track parcels."},
            {
                "part_kind": "user-prompt",
                "content": "Where is parcel A-1?",
                "timestamp": "2026-03-01T10:00:00Z",
            },
        ],
    },
    {
        "kind": "response",
        "run_id": "r-1",
        "parts": [
            {"part_kind": "thinking", "content": "Look it up."},
            {
                "part_kind": "tool-call",
                "tool_name": "find_parcel",
                "tool_call_id": "call_1",
                "args": '{"id": 1}',
            },
        ],
        "usage": {"input_tokens": 20, "output_tokens": 12, "cache_read_tokens": 8},
        "model_name": "gpt-x",
        "provider_name": "openai",
        "finish_reason": "tool_call",
        "timestamp": "2026-03-01T10:00:01Z",
    },
    {
        "kind": "request",
        "run_id": "r-1",
        "parts": [
            {
                "part_kind": "retry-prompt",
                "tool_name": "find_parcel",
                "tool_call_id": "call_1",
                "content": "id must be a text",
                "timestamp": "2026-03-01T10:00:02Z",
            }
        ],
    },
    {
        "kind": "response",
        "run_id": "r-1",
        "parts": [{"part_kind": "text", "content": "It is unknown."}],
        "usage": {"input_tokens": 0, "output_tokens": 0},
        "model_name": "gpt-x",
        "timestamp": "2026-03-01T10:00:03Z",
    },
]


def vercel_step(number: int, output: int | None, **more) -> dict[str, Any]:
    usage = {"inputTokens": 20, "outputTokens": output, "totalTokens": 20}
    return {
        "stepNumber": number,
        "model": {"provider": "openai.chat", "modelId": "gpt-x"},
        "functionId": "clerk",
        "metadata": {"sessionId": "s-3", "trial": 1},
        "content": [{"type": "text", "text": f"answer {number}"}],
        "finishReason": "stop",
        "usage": {} if output is None else usage,
        "response": {"id": f"r-{number}", "timestamp": "2026-03-01T10:00:00.000Z"},
        **more,
    }


VERCEL_TOOLS = [
    {
        "type": "tool-call",
        "toolCallId": "call_1",
        "toolName": "find_parcel",
        "input": {"id": "A-1"},
    },
    {
        "type": "tool-error",
        "toolCallId": "call_1",
        "toolName": "find_parcel",
        "error": {"message": "no such parcel"},
    },
]
VERCEL = {
    "text": "answer 1",
    "finishReason": "stop",
    "usage": {"inputTokens": 20, "outputTokens": 5},
    "totalUsage": {"inputTokens": 40, "outputTokens": 17},
    "steps": [vercel_step(0, 12, content=VERCEL_TOOLS), vercel_step(1, 5)],
}
VERCEL_UI = [
    {
        "id": "m1",
        "role": "user",
        "parts": [{"type": "text", "text": "Where is parcel A-1?"}],
    },
    {
        "id": "m2",
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "text": "Look it up."},
            {
                "type": "tool-find_parcel",
                "toolCallId": "call_1",
                "state": "output-available",
                "input": {"id": "A-1"},
                "output": "in Graz",
            },
            {"type": "step-start"},
            {"type": "text", "text": "It is in Graz."},
        ],
    },
]


def adk_event(author: str, *parts: dict[str, Any], **more) -> dict[str, Any]:
    role = "user" if author == "user" else "model"
    return {
        "id": f"e-{author}-{len(parts)}",
        "invocation_id": "i-1",
        "author": author,
        "timestamp": 1_790_000_000.25,
        "content": {"role": role, "parts": list(parts)},
        "actions": {},
        **more,
    }


ADK_SESSION = {
    "id": "sess-1",
    "app_name": "parcels",
    "user_id": "u",
    "events": [
        adk_event("user", {"text": "Where is parcel A-1?"}),
        adk_event(
            "clerk",
            {"text": "Look it up.", "thought": True},
            {
                "function_call": {
                    "id": "call_1",
                    "name": "find_parcel",
                    "args": {"id": "A-1"},
                }
            },
            usage_metadata={
                "prompt_token_count": 20,
                "candidates_token_count": 12,
                "thoughts_token_count": 30,
                "total_token_count": 62,
            },
        ),
        adk_event(
            "clerk",
            {
                "function_response": {
                    "id": "call_1",
                    "name": "find_parcel",
                    "response": {"error": "no such parcel"},
                }
            },
        ),
        adk_event("clerk", {"text": "It"}, partial=True),
        adk_event("clerk", {"text": "It is unknown."}),
    ],
}
ADK_EVALSET = {
    "eval_set_id": "set",
    "eval_cases": [
        {
            "eval_id": "case-1",
            "conversation": [
                {
                    "invocation_id": "i-1",
                    "user_content": {"role": "user", "parts": [{"text": "Where?"}]},
                    "final_response": {"role": "model", "parts": [{"text": "Graz."}]},
                    "intermediate_data": {
                        "tool_uses": [{"name": "find_parcel", "args": {"id": "A-1"}}]
                    },
                }
            ],
        }
    ],
}
ADK_TEST = [
    {
        "query": "Where is parcel A-1?",
        "expected_tool_use": [
            {"tool_name": "find_parcel", "tool_input": {"id": "A-1"}}
        ],
        "reference": "It is in Graz.",
    }
]

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

SAMPLES: dict[str, list[Any]] = {
    "request-log": [REQUEST_LOG, BATCH, completion("hello")],
    "anthropic-messages": [ANTHROPIC, [anthropic_answer(1, 9), anthropic_answer(2, 4)]],
    "openai-responses": [RESPONSE_ITEMS, [response(1, 9), response(2, 4, "resp_1")]],
    "langchain-messages": [LC_MESSAGES, {"messages": LC_MESSAGES}, LC_HISTORY],
    "pydantic-ai-messages": [PYDANTIC],
    "vercel-ai": [VERCEL, VERCEL_UI],
    "google-adk": [ADK_SESSION, ADK_EVALSET, ADK_TEST, ADK_SESSION["events"]],
    "swe-agent": [SWE_AGENT],
    "mini-swe-agent": [MINI_SWE],
    "autogen": [AUTOGEN, AUTOGEN_LOG],
    "crewai": [CREW, CREW_OUTPUT, CREW_LOG],
    "smolagents-memory": [SMOL],
    "who-and-when": [WHO_AND_WHEN, WHO_AND_WHEN["history"]],
}
