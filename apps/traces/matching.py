"""Which trace of an earlier reading each trace of a new one is. Pure.

The same native id is the same trace. Without one it is the same content, else the same
place in the upload; a guess that only says under which id the new content goes on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec


class Known(msgspec.Struct, frozen=True):
    """A stored trace; a place below 0 says that the last reading did not have it."""

    trace_id: int
    native_id: str | None
    content_hash: str
    place: int


class Found(msgspec.Struct, frozen=True):
    """A trace of the new reading; its place is that in the list."""

    native_id: str | None
    content_hash: str


class Match(msgspec.Struct, frozen=True):
    """A new trace is this stored one, with the same content or another."""

    known: Known
    is_same: bool


def match(
    known: Sequence[Known], found: Sequence[Found], *, elsewhere: Collection[str]
) -> dict[int, Match]:
    """The stored trace of each place of the new reading that has one.

    `elsewhere` are native ids that belong to traces of other uploads. No stored trace
    is matched twice.
    """
    matching = _Matching(known, found)
    matching.by_native_id()
    matching.by_content()
    matching.by_place(elsewhere)
    return matching.matches


class _Matching:
    def __init__(self, known: Sequence[Known], found: Sequence[Found]) -> None:
        self._left = {one.trace_id: one for one in known}
        self._found = found
        self.matches: dict[int, Match] = {}

    def _take(self, place: int, known: Known) -> None:
        del self._left[known.trace_id]
        same = known.content_hash == self._found[place].content_hash
        self.matches[place] = Match(known, is_same=same)

    def by_native_id(self) -> None:
        ids = {one.native_id: one for one in self._left.values() if one.native_id}
        for place, new in enumerate(self._found):
            if new.native_id and (known := ids.pop(new.native_id, None)):
                self._take(place, known)

    def by_content(self) -> None:
        """Same place first, so that equal traces do not change places."""
        places = {(one.place, one.content_hash): one for one in self._left.values()}
        for place, new in enumerate(self._found):
            known = places.get((place, new.content_hash))
            if known and place not in self.matches and known.trace_id in self._left:
                self._take(place, known)
        contents: dict[str, list[Known]] = {}
        for one in self._left.values():
            contents.setdefault(one.content_hash, []).append(one)
        for place, new in enumerate(self._found):
            if place not in self.matches and contents.get(new.content_hash):
                self._take(place, contents[new.content_hash].pop(0))

    def by_place(self, elsewhere: Collection[str]) -> None:
        """What is left of both: its content has changed, or its native id came or went."""
        places = {one.place: one for one in self._left.values() if one.place >= 0}
        # Of several with one native id the first is stored; the others stand twice.
        seen: set[str] = set(elsewhere)
        for place, new in enumerate(self._found):
            known = places.get(place)
            is_free = new.native_id is None or (
                new.native_id not in seen and not (known and known.native_id)
            )
            if new.native_id:
                seen.add(new.native_id)
            if known and is_free and place not in self.matches:
                self._take(place, known)
