"""Which characters a TrueType font holds, read from its `cmap` table.

Only the two forms of subtable that fonts use for Unicode are read: 4 and 12 (OpenType
specification, chapter "cmap").
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_TABLE_ENTRY = 16
_TABLES_START = 12
_SEGMENTS = 4
_GROUPS = 12


def characters_of(font: bytes) -> frozenset[int]:
    """The code points that `font` maps to a glyph; raises `ValueError` without a cmap."""
    start = _cmap_offset(font)
    (count,) = struct.unpack_from(">H", font, start + 2)
    held: set[int] = set()
    for place in range(count):
        (offset,) = struct.unpack_from(">I", font, start + 4 + 8 * place + 4)
        held.update(_subtable(font, start + offset))
    return frozenset(held)


def _cmap_offset(font: bytes) -> int:
    (count,) = struct.unpack_from(">H", font, 4)
    for place in range(count):
        tag, _, offset, _ = struct.unpack_from(
            ">4sIII", font, _TABLES_START + _TABLE_ENTRY * place
        )
        if tag == b"cmap":
            return int(offset)
    raise ValueError("This font has no table of characters.")


def _subtable(font: bytes, start: int) -> Iterator[int]:
    (form,) = struct.unpack_from(">H", font, start)
    if form == _SEGMENTS:
        yield from _segments(font, start)
    elif form == _GROUPS:
        (count,) = struct.unpack_from(">I", font, start + 12)
        for place in range(count):
            first, last, glyph = struct.unpack_from(
                ">III", font, start + 16 + 12 * place
            )
            yield from range(first + (glyph == 0), last + 1)


def _segments(font: bytes, start: int) -> Iterator[int]:
    (doubled,) = struct.unpack_from(">H", font, start + 6)
    count = doubled // 2
    ends_at = start + 14
    starts_at = ends_at + doubled + 2
    offsets_at = starts_at + 2 * doubled
    ends = struct.unpack_from(f">{count}H", font, ends_at)
    starts = struct.unpack_from(f">{count}H", font, starts_at)
    deltas = struct.unpack_from(f">{count}H", font, starts_at + doubled)
    offsets = struct.unpack_from(f">{count}H", font, offsets_at)
    for place in range(count):
        for code in range(starts[place], ends[place] + 1):
            if _glyph(font, code, place, (starts, deltas, offsets, offsets_at)):
                yield code


def _glyph(
    font: bytes,
    code: int,
    place: int,
    tables: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int],
) -> int:
    starts, deltas, offsets, offsets_at = tables
    if not offsets[place]:
        return (code + deltas[place]) % 65536
    at = offsets_at + 2 * place + offsets[place] + 2 * (code - starts[place])
    glyph = int(struct.unpack_from(">H", font, at)[0])
    return (glyph + deltas[place]) % 65536 if glyph else 0
