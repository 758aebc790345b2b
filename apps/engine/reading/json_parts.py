"""One large JSON object read in parts, a few elements of its inner lists at a time.

An object that fits into a few megabytes is one record as ever. Of a larger one each
record has the same shape, but holds only some elements of the lists named, so memory
does not grow with the file.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final, NamedTuple

from apps.engine.format import Rejected
from apps.engine.reading.json_reader import Record, Stop, ValueReader
from apps.engine.reading.json_window import Window
from apps.engine.reading.json_words import excerpt

WHOLE: Final = 4 * 1024 * 1024
_TOGETHER: Final = 64
_LONG: Final = 1024 * 1024
_NOT_AN_OBJECT: Final = (
    "A key, a colon, a comma or the end of the object was expected; the rest was not "
    "read."
)
_CUT_OFF: Final = "The object is not closed: the file was cut off."

Wrap = Callable[[list[Any]], Any]
Reading = Generator[Record | Rejected, None, bool]


class Level(NamedTuple):
    """A list that may be read in parts.

    `keys` are its names, `after` the key of the same object that must have come before
    it, because every part needs it ("" for none): without it the list is read whole.
    """

    keys: frozenset[str]
    after: str = ""


class Parts(NamedTuple):
    """Which lists of an object may be read in parts, from the outermost to the inmost."""

    levels: tuple[Level, ...]
    whole: int = WHOLE


def parts_of(reader: ValueReader, parts: Parts) -> Reading:
    """Yield the value that begins here, in parts if it is an object and large.

    The parts have the keys of the object that came before the list; what comes behind
    it is read and left out. Returns whether the reader still stands before a bad value.
    """
    return _Splitter(reader, parts).value(0, (), lambda values: values[0])


class _Some:
    """The elements of a list that will make the next record."""

    def __init__(self, window: Window) -> None:
        self.values: list[Any] = []
        self.first = 0
        self.line = 0
        self._window = window
        self._began = 0

    def begin_at(self, index: int) -> None:
        """Note where the record begins, if the next element is its first."""
        if not self.values:
            self.first, self.line = index, self._window.line
            self._began = self._window.bytes_read

    @property
    def is_enough(self) -> bool:
        """Whether there are many elements, or long ones."""
        is_long = self._window.bytes_read - self._began >= _LONG
        return is_long or len(self.values) == _TOGETHER


class _Splitter:
    """Reads one value in parts."""

    def __init__(self, reader: ValueReader, parts: Parts) -> None:
        self._reader = reader
        self._window = reader.window
        self._parts = parts

    def value(self, depth: int, starts: tuple[int, ...], wrap: Wrap) -> Reading:
        """Yield the value that begins here; `wrap` makes a record of it in a list."""
        can_split = depth < len(self._parts.levels)
        is_object = self._window.text[self._window.at] == "{"
        if can_split and is_object:
            found = self._reader.value_up_to(self._parts.whole)
        else:
            found = self._reader.value()
        if found is None:
            return (yield from self._object(depth, starts, wrap))
        if isinstance(found, Rejected):
            yield found
            return True
        yield Record(wrap([found.value]), found.number, found.line, starts)
        return False

    def _object(self, depth: int, starts: tuple[int, ...], wrap: Wrap) -> Reading:
        window, level = self._window, self._parts.levels[depth]
        line, was_split = window.line, False
        before: dict[str, Any] = {}
        window.advance(window.at + 1)
        while (mark := window.skip_blank()) and mark != "}":
            key = self._key(is_first=not before and not was_split)
            if key is None:
                yield self._broken(_NOT_AN_OBJECT)
                raise Stop
            if self._is_split(key, level, before):
                was_split = True
                inside = _inside(wrap, dict(before), key)
                if depth + 1 == len(self._parts.levels):
                    yield from self._elements(starts, inside)
                else:
                    yield from self._list(depth + 1, starts, inside)
                continue
            found = self._reader.value()
            if isinstance(found, Rejected):
                yield found
                raise Stop
            before[key] = found.value
        if not mark:
            yield self._broken(_CUT_OFF)
            raise Stop
        window.advance(window.at + 1)
        if not was_split:
            yield Record(wrap([before]), self._reader.number, line, starts)
        return False

    def _is_split(self, key: str, level: Level, before: dict[str, Any]) -> bool:
        is_known = not level.after or level.after in before
        is_list = self._window.text[self._window.at : self._window.at + 1] == "["
        return key in level.keys and is_known and is_list

    def _key(self, *, is_first: bool) -> str | None:
        """Return the next key and move to its value; `None` where none stands."""
        window = self._window
        if not is_first and not self._past(","):
            return None
        if window.skip_blank() != '"':
            return None
        found = self._reader.value()
        if isinstance(found, Rejected) or not self._past(":"):
            return None
        return str(found.value) if window.skip_blank() else None

    def _past(self, mark: str) -> bool:
        window = self._window
        if window.skip_blank() != mark:
            return False
        window.advance(window.at + 1)
        return True

    def _list(self, depth: int, starts: tuple[int, ...], wrap: Wrap) -> Reading:
        """Yield the elements of a list, each by itself or in parts."""
        index = 0
        while self._comes_element(is_first=not index):
            if (yield from self.value(depth, (*starts, index), wrap)):
                self._reader.past_bad_element()
            index += 1
        return (yield from self._end_of_list())

    def _elements(self, starts: tuple[int, ...], wrap: Wrap) -> Reading:
        """Yield the elements of an inmost list, several in one record."""
        index = 0
        some = _Some(self._window)
        while self._comes_element(is_first=not index):
            some.begin_at(index)
            found = self._reader.value()
            index += 1
            is_bad = isinstance(found, Rejected)
            if isinstance(found, Record):
                some.values.append(found.value)
            if some.values and (is_bad or some.is_enough):
                yield self._record(some, starts, wrap)
            if isinstance(found, Rejected):
                yield found
                self._reader.past_bad_element()
        if some.values:
            yield self._record(some, starts, wrap)
        return (yield from self._end_of_list())

    def _record(self, some: _Some, starts: tuple[int, ...], wrap: Wrap) -> Record:
        values, some.values = some.values, []
        place = (*starts, some.first)
        return Record(wrap(values), self._reader.number, some.line, place)

    def _comes_element(self, *, is_first: bool) -> bool:
        """Move to the next element of a list, and tell whether there is one."""
        window = self._window
        if is_first:
            window.advance(window.at + 1)
            return window.skip_blank() not in {"", "]"}
        return self._past(",") and window.skip_blank() != ""

    def _end_of_list(self) -> Reading:
        """Move past the end of a list; raise `Stop`, with a refusal, where none is."""
        mark = self._window.skip_blank()
        if mark != "]":
            yield self._reader.no_comma() if mark else self._broken(_CUT_OFF)
            raise Stop
        self._window.advance(self._window.at + 1)
        return False

    def _broken(self, reason: str) -> Rejected:
        window = self._window
        return Rejected(
            window.place(window.at), reason, excerpt(window.text, window.at)
        )


def _inside(wrap: Wrap, before: dict[str, Any], key: str) -> Wrap:
    """Return what makes a record of elements of the list `key` of an object."""
    return lambda values: wrap([{**before, key: values}])
