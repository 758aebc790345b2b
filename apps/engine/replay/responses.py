"""Requests and answers of the Responses API, asked without a state on its side.

Source: https://platform.openai.com/docs/api-reference/responses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from apps.engine.reading.answers import answer_of
from apps.engine.reading.recorded import listed, mapping
from apps.engine.replay.chat_completions import (
    NOT_ONES_OWN,
    leaves_out,
    offered,
    taken_over,
)
from apps.engine.replay.turns import (
    Asking,
    ModelAnswer,
    NoAnswer,
    WireNames,
    as_sent,
    read_answer,
)

_OWN_LIMIT: Final = "max_output_tokens"


class Responses:
    """The dialect of Responses."""

    path = "/responses"

    def begin(self, messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages as input items."""
        return [item for message in messages for item in _items(message)]

    def request(self, asking: Asking, history: list[dict[str, Any]]) -> dict[str, Any]:
        """The body of a request; nothing is stored, and the limit is always in it."""
        body: dict[str, Any] = {
            "model": asking.model,
            "input": history,
            "store": False,
        }
        if asking.tools:
            body["tools"] = [
                {"type": "function"} | one["function"] for one in offered(asking)
            ]
        recorded = taken_over(asking, ("top_p",), history=history)
        if isinstance(choice := recorded.get("tool_choice"), dict):
            recorded["tool_choice"] = {"type": "function"} | mapping(
                choice.get("function")
            )
        body |= recorded | _renamed(asking)
        body |= {k: v for k, v in asking.own.items() if k not in NOT_ONES_OWN}
        for name in ("max_tokens", "max_completion_tokens"):
            body.pop(name, None)
        body[_OWN_LIMIT] = asking.max_tokens
        if asking.temperature is not None and not leaves_out(asking, "temperature"):
            # What the regime asks for, whatever the target has by itself.
            body["temperature"] = asking.temperature
        if asking.is_streamed:
            body["stream"] = True
        return {key: value for key, value in body.items() if value is not None}

    def answer(self, value: Any, names: WireNames) -> ModelAnswer:
        """What a Response holds."""
        if not isinstance(value, dict) or not isinstance(value.get("output"), list):
            raise NoAnswer("There is no text in the answer: it is no Response.")
        found = answer_of({"object": "response"} | value)
        if found is None:
            raise NoAnswer("There is no text in the answer.")
        return read_answer(found, names)

    def onward(
        self, value: Any, answer: ModelAnswer, results: Iterable[str]
    ) -> list[dict[str, Any]]:
        """What the model said and asked for, and one item for the result of each call.

        Reasoning goes back only where it is sealed into the item: without a state on
        the other side, its id alone means nothing there.
        """
        made: list[dict[str, Any]] = [
            item
            for item in map(mapping, listed(value["output"]))
            if item.get("type") == "reasoning" and item.get("encrypted_content")
        ]
        if answer.text:
            made.append({"role": "assistant", "content": answer.text})
        names = [
            item.get("name")
            for item in map(mapping, listed(value["output"]))
            if str(item.get("type", "")).endswith("_call")
        ]
        for one, name in zip(answer.asked, names, strict=False):
            made.append(_call(one.call_id, name or one.tool, one.arguments))
        made += [
            {
                "type": "function_call_output",
                "call_id": one.call_id,
                "output": result,
            }
            for one, result in zip(answer.asked, results, strict=True)
        ]
        return made


def _call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": name,
        "arguments": as_sent(arguments),
    }


def _items(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The input items of one message of chat completions."""
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        yield {
            "type": "function_call_output",
            "call_id": message.get("tool_call_id") or "call_0",
            "output": content if isinstance(content, str) else as_sent(content),
        }
        return
    if content or role != "assistant":
        yield {"role": role, "content": _content(content, role)}
    for call in map(mapping, listed(message.get("tool_calls"))):
        function = mapping(call.get("function"))
        yield _call(call.get("id"), function.get("name"), function.get("arguments"))


def _content(content: Any, role: Any) -> Any:
    if not isinstance(content, list):
        return content if content is not None else ""
    kind = "output_text" if role == "assistant" else "input_text"
    return [_part(part, kind) for part in content]


def _part(part: Any, kind: str) -> Any:
    if isinstance(part, str):
        return {"type": kind, "text": part}
    if mapping(part).get("type") == "text":
        return {"type": kind, "text": part.get("text")}
    image = mapping(mapping(part).get("image_url"))
    if image.get("url"):
        return {"type": "input_image", "image_url": image["url"]}
    return part


def _renamed(asking: Asking) -> dict[str, Any]:
    """Recorded parameters that have another place here."""
    found: dict[str, Any] = {}
    given = asking.parameters
    if isinstance(given.get("reasoning_effort"), str):
        found["reasoning"] = {"effort": given["reasoning_effort"]}
    form = mapping(given.get("response_format"))
    if form:
        schema = mapping(form.get("json_schema"))
        found["text"] = {"format": {"type": form.get("type")} | schema}
    return found
