"""The features of all units, one column each, as sets of units held in bits.

Unit number i of n is the bit n - 1 - i, so that a text of "0" and "1" in the order of
the units is the number in base 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from apps.engine.patterns.conditions import Condition, Kind
from apps.engine.patterns.units import Unit

_MOST_LABELS: Final = 25
_MOST_MEMBERS: Final = 40
_ONE: Final = ord("1")


class Column(msgspec.Struct, frozen=True):
    """One feature: where it is known, its numbers, and its other values as covers.

    `numbers` runs in parallel with the units (`None`: no number there) and is empty
    where the feature has none. `covers` come largest first, each with a condition.
    """

    feature: str
    known: int
    numbers: tuple[float | None, ...]
    covers: tuple[tuple[Condition, int], ...]


def columns_of(units: Sequence[Unit], *, fewest: int) -> list[Column]:
    """The columns by name. Values met by under `fewest` units are in no cover."""
    names = sorted({name for unit in units for name in unit.features})
    return [_column(name, units, fewest) for name in names]


def bits_at(places: Sequence[int], size: int) -> int:
    """The set of the units at `places` of `size`."""
    text = bytearray(b"0") * size
    for place in places:
        text[place] = _ONE
    return int(text, 2) if size else 0


class _Sorted:
    """The values of one feature, sorted by their kind while they are read."""

    def __init__(self, size: int) -> None:
        self.known: list[int] = []
        self.numbers: list[float | None] = [None] * size
        self.has_numbers = False
        self.equal: dict[str | bool, list[int]] = {}
        self.held: dict[str, list[int]] = {}

    def add(self, place: int, value: Any) -> None:
        if isinstance(value, bool | str):
            # True and 1 are one key of a dict, but no number comes here.
            self.equal.setdefault(value, []).append(place)
        elif isinstance(value, int | float):
            number = as_number(value)
            if number is None:
                return
            self.numbers[place] = number
            self.has_numbers = True
        elif isinstance(value, tuple | list | set | frozenset):
            for member in {str(item) for item in value}:
                self.held.setdefault(member, []).append(place)
        else:
            return
        self.known.append(place)


def as_number(value: float) -> float | None:
    """The number as a float, infinite where it is too large; `None` for NaN."""
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return None if math.isnan(number) else number


def _column(name: str, units: Sequence[Unit], fewest: int) -> Column:
    size = len(units)
    found = _Sorted(size)
    for place, unit in enumerate(units):
        value = unit.features.get(name)
        if value is not None:
            found.add(place, value)
    covers = [
        *_covers(name, Kind.IS, found.equal, (fewest, _MOST_LABELS, size)),
        *_covers(name, Kind.HOLDS, found.held, (fewest, _MOST_MEMBERS, size)),
    ]
    return Column(
        feature=name,
        known=bits_at(found.known, size),
        numbers=tuple(found.numbers) if found.has_numbers else (),
        covers=tuple(covers),
    )


def _covers(
    name: str, kind: Kind, places: dict[Any, list[int]], limits: tuple[int, int, int]
) -> Iterator[tuple[Condition, int]]:
    fewest, most, size = limits
    common = [item for item in places.items() if len(item[1]) >= fewest]
    common.sort(key=lambda item: (-len(item[1]), str(item[0])))
    for value, where in common[:most]:
        condition = Condition(feature=name, kind=kind, value=value)
        yield condition, bits_at(where, size)
