"""Two texts side by side: what both have, and what only one of them has, by words.

A difference of words is no difference of meaning, nor the other way round.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from rapidfuzz.distance import LCSseq

MOST_CHARACTERS: Final = 65_536
"""Characters of each text that are compared and given back."""
_MOST_CELLS: Final = 16_000_000
_WORD: Final = re.compile(r"\w+|\s+|[^\w\s]")

PieceKind: TypeAlias = Literal["equal", "removed", "added"]
_Words: TypeAlias = list[str]
_Block: TypeAlias = tuple[_Words, _Words]


class Piece(msgspec.Struct, frozen=True):
    """A stretch of one text: `equal` in both, `removed` (first only) or `added`."""

    kind: PieceKind
    text: str


class Difference(msgspec.Struct, frozen=True):
    """The pieces of both texts, which joined are the texts.

    `cut` says of each how many characters were left out at its end, `is_whole` that
    some stretch was too long to be compared word by word and stands as a whole.
    """

    first: tuple[Piece, ...]
    second: tuple[Piece, ...]
    cut: tuple[int, int] = (0, 0)
    is_whole: bool = False

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs in what was compared."""
        return all(piece.kind == "equal" for piece in self.first + self.second)

    @property
    def cut_words(self) -> str:
        """A sentence where something was cut, else nothing."""
        if not any(self.cut):
            return ""
        return (
            f"Only the first {MOST_CHARACTERS:,} characters of each text are compared; "
            f"{self.cut[0]:,} of the first and {self.cut[1]:,} of the second are left "
            "out."
        )


def side_by_side(first: str, second: str) -> Difference:
    """The differences of two texts: by lines, then by words where lines differ.

    By longest common subsequences. Words, white space and other characters are units
    of their own; white space between two changes counts as changed. At most 65,536
    characters of each text are read. Never raises.
    """
    left, right = first[:MOST_CHARACTERS], second[:MOST_CHARACTERS]
    sides: tuple[list[Piece], list[Piece]] = ([], [])
    is_whole = False
    lines = left.splitlines(keepends=True), right.splitlines(keepends=True)
    for is_equal, (mine, other) in _line_blocks(*lines):
        if is_equal:
            _put(sides, "".join(mine), None)
            continue
        words = _WORD.findall("".join(mine)), _WORD.findall("".join(other))
        if len(words[0]) * len(words[1]) > _MOST_CELLS:
            is_whole = True
            _put(sides, "".join(mine), "".join(other))
        else:
            for same, (old, new) in _smooth(_blocks(*words)):
                _put(sides, "".join(old), None if same else "".join(new))
    return Difference(
        first=tuple(sides[0]),
        second=tuple(sides[1]),
        cut=(len(first) - len(left), len(second) - len(right)),
        is_whole=is_whole,
    )


def _line_blocks(one: _Words, other: _Words) -> Iterator[tuple[bool, _Block]]:
    if len(one) * len(other) <= _MOST_CELLS:
        yield from _blocks(one, other)
    else:
        yield False, (one, other)


def _blocks(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[bool, _Block]]:
    """Yield stretches that are equal, and what stands on both sides between them."""
    changed: _Block = ([], [])
    for code in LCSseq.opcodes(one, other):
        mine = list(one[code.src_start : code.src_end])
        theirs = list(other[code.dest_start : code.dest_end])
        if code.tag == "equal":
            if any(changed):
                yield False, changed
                changed = ([], [])
            yield True, (mine, theirs)
        else:
            changed = (changed[0] + mine, changed[1] + theirs)
    if any(changed):
        yield False, changed


def _smooth(blocks: Iterator[tuple[bool, _Block]]) -> Iterator[tuple[bool, _Block]]:
    """The blocks, with changes joined that only white space parts."""
    held: _Block | None = None
    space: _Block | None = None
    for is_equal, block in blocks:
        if not is_equal:
            for part in (space, block):
                if part is not None:
                    held = _joined(held, part)
            space = None
        elif held is not None and space is None and "".join(block[0]).isspace():
            space = block
        else:
            yield from _released(held, space)
            held, space = None, None
            yield True, block
    yield from _released(held, space)


def _joined(one: _Block | None, other: _Block) -> _Block:
    return other if one is None else (one[0] + other[0], one[1] + other[1])


def _released(
    held: _Block | None, space: _Block | None
) -> Iterator[tuple[bool, _Block]]:
    if held is not None:
        yield False, held
    if space is not None:
        yield True, space


def _put(sides: tuple[list[Piece], list[Piece]], mine: str, theirs: str | None) -> None:
    """Add a stretch to both sides; without `theirs` it is equal in both."""
    is_equal = theirs is None
    pairs: tuple[tuple[PieceKind, str], tuple[PieceKind, str]] = (
        ("equal" if is_equal else "removed", mine),
        ("equal" if is_equal else "added", mine if theirs is None else theirs),
    )
    for side, (kind, text) in zip(sides, pairs, strict=True):
        if not text:
            continue
        if side and side[-1].kind == kind:
            side[-1] = Piece(kind, side[-1].text + text)
        else:
            side.append(Piece(kind, text))
