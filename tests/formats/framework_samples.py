"""Small files of our own as LangChain, Pydantic-AI, the AI SDK and ADK write them."""

from __future__ import annotations

from typing import Any


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
