"""Reading the files of one group of an archive, each with its name in every place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from apps.engine.format import Folder, Item, Progress, Rejected
from apps.engine.reading.json_gate import Make, Record, read_each


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


def placed(name: str, item: Item) -> Item:
    """Return an item with the name of its file before the place of what was rejected."""
    if not isinstance(item, Rejected):
        return item
    return Rejected(f"{name}, {item.place}", item.reason, item.excerpt)
