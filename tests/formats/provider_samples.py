"""Small files of our own as the APIs of model providers and gateways write them."""

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
