"""Reading the files of one group of an archive, each with its name in every place."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any, Final

from apps.engine.format import Folder, Item, Progress, Rejected
from apps.engine.reading.json_gate import Make, Record, read_each

_LAST: Final = chr(sys.maxunicode)


class GroupFiles:
    """Reads files of a folder one after another; progress counts all of them."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._done = 0

    def read(self, name: str, make: Make, *, unroll: bool) -> Iterator[Item]:
        """Yield what `make` makes of each record of a file, as `read_each` does."""
        source = self._folder.source(name)
        read = 0
        with source.stream:
            for item in read_each(source, make, unroll=unroll):
                if isinstance(item, Progress):
                    read = item.bytes_read
                    yield Progress(self._done + read, None)
                else:
                    yield placed(name.rsplit("/", 1)[-1], item)
        self._done += read

    def keep(self, name: str, kept: dict[str, dict[str, Any]]) -> Iterator[Item]:
        """Keep the first object of a file in `kept`, by the file's own name."""
        short = name.rsplit("/", 1)[-1]

        def keep(record: Record) -> Iterable[Item]:
            if isinstance(record.value, dict):
                kept.setdefault(short, record.value)
            return ()

        return self.read(name, keep, unroll=False)


def has_name(names: tuple[str, ...], name: str) -> bool:
    """Whether `name` is one of `names`, which are sorted."""
    at = bisect_left(names, name)
    return at < len(names) and names[at] == name


def names_below(names: tuple[str, ...], start: str) -> tuple[str, ...]:
    """Return the names that begin with `start`; they stand together, being sorted."""
    first = bisect_left(names, start)
    end = bisect_left(names, start + _LAST) if start else len(names)
    return names[first:end]


def placed(name: str, item: Item) -> Item:
    """Return an item with the name of its file before the place of what was rejected."""
    if not isinstance(item, Rejected):
        return item
    return Rejected(f"{name}, {item.place}", item.reason, item.excerpt)
