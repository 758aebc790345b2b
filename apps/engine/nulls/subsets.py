"""Random and complete lists of the ways to split n things into two groups."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from random import Random
from typing import Final

_SHARE_BITS: Final = 8
_WORTH_TOSSING: Final = 64
_SELECTED: Final = bytes.maketrans(b"01", b"\x00\x01")


def every_split(size: int, taken: int) -> Iterator[bytes]:
    """Each way to take `taken` of `size`: a byte for each, 1 where it is taken."""
    for chosen in combinations(range(size), taken):
        split = bytearray(size)
        for place in chosen:
            split[place] = 1
        yield bytes(split)


def random_split(size: int, taken: int, source: Random) -> bytes:
    """One of these ways, each with the same probability.

    A few of many are sampled. Else they are tossed: a coin for each thing, all at
    once, and then things chosen at random go over until the number is right. Given
    how many were tossed into a group, every such group is equally likely, and so it
    stays when random members go.
    """
    fewer = min(taken, size - taken)
    # Measured: tossing is quicker for many, and for about half of any number.
    if fewer < _WORTH_TOSSING and 3 * fewer < size:
        return _sampled(size, taken, source)
    mask = _tossed(size, round((1 << _SHARE_BITS) * taken / size), source)
    surplus = mask.bit_count() - taken
    is_surplus = surplus > 0
    remaining = abs(surplus)
    draw = source.random
    while remaining:
        bit = 1 << int(draw() * size)
        if bool(mask & bit) is is_surplus:
            mask ^= bit
            remaining -= 1
    return f"{mask:0{size}b}".encode().translate(_SELECTED)


def _sampled(size: int, taken: int, source: Random) -> bytes:
    takes_few = taken * 2 <= size
    split = bytearray(size) if takes_few else bytearray(b"\x01" * size)
    mark = int(takes_few)
    for place in source.sample(range(size), taken if takes_few else size - taken):
        split[place] = mark
    return bytes(split)


def _tossed(size: int, share: int, source: Random) -> int:
    """An integer whose `size` bits are each 1 with probability `share` / 256.

    Digit by digit of the share from its last one: a 1 asks for either of two coins,
    a 0 for both, which halves the probability so far and adds a half or nothing.
    """
    mask = 0
    for place in range(_SHARE_BITS):
        coins = source.getrandbits(size)
        mask = mask | coins if share >> place & 1 else mask & coins
    return mask
