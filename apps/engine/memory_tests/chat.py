"""A conversation over a model or an agent that itself remembers nothing.

The whole conversation is sent with each turn, or the last summary and what was said
since. What is tried is then the model with this history, not a memory of its own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from apps.engine.bodies.canonical import canonical
from apps.engine.bodies.texts import said_in
from apps.engine.memory_tests.conversation import Said
from apps.engine.replay.run import ModelCalled

ChatMessage: TypeAlias = dict[str, Any]
"""`role` (system, user or assistant) and `content`, a text."""

Answering: TypeAlias = Callable[[list[ChatMessage]], Any]
"""Messages in, an answer out: a text, another JSON value, or `Said`."""

SUMMARY_REQUEST: Final = (
    "Summarise our conversation so far, so that it can go on from the summary alone. "
    "Answer with the summary only."
)
_SUMMARY: Final = "Summary of the conversation so far:\n"


class ChatConversation:
    """Makes a `Conversation` that can be summarised out of a function of messages.

    `summarise` asks `summariser`, else the same function, for a summary of everything
    said and goes on from it with the last `keep` messages as they were. Raises what
    the functions raise; a turn that failed leaves the conversation as it was.
    """

    def __init__(
        self,
        answer: Answering,
        *,
        opening: Sequence[ChatMessage] = (),
        summariser: Answering | None = None,
        request: str = SUMMARY_REQUEST,
        keep: int = 0,
    ) -> None:
        self._answer = answer
        self._summariser = summariser or answer
        self._opening = copy.deepcopy(list(opening))
        self._request = request
        self._keep = keep
        self._summary = ""
        self._said: list[ChatMessage] = []

    def restart(self) -> None:
        """Forget everything but the opening messages."""
        self._summary = ""
        self._said = []

    def turn(self, text: str) -> Said:
        """The answer, with the messages that were sent for it."""
        asked: ChatMessage = {"role": "user", "content": text}
        said = self._ask(self._answer, [*self._history(), dict(asked)])
        self._said += [asked, {"role": "assistant", "content": _words(said.answer)}]
        return said

    def state(self) -> Any:
        """What will be sent with the next turn, apart from the opening messages."""
        return {"summary": self._summary, "messages": list(map(dict, self._said))}

    def summarise(self) -> Said:
        """Go on from a summary, and give it back."""
        asked: ChatMessage = {"role": "user", "content": self._request}
        said = self._ask(self._summariser, [*self._history(), asked])
        self._summary = _words(said.answer)
        self._said = self._said[-self._keep :] if self._keep else []
        return said

    def _history(self) -> list[ChatMessage]:
        summary: list[ChatMessage] = (
            [{"role": "system", "content": _SUMMARY + self._summary}]
            if self._summary
            else []
        )
        # Copies, since the function may change what it is given. What was said is flat.
        said = list(map(dict, self._said))
        return [*copy.deepcopy(self._opening), *summary, *said]

    def _ask(self, answering: Answering, messages: list[ChatMessage]) -> Said:
        handed = list(map(dict, messages))
        found = answering(messages)
        said = found if isinstance(found, Said) else Said(answer=found)
        is_shown = any(isinstance(event, ModelCalled) for event in said.events)
        if said.handed is not None or is_shown:
            return said
        return msgspec.structs.replace(said, handed=handed)


def _words(answer: Any) -> str:
    """What of an answer goes into the conversation: its words, else all of it."""
    if isinstance(answer, str):
        return answer
    return said_in(answer) or canonical(answer)
