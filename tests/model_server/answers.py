"""What the model server says: one answer in plain words, and how it follows."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One answer: a text, or tool calls as (name, arguments, id).

    Arguments that are a text are sent as they are, also where they are no JSON.
    """

    text: str | None = None
    tools: tuple[tuple[str, Any, str], ...] = ()
    reasoning: str = ""
    refusal: str = ""
    finish: str = ""

    @property
    def ended(self) -> str:
        return self.finish or ("tool_calls" if self.tools else "stop")


def call(tool: str, *, call_id: str = "", **arguments: Any) -> Answer:
    """An answer that asks for one tool."""
    return calls((tool, arguments), first_id=call_id)


def calls(*asked: tuple[str, Any], first_id: str = "") -> Answer:
    """An answer that asks for several tools at once, as (name, arguments)."""
    ids = [f"call_{number}" for number in range(1, len(asked) + 1)]
    if first_id:
        ids[0] = first_id
    return Answer(
        tools=tuple(
            (tool, given, one) for (tool, given), one in zip(asked, ids, strict=True)
        )
    )


def as_answer(given: Answer | str | dict[str, Any] | list[Any]) -> Answer:
    """A text, {"tool": ..., "arguments": ...} or a list of such, as an answer."""
    if isinstance(given, Answer):
        return given
    if isinstance(given, str):
        return Answer(text=given)
    wanted = given if isinstance(given, list) else [given]
    return calls(*((one["tool"], one.get("arguments", {})) for one in wanted))


def messages_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages of a request of either API, in order."""
    given = body.get("messages", body.get("input", []))
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return [one for one in given if isinstance(one, dict)]


def text_in(message: dict[str, Any]) -> str:
    """What a message or item says, tool results included."""
    content = message.get("content", message.get("output", ""))
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content)
    return content if isinstance(content, str) else json.dumps(content)


def last_user_text(body: dict[str, Any]) -> str:
    users = [one for one in messages_of(body) if one.get("role") == "user"]
    return text_in(users[-1]) if users else ""


def results_in(body: dict[str, Any]) -> list[str]:
    """What tools answered since the last message of the user."""
    found: list[str] = []
    for one in messages_of(body):
        if one.get("role") == "user":
            found = []
        elif one.get("role") == "tool" or one.get("type") == "function_call_output":
            found.append(text_in(one))
    return found


def rounds_in(body: dict[str, Any]) -> int:
    """How often the model asked for tools since the last message of the user."""
    rounds, was_asking = 0, False
    for one in messages_of(body):
        if one.get("role") == "user":
            rounds, was_asking = 0, False
            continue
        is_item = one.get("type") == "function_call"
        rounds += bool(one.get("tool_calls")) or (is_item and not was_asking)
        was_asking = is_item
    return rounds


def deterministic(body: dict[str, Any]) -> Answer:
    """The same messages give the same text, other messages another one."""
    seen = json.dumps(messages_of(body), sort_keys=True)
    mark = hashlib.sha256(seen.encode("utf-8", "replace")).hexdigest()[:8]
    said = results_in(body)
    about = f" The tools said: {'; '.join(said)}." if said else ""
    return Answer(text=f"You said: {last_user_text(body)}.{about} [{mark}]")


def noisy(
    number: int, *, seed: int, share: float, usual: Answer, other: Answer
) -> Answer:
    """The other answer in about `share` of the calls, by seed and number of the call."""
    drawn = random.Random(f"{seed}:{number}").random()
    return other if drawn < share else usual
