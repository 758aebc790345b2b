"""Agents of the invented support desk as they run alone, in the sandbox of a replay.

Plain Python and nothing of the product: these are also patterns for callables of your
own. Each is a function that takes a replay, or a class that keeps a memory.
"""

from __future__ import annotations

import random
import re
from typing import Any

SURE_FROM, IN_DOUBT_FROM = 0.5, 0.4
KEPT_NOTES = 12
_ASKS = re.compile(r"\?\s*$")
_WORDS = re.compile(r"\w+")


def escalation(replay: Any) -> str:
    """A person takes a ticket that triage is not sure of; in doubt it wavers."""
    given = replay.input if isinstance(replay.input, dict) else {}
    confidence = float(given.get("confidence", 0))
    escalates = confidence < IN_DOUBT_FROM
    if IN_DOUBT_FROM <= confidence < SURE_FROM:
        # Even at temperature 0: this agent does not settle, and that is the finding.
        escalates = random.Random(replay.seed).random() < 0.5  # noqa: S311
    if escalates:
        replay.tools["escalate"](queue="second line")
        return "A person takes this ticket."
    replay.tools["answer_ticket"](template=given.get("category"))
    return "The usual answer was sent."


class Memory:
    """Keeps the last twelve notes, and answers from the one that fits best."""

    def start(self, state: Any) -> None:
        """Begin with the notes of an earlier conversation, if there are any."""
        self.notes: list[str] = list((state or {}).get("notes", []))

    def turn(self, text: str) -> str:
        """Answer a question from the notes; keep a note of everything that is said."""
        answer = self._recalled(text) if _ASKS.search(text) else "Noted."
        self.notes = [*self.notes, text][-KEPT_NOTES:]
        return answer

    def state(self) -> dict[str, Any]:
        """The notes, the oldest first."""
        return {"notes": self.notes}

    def _recalled(self, question: str) -> str:
        asked = set(_WORDS.findall(question.lower()))
        best, found = 2, ""
        for note in self.notes:
            shared = len(asked & set(_WORDS.findall(note.lower())))
            if shared > best:
                best, found = shared, note
        return found or "The notes hold nothing about that."
