"""The messages of requests, in which every request repeats what was said before.

Only what earlier requests did not hold is new. Results of tools are read in the
spellings of chat messages, Anthropic parts, Responses items and Gemini contents.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from apps.engine.reading.recorded import either, listed, mapping, word
from apps.engine.reading.transcript import Draft, ToolResult, Transcript
from apps.engine.trace import StepKind, StepStatus

_SAID: Final = {
    "user": StepKind.USER_MESSAGE, "system": StepKind.SYSTEM,
    "developer": StepKind.SYSTEM,
}  # fmt: skip
_BEGINNING: Final = 200


def mark_of(content: Any) -> str:
    """Return a short mark that is the same for the same content."""
    return hashlib.sha256(repr(content).encode("utf-8", "replace")).hexdigest()


def results_in(message: Any) -> Iterator[ToolResult]:
    """Yield the results of tools that a message holds."""
    held = mapping(message)
    if word(held.get("role")) in {"tool", "function"} and "content" in held:
        yield ToolResult(output=held["content"], call_id=held.get("tool_call_id"))
    elif word(held.get("type")).endswith("_call_output"):
        yield ToolResult(output=held.get("output"), call_id=held.get("call_id"))
    for part in [*listed(held.get("content")), *listed(held.get("parts"))]:
        one = mapping(part)
        response = mapping(either(one, "function_response", "functionResponse"))
        if one.get("type") == "tool_result":
            failed = one.get("is_error") is True
            yield ToolResult(
                output=one.get("content"),
                call_id=one.get("tool_use_id"),
                status=StepStatus.ERROR if failed else StepStatus.UNSET,
            )
        elif response:
            yield ToolResult(
                output=response.get("response"), call_id=response.get("id")
            )


def answers_said(message: Any) -> Iterator[Any]:
    """Yield the ids of calls and the text by which an earlier answer is known again."""
    held = mapping(message)
    for result in results_in(message):
        if isinstance(result.call_id, str):
            yield f"call {result.call_id}"
    if held.get("role") in ("assistant", "model") and held.get("content"):
        yield mark_of(_plain(held["content"]))


def _plain(content: Any) -> Any:
    """Return the text of content parts as answers show it, else the content."""
    texts = [mapping(part).get("text") for part in listed(content)]
    known = [text for text in texts if isinstance(text, str)]
    return "\n".join(known) if known else content


def beginning_of(messages: list[Any]) -> str | None:
    """Return how the system's message begins, by which agents are told apart."""
    first = mapping(messages[0]) if messages else {}
    if word(first.get("role")) not in {"system", "developer"}:
        return None
    return str(_plain(first.get("content")))[:_BEGINNING]


class NewMessages:
    """Takes what is new in each request of one conversation into its transcript."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._seen: Counter[str] = Counter()

    def take(self, messages: list[Any], invocation: int) -> None:
        """Add the users' words and the results that earlier requests did not hold."""
        here: Counter[str] = Counter()
        for message in messages:
            mark = mark_of(message)
            here[mark] += 1
            if here[mark] > self._seen[mark]:
                self._seen[mark] = here[mark]
                self._take(message, invocation)

    def _take(self, message: Any, invocation: int) -> None:
        results = list(results_in(message))
        for result in results:
            asked = self._transcript.asked(result.call_id)
            if asked is not None and asked.output is None:
                self._transcript.give(result)
        held = mapping(message)
        kind = _SAID.get(word(held.get("role")))
        if kind is not None and not results:
            self._transcript.add(
                Draft(
                    kind=kind,
                    invocation=invocation,
                    native_kind=held["role"],
                    output=held.get("content", held.get("parts")),
                )
            )
