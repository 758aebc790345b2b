"""Counting what readers noted about single traces: one line for many traces.

Sentences that differ in their numbers only are one note. A count at the end of one
("Tool calls without an answer: 3.") is added up; any other number is that of the first
trace that said so, and the note says that it `varies`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

_NUMBER = re.compile(r"\d+(?:,\d{3})*")
_COUNTED = re.compile(r"(\D*: )(\d+(?:,\d{3})*)\.")
_PREFIX = "trace: "


def code_of(sentence: str) -> str:
    """What stands for all sentences that differ in their numbers only."""
    return _PREFIX + _NUMBER.sub("n", sentence)


def is_of_traces(code: str) -> bool:
    """Whether the count of a note with this code is a number of traces."""
    return code.startswith(_PREFIX)


def total(first: str, second: str, *, sign: int = 1) -> str | None:
    """Two sentences of one code as one with the sum; None where no count ends them."""
    one, two = _COUNTED.fullmatch(first), _COUNTED.fullmatch(second)
    if one is None or two is None:
        return None
    return f"{one[1]}{_whole(one[2]) + sign * _whole(two[2]):,}."


def _whole(digits: str) -> int:
    return int(digits.replace(",", ""))


class TraceNotes:
    """Notes of one upload about its traces, added one by one."""

    def __init__(self, notes: Iterable[dict[str, Any]] = ()) -> None:
        self._notes: dict[str, dict[str, Any]] = {one["code"]: one for one in notes}

    def add(self, sentence: str) -> None:
        """Count what was said of one more trace."""
        code = code_of(sentence)
        note = self._notes.setdefault(
            code, {"code": code, "sentence": sentence, "count": 0}
        )
        note["count"] += 1
        if note["count"] == 1:
            note["sentence"] = sentence
        elif summed := total(note["sentence"], sentence):
            note["sentence"] = summed
        elif note["sentence"] != sentence:
            note["varies"] = True

    def remove(self, sentence: str) -> None:
        """Take back what was said of one trace."""
        note = self._notes.get(code_of(sentence))
        if note is None:
            return
        note["count"] -= 1
        note["sentence"] = (
            total(note["sentence"], sentence, sign=-1) or note["sentence"]
        )

    def change(self, *, added: Iterable[str], removed: Iterable[str]) -> None:
        """Take back what was said of a trace, and count what is said of it now."""
        # Counted one by one: what a trace says twice is taken back twice.
        gone, come = Counter(removed), Counter(added)
        for sentence in (gone - come).elements():
            self.remove(sentence)
        for sentence in (come - gone).elements():
            self.add(sentence)

    def all(self) -> list[dict[str, Any]]:
        """The notes as an upload keeps them, in the order in which they came."""
        return [note for note in self._notes.values() if note["count"] > 0]
