"""Answers that stand in a file piece by piece, one piece a record, as streams send them.

Chunks of chat completions are told apart by their id. Pieces of Ollama and Gemini have
none that can be relied on: there an answer goes on until a piece says why it stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apps.engine.reading.answer_parts import Answer
from apps.engine.reading.answer_streams import ChunkedCompletion, is_chunk
from apps.engine.reading.answers import answer_of
from apps.engine.reading.other_answers import is_gemini_answer, other_answer


class AnswerPieces:
    """Collects the pieces of a file and gives the answers that they make."""

    def __init__(self) -> None:
        self._made: list[ChunkedCompletion | Answer] = []
        self._chunked: dict[str, ChunkedCompletion] = {}
        self._open: Answer | None = None

    def take(self, value: Any) -> bool:
        """Take a value that is a piece, or whole and ends one; whether it was taken."""
        if is_chunk(value):
            self._chunk(value)
            return True
        if not isinstance(value, dict):
            return False
        piece = other_answer(value)
        if piece is None or not ("done" in value or is_gemini_answer(value)):
            return False
        goes_on = value["done"] is False if "done" in value else not piece.finish
        return self._piece(piece, goes_on=goes_on)

    def _chunk(self, chunk: dict[str, Any]) -> None:
        own_id = str(chunk.get("id") or "")
        if own_id not in self._chunked:
            self._chunked[own_id] = ChunkedCompletion()
            self._made.append(self._chunked[own_id])
        self._chunked[own_id].add(chunk)

    def _piece(self, piece: Answer, *, goes_on: bool) -> bool:
        if self._open is None and not goes_on:
            return False
        if self._open is None:
            self._open = piece
            self._made.append(piece)
        else:
            _lengthen(self._open, piece)
        if not goes_on:
            self._open = None
        return True

    def answers(self) -> Iterator[Answer]:
        """Yield the answers in the order in which they began."""
        for one in self._made:
            answer = one if isinstance(one, Answer) else answer_of(one.whole())
            if answer is not None:
                yield answer


def _lengthen(answer: Answer, piece: Answer) -> None:
    """Add a piece; its counts are of the whole answer so far."""
    for field in ("text", "reasoning"):
        before, after = getattr(answer, field), getattr(piece, field)
        both = isinstance(before, str) and isinstance(after, str)
        setattr(answer, field, before + after if both else before or after)
    answer.asked += piece.asked
    answer.finish = piece.finish or answer.finish
    if piece.counts.output_total is not None or piece.counts.input_total is not None:
        answer.counts = piece.counts
