"""What a contract may cost on one trace, counted in units of work, never in seconds.

Counted work is the same on every machine, so that the same trace gets the same answer.
One unit is about the work of looking at one byte with one state of a pattern.
"""

from __future__ import annotations

from typing import Any, Final

MOST_PER_TRACE: Final = 500_000_000
"""Units for one contract on one trace: a second or two at the very worst."""

MOST_PER_STEP: Final = 250_000_000
"""Units for one condition on one step; a condition that needs more is not decided."""

DEEPEST: Final = 64
"""How deep a recorded value may be nested for a condition to look at it."""

_PER_VALUE: Final = 32


class BudgetSpent(Exception):
    """The contract has used up what it may cost on this trace."""


class Undecided(Exception):
    """A condition that is neither true nor false on a step; the message says why."""


class Budget:
    """The units that are left for one contract on one trace."""

    def __init__(self, units: int = MOST_PER_TRACE) -> None:
        self.left = units

    def charge(self, units: int) -> None:
        """Take `units` off; raises `BudgetSpent` when that many are not left."""
        if units > self.left:
            self.left = 0
            raise BudgetSpent
        self.left -= units


class Value:
    """A recorded JSON value, as safe to look at: bounded in depth and all valid text.

    `size` is about its bytes, `longest` the length of its longest list or object.
    """

    def __init__(self, recorded: Any, *, decimals: bool) -> None:
        self.size = 0
        self.longest = 0
        self._decimals = decimals
        self.plain = self._copied(recorded, 0)

    def _copied(self, value: Any, depth: int) -> Any:
        self.size += _PER_VALUE
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict | list | tuple):
            return self._container(value, depth + 1)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._number(value)
        # Whatever is no JSON value is left out, as the pages do.
        return value if isinstance(value, bool) else None

    def _container(self, value: Any, depth: int) -> Any:
        if depth > DEEPEST:
            raise Undecided(
                f"the recorded value is nested deeper than {DEEPEST} levels"
            )
        self.longest = max(self.longest, len(value))
        if isinstance(value, dict):
            return {
                self._text(str(key)): self._copied(held, depth)
                for key, held in value.items()
            }
        return [self._copied(held, depth) for held in value]

    def _text(self, text: str) -> str:
        # Half of a surrogate pair is no text; it cannot be compared with anything.
        self.size += len(text)
        if text.isascii():
            return text
        return text.encode("utf-8", "replace").decode("utf-8")

    def _number(self, number: float) -> float:
        if isinstance(number, int) and number.bit_length() > 1_000:
            raise Undecided("a recorded number has more than 300 digits")
        if self._decimals and not _is_long(number):
            return float(number)
        return number


def _is_long(number: float) -> bool:
    """Whether a whole number, such as an id, would lose digits as a decimal."""
    return isinstance(number, int) and 2**53 <= abs(number) < 2**63
