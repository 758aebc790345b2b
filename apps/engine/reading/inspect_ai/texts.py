"""Texts of an Inspect sample that are stored once and referred to by their hash.

References are put back up to a budget of characters for each sample, because a long
prompt is referred to by every call that was sent it.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.text_limits import Remarks

BUDGET: Final = 20_000_000
_PROTOCOLS: Final = ("attachment://", "tc://")
_LONGEST_REFERENCE: Final = 120
_LEFT: Final = (
    "Texts that are stored once and were not put back in again, because this sample "
    "would be too large: {n}."
)
_LOST: Final = "References to stored texts that are not in the file: {n}."


class Texts:
    """The stored texts and message pools of one sample."""

    def __init__(self, sample: dict[str, Any], remarks: Remarks) -> None:
        self._remarks = remarks
        self._left = BUDGET
        self._texts: dict[str, Any] = {}
        transcript = sample.get("transcript")
        older = transcript.get("content") if isinstance(transcript, dict) else None
        for stored in (older, sample.get("attachments")):
            if isinstance(stored, dict):
                self._texts |= stored
        pools = sample.get("events_data")
        pool = pools.get("messages") if isinstance(pools, dict) else None
        self._messages: list[Any] = pool if isinstance(pool, list) else []

    def resolved(self, value: Any) -> Any:
        """Return a JSON value with its references put back in."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self.resolved(item) for item in value]
        if isinstance(value, dict):
            return {key: self.resolved(item) for key, item in value.items()}
        return value

    def messages_sent(self, event: dict[str, Any]) -> list[Any]:
        """Return the messages of a model call, from its list or from the pool.

        They are not resolved. What the pool does not hold is left out.
        """
        given = event.get("input")
        references = event.get("input_refs")
        if given or not isinstance(references, list):
            return given if isinstance(given, list) else []
        sent: list[Any] = []
        for reference in references:
            if isinstance(reference, list) and len(reference) == 2:
                first, end = reference
                if type(first) is int and type(end) is int and 0 <= first <= end:
                    sent.extend(self._messages[first:end])
        return sent

    def _text(self, text: str) -> Any:
        if len(text) > _LONGEST_REFERENCE:
            return text
        start = next((one for one in _PROTOCOLS if text.startswith(one)), None)
        if start is None:
            return text
        found = self._texts.get(text.removeprefix(start))
        if not isinstance(found, str):
            self._remarks.add(_LOST)
            return text
        if len(found) > self._left:
            self._remarks.add(_LEFT)
            return text
        self._left -= len(found)
        return found
