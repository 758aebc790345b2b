"""Small files of our own that hold answers in pieces, or records of a rarer kind."""

from __future__ import annotations

from typing import Any

from tests.formats import agent_samples as agents
from tests.formats import framework_samples as frameworks
from tests.formats import provider_samples as providers


def chunk(number: int, **more) -> dict[str, Any]:
    return {
        "id": f"c-{number}",
        "object": "chat.completion.chunk",
        "model": "m",
        **more,
    }


def chunks(number: int, usage: dict[str, int] | None) -> list[dict[str, Any]]:
    """The chunks of an answer that says "ab" and asks for one tool."""
    function = {"name": "find_parcel", "arguments": '{"id"'}
    begun = [{"index": 0, "id": f"t{number}", "function": function}]
    rest = [{"index": 0, "function": {"arguments": ': "A-1"}'}}]
    deltas = [
        {"role": "assistant", "content": "a"},
        {"content": "b"},
        {"tool_calls": begun},
        {"tool_calls": rest},
    ]
    made = [chunk(number, choices=[{"index": 0, "delta": delta}]) for delta in deltas]
    last = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    return [
        *made,
        chunk(number, choices=[last]),
        chunk(number, choices=[], usage=usage),
    ]


OLLAMA = [
    *(
        {
            "model": "l",
            "message": {"role": "assistant", "content": piece},
            "done": False,
        }
        for piece in "ab"
    ),
    {
        "model": "l",
        "message": {"content": ""},
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 5,
        "eval_count": 12,
    },
]
GEMINI = [
    {
        "candidates": [{"content": {"parts": [{"text": piece}]}} | finish],
        "usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": count},
    }
    for piece, count, finish in (("a", 3, {}), ("b", 6, {"finishReason": "STOP"}))
]
_BLOCK = {"type": "tool_use", "id": "t", "name": "find_parcel", "input": {}}
ANTHROPIC_STREAM = [
    {
        "type": "message_start",
        "message": providers.anthropic_answer(1, 1)
        | {"content": [], "stop_reason": None},
    },
    {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    },
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "Here"},
    },
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": _BLOCK},
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"id": 1}'},
    },
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"output_tokens": 12},
    },
    {"type": "message_stop"},
]


def lc_chunk(number: int, content: str, **more) -> dict[str, Any]:
    return {"type": "AIMessageChunk", "id": f"run-{number}", "content": content, **more}


def lc_chunks(number: int, output: int) -> list[dict[str, Any]]:
    """The chunks of a message that says "ab" and asks for one tool."""
    piece = {"name": "find_parcel", "id": "call_1", "args": '{"id"', "index": 0}
    rest = {"name": None, "id": None, "args": ": 1}", "index": 0}
    first = {"input_tokens": 20, "output_tokens": 1}
    last = {"input_tokens": 0, "output_tokens": output - 1}
    finish = {"finish_reason": "tool_calls"}
    return [
        lc_chunk(number, "a", usage_metadata=first),
        lc_chunk(number, "b", tool_call_chunks=[piece]),
        lc_chunk(number, "", tool_call_chunks=[rest], response_metadata=finish),
        lc_chunk(number, "", usage_metadata=last),
    ]


LC_PAIRS = [
    [message, {"thread_id": "th-1", "langgraph_node": "agent"}]
    for message in frameworks.LC_MESSAGES
]
LC_TUPLES = [
    [
        *(one[key] for key in ("values", "next", "config", "metadata", "created_at")),
        None,
        [],
    ]
    for one in frameworks.LC_HISTORY
]
_FINISHED = {"finishReason": "stop", "response": {"id": "r"}}
VERCEL_4 = [
    {"type": "step-start", "messageId": "m", "request": {}},
    {"type": "text-delta", "textDelta": "a"},
    {"type": "text-delta", "textDelta": "b"},
    {"type": "tool-call", "toolCallId": "c", "toolName": "f", "args": {"a": 1}},
    {"type": "tool-result", "toolCallId": "c", "result": "in Graz"},
    {
        "type": "step-finish",
        "usage": {"promptTokens": 3, "completionTokens": 12},
        **_FINISHED,
    },
    {"type": "finish", "usage": {"promptTokens": 3, "completionTokens": 12}},
]
VERCEL_5 = [
    {"type": "start"},
    {"type": "start-step", "request": {}},
    {"type": "text-delta", "id": "1", "text": "a"},
    {"type": "text-delta", "id": "1", "text": "b"},
    {"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {"a": 1}},
    {
        "type": "finish-step",
        "usage": {"inputTokens": 3, "outputTokens": 12},
        **_FINISHED,
    },
    {"type": "tool-result", "toolCallId": "c", "output": "in Graz"},
    {"type": "finish", "totalUsage": {"outputTokens": 12}},
]
ADK_RESULTS = {
    "eval_set_id": "s",
    "eval_case_results": [
        {
            "eval_id": "case-1",
            "final_eval_status": 1,
            "session_details": frameworks.ADK_SESSION,
        },
        {
            "evalId": "case-1",
            "finalEvalStatus": 2,
            "sessionId": "s-2",
            "evalMetricResultPerInvocation": [
                {
                    "actualInvocation": frameworks.ADK_EVALSET["eval_cases"][0][
                        "conversation"
                    ][0]
                }
            ],
        },
    ],
}
MINI_RESPONSES = agents.MINI_SWE | {
    "messages": [
        {"role": "user", "content": "Fix it."},
        providers.response(1, 12) | {"output": providers.RESPONSE_ITEMS[1:3]},
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": "a.py",
            "extra": {"exception_info": "timed out"},
        },
        providers.response(2, 5),
    ]
}
AUTOGEN_CONTEXT = {
    "type": "AssistantAgentState",
    "llm_context": {
        "messages": [
            {"type": "UserMessage", "source": "user", "content": "Where?"},
            {
                "type": "AssistantMessage",
                "source": "clerk",
                "content": [{"id": "c", "name": "find_parcel", "arguments": "{}"}],
            },
            {
                "type": "FunctionExecutionResultMessage",
                "content": [{"call_id": "c", "content": "in Graz", "is_error": False}],
            },
            {"type": "AssistantMessage", "source": "clerk", "content": "Graz."},
        ]
    },
}
AG2_CHAT = {
    "chat_id": 1,
    "chat_history": [
        {"role": "assistant", "name": "user_proxy", "content": "Where?"},
        {
            "role": "user",
            "name": "clerk",
            "content": "",
            "tool_calls": [providers.tool("find_parcel", "call_1")],
        },
        {
            "role": "tool",
            "name": "user_proxy",
            "content": "in Graz",
            "tool_responses": [
                {"role": "tool", "tool_call_id": "call_1", "content": "in Graz"}
            ],
        },
        {"role": "user", "name": "clerk", "content": "It is in Graz."},
    ],
    "summary": "Graz",
    "cost": {"usage_including_cached_inference": {"total_cost": 0.1}},
}
OLD_CREW = [
    {
        key: item
        for key, item in event.items()
        if key not in {"event_id", "emission_sequence", "parent_event_id"}
    }
    | {"source_fingerprint": None, "agent_role": "Clerk"}
    for event in agents.CREW[1:]
]

SAMPLES: dict[str, list[Any]] = {
    "request-log": [
        chunks(1, {"prompt_tokens": 3, "completion_tokens": 12}),
        OLLAMA,
        GEMINI,
        [{"request": {"messages": providers.ASKED}, "response": chunks(1, None)}],
    ],
    "anthropic-messages": [ANTHROPIC_STREAM],
    "langchain-messages": [
        [*lc_chunks(1, 12), *lc_chunks(2, 5)],
        LC_PAIRS,
        LC_TUPLES,
        [{"agent": {"messages": [message]}} for message in frameworks.LC_MESSAGES],
    ],
    "vercel-ai": [VERCEL_4, VERCEL_5, frameworks.VERCEL["steps"]],
    "google-adk": [ADK_RESULTS],
    "mini-swe-agent": [MINI_RESPONSES],
    "autogen": [AUTOGEN_CONTEXT, AG2_CHAT],
    "crewai": [OLD_CREW],
}
