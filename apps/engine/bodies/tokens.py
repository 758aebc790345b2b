"""Words that would show that a text was read: ids, numbers, longer words.

Two texts that share such a word may share it by chance; two that share none have
nothing in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

_WORD: Final = re.compile(r"[^\W_]+")
_SHORTEST_WORD: Final = 5
_SHORTEST_NUMBER: Final = 2
_PIECE: Final = 512


def telling_words(text: str) -> set[str]:
    """The words of `text` that tell something, in lower case.

    Those with a digit and at least 2 characters, and those of at least 5 letters;
    in scripts without small letters of 2.
    """
    words = set(_WORD.findall(text.casefold()))
    return {word for word in words if _tells(word)}


def _tells(word: str) -> bool:
    if len(word) >= _SHORTEST_WORD:
        return True
    if len(word) < _SHORTEST_NUMBER:
        return False
    return not (word.isascii() and word.isalpha())


def in_pieces(texts: Iterable[str], most: int) -> Iterator[str]:
    """Yield the texts in pieces of about 512 characters, cut between words.

    Stops after `most` characters. Short texts are put together.
    """
    waiting: list[str] = []
    size = 0
    for text in texts:
        for piece in _cut(text[: max(most, 0)]):
            waiting.append(piece)
            size += len(piece)
            if size >= _PIECE:
                yield "\n".join(waiting)
                waiting, size = [], 0
        most -= len(text)
        if most <= 0:
            break
    if waiting:
        yield "\n".join(waiting)


def _cut(text: str) -> Iterator[str]:
    start = 0
    while len(text) - start > 2 * _PIECE:
        end = text.find(" ", start + _PIECE, start + 2 * _PIECE)
        end = start + _PIECE if end < 0 else end
        yield text[start:end]
        start = end
    yield text[start:]
