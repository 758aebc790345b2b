"""Requests and answers of the chat completions API.

Source: https://platform.openai.com/docs/api-reference/chat.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from apps.engine.reading.answers import answer_of, is_chat_completion
from apps.engine.replay.turns import (
    Asking,
    ModelAnswer,
    NoAnswer,
    WireNames,
    as_sent,
    read_answer,
    schema_of,
)

_TAKEN_OVER: Final = (
    "top_p", "frequency_penalty", "presence_penalty", "response_format",
    "reasoning_effort", "stop",
)  # fmt: skip
_OF_TOOLS: Final = ("tool_choice", "parallel_tool_calls")
_LIMITS: Final = ("max_tokens", "max_completion_tokens")
NOT_ONES_OWN: Final = frozenset(
    {"messages", "input", "tools", "stream", "stream_options", "n", "model"}
)
"""What no target can set by its own parameters: the case and the run say it."""


class ChatCompletions:
    """The dialect of chat completions."""

    path = "/chat/completions"

    def begin(self, messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages as they are."""
        return list(messages)

    def request(self, asking: Asking, history: list[dict[str, Any]]) -> dict[str, Any]:
        """The body of a request; the limit of tokens is always in it.

        A target that names `max_completion_tokens` among its own parameters gets the
        limit under that name.
        """
        body: dict[str, Any] = {"model": asking.model, "messages": history}
        if asking.tools:
            body["tools"] = offered(asking)
        body |= taken_over(asking, _TAKEN_OVER, history=history)
        body |= {k: v for k, v in asking.own.items() if k not in NOT_ONES_OWN}
        name = next((key for key in reversed(_LIMITS) if key in asking.own), _LIMITS[0])
        body.pop("max_tokens", None)
        body[name] = asking.max_tokens
        if asking.temperature is not None and not leaves_out(asking, "temperature"):
            # What the regime asks for, whatever the target has by itself.
            body["temperature"] = asking.temperature
        if asking.seed is not None and not leaves_out(asking, "seed"):
            body["seed"] = asking.seed
        if asking.is_streamed:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return {key: value for key, value in body.items() if value is not None}

    def answer(self, value: Any, names: WireNames) -> ModelAnswer:
        """What a chat completion holds; of several choices the first."""
        found = answer_of(value) if is_chat_completion(value) else None
        if found is None:
            raise NoAnswer("There is no text in the answer: it is no chat completion.")
        return read_answer(found, names)

    def onward(
        self, value: Any, answer: ModelAnswer, results: Iterable[str]
    ) -> list[dict[str, Any]]:
        """The model's own message, and one message for the result of each call."""
        names = [call["function"]["name"] for call in _calls_in(value)]
        calls = [
            {
                "id": one.call_id,
                "type": "function",
                "function": {
                    "name": name or one.tool,
                    "arguments": as_sent(one.arguments),
                },
            }
            for one, name in zip(answer.asked, _padded(names, answer), strict=True)
        ]
        said = {"role": "assistant", "content": answer.text, "tool_calls": calls}
        return [
            said,
            *(
                {"role": "tool", "tool_call_id": one.call_id, "content": result}
                for one, result in zip(answer.asked, results, strict=True)
            ),
        ]


def _calls_in(value: Any) -> list[dict[str, Any]]:
    calls = value["choices"][0].get("message", {}).get("tool_calls") or []
    return [
        one
        for one in calls
        if isinstance(one, dict)
        and isinstance(one.get("function"), dict)
        and isinstance(one["function"].get("name"), str)
    ]


def _padded(names: list[str], answer: ModelAnswer) -> list[str]:
    """The names as sent, or none where not every call has one."""
    return names if len(names) == len(answer.asked) else [""] * len(answer.asked)


def offered(asking: Asking) -> list[dict[str, Any]]:
    """The tools as functions."""
    names = WireNames(asking.tools)
    return [
        {
            "type": "function",
            "function": {
                "name": names.sent(tool.name),
                "description": tool.description,
                "parameters": schema_of(tool),
            },
        }
        for tool in asking.tools
    ]


def leaves_out(asking: Asking, name: str) -> bool:
    """Whether a target keeps a parameter from being sent, which some models refuse."""
    return name in asking.own and asking.own[name] is None


def taken_over(
    asking: Asking, names: Iterable[str], *, history: list[dict[str, Any]]
) -> dict[str, Any]:
    """The recorded parameters that are sent again.

    What is said of tools needs tools. A choice of tool that was forced was recorded
    of the first request; it is not repeated after a tool has answered.
    """
    wanted = [*names, *(_OF_TOOLS if asking.tools else ())]
    found = {key: asking.parameters[key] for key in wanted if key in asking.parameters}
    was_answered = bool(history) and (
        history[-1].get("role") == "tool"
        or history[-1].get("type") == "function_call_output"
    )
    if was_answered and found.get("tool_choice") not in (None, "auto", "none"):
        del found["tool_choice"]
    return found
