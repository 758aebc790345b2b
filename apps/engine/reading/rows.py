"""Rows out of a CSV table, one at a time, as records of texts by column.

The delimiter is told from the header; quoted cells may hold line ends and be large.
A bad row is rejected with its line and the good ones around it are kept. A cell is
text whatever it looks like: a formula stays the text of a formula.
Rules of quoting: https://www.rfc-editor.org/rfc/rfc4180
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import msgspec

from apps.engine.format import Item, Note, Progress, Rejected, Source
from apps.engine.reading.json_gate import Make, Record, make_each, read_each
from apps.engine.reading.json_values import embedded
from apps.engine.reading.json_words import excerpt, visible
from apps.engine.reading.python_repr import NotALiteral, literal

MAX_ROW: Final = 256 * 1024 * 1024
MAX_COLUMNS: Final = 10_000
PROGRESS_EVERY: Final = 64
_LONGEST_LITERAL: Final = 16 * 1024 * 1024
_DELIMITERS: Final = ",;\t|"
_SEPARATOR_LINE: Final = re.compile(rb"sep=(.)\r?\n")
_QUOTED: Final = re.compile(rb'"[^"]*+(?:""[^"]*+)*+"?')
_NOT_RECORDED: Final = frozenset(
    {"", "nan", "NaN", "NaT", "<NA>", "None", "null", "NULL", "\\N"}
)
_STRUCTURES: Final = ("{", "[", "(", "array(", "OrderedDict(", "defaultdict(")
_CUT: Final = "A quote is opened and never closed: the file was cut off."
_SHORT: Final = "The last row ends early: the file was cut off."
_OPEN_END: Final = Note(
    code="last_cell",
    sentence=(
        "The last row has no line end, so its last cell may be cut off: that cell "
        "was read as not recorded."
    ),
)


class Header(msgspec.Struct, frozen=True):
    """The columns of a table, and the character between them."""

    columns: tuple[str, ...]
    delimiter: str


class _Line(msgspec.Struct):
    """The text of one row, perhaps over several lines of the file."""

    data: bytes
    line: int
    lines: int
    is_closed: bool
    has_end: bool


def header_of(source: Source) -> Header | None:
    """Return the header of a table, told from the head; `None` where it is none.

    A header is a first line of at least two different names that is not JSON. The
    answer is kept in `source.memo`.
    """
    if "header" not in source.memo:
        source.memo["header"] = _header(source.head) if source.is_text else None
    header: Header | None = source.memo["header"]
    return header


def _header(head: bytes) -> Header | None:
    if head.lstrip()[:1] in {b"{", b"["}:
        return None
    declared = _SEPARATOR_LINE.match(head)
    start = declared.end() if declared else 0
    line = _first_row(head[start:])
    found = declared.group(1).decode("utf-8", "replace") if declared else None
    delimiter = found or _most_frequent(line)
    if delimiter is None:
        return None
    cells = _cells(line.decode("utf-8", "replace"), _pattern(delimiter))
    if cells is None or not 2 <= len(cells) <= MAX_COLUMNS:
        return None
    names = tuple((text or "").strip() for text, _ in cells)
    return Header(names, delimiter) if len(set(names)) >= 2 else None


def _first_row(head: bytes) -> bytes:
    at = 0
    while (end := head.find(b"\n", at)) >= 0:
        if head.count(b'"', 0, end) % 2 == 0:
            return head[:end].rstrip(b"\r")
        at = end + 1
    return head.rstrip(b"\r")


def _most_frequent(line: bytes) -> str | None:
    """Return the delimiter that stands most often outside quotes; ties as listed."""
    bare = _QUOTED.sub(b"", line).decode("utf-8", "replace")
    counts = {one: bare.count(one) for one in _DELIMITERS}
    best = max(counts, key=lambda one: counts[one])
    return best if counts[best] else None


def _pattern(delimiter: str) -> re.Pattern[str]:
    mark = re.escape(delimiter)
    return re.compile(
        rf'(?:"([^"]*+(?:""[^"]*+)*+)"|([^"{mark}][^{mark}]*+)?+)(?={mark}|\Z)'
    )


def _cells(text: str, pattern: re.Pattern[str]) -> list[tuple[str | None, bool]] | None:
    """Return (text, is quoted) of each cell of a row; `None` for misplaced quotes."""
    cells: list[tuple[str | None, bool]] = []
    at = 0
    while len(cells) <= MAX_COLUMNS:
        found = pattern.match(text, at)
        if found is None:
            return None
        quoted, bare = found.groups()
        is_quoted = quoted is not None
        cells.append((quoted.replace('""', '"') if is_quoted else bare, is_quoted))
        at = found.end() + 1
        if at > len(text):
            return cells
    return None


def read_rows(source: Source, make: Make) -> Iterator[Item]:
    """Yield what `make` makes of each row; a `RefusedRecord` becomes `Rejected`.

    A row is a `Record` whose value is an object of the cells that are recorded, by
    column; empty cells and the words of data frames and databases for nothing
    ("nan", "None", "NULL") are absent. Notes and progress stand between. Safe only
    once: the stream is read to its end.
    """
    yield from source.notes
    yield from make_each(_rows(source), make, _shown)
    yield from source.remarks()


def read_table_or_json(source: Source, make: Make) -> Iterator[Item]:
    """Yield what `make` makes of each row of a table, or of each JSON record."""
    if header_of(source) is not None:
        return read_rows(source, make)
    return read_each(source, make, unroll=True)


def _shown(value: dict[str, str]) -> str:
    return ", ".join(f"{key}={item[:60]}" for key, item in list(value.items())[:3])


def _rows(source: Source) -> Iterator[Record | Rejected | Note | Progress]:
    header = header_of(source)
    if header is None:
        yield Rejected("line 1", "This is not a table: it has no header of columns.")
        return
    table = _Table(header)
    yield from table.doubled()
    lines = _lines(source.stream)
    for line in lines:
        if not _SEPARATOR_LINE.fullmatch(line.data):
            break
    bytes_read = number = 0
    for number, line in enumerate(lines, start=1):
        bytes_read += len(line.data)
        yield from table.row(line, number)
        if number % PROGRESS_EVERY == 0:
            yield Progress(bytes_read, source.size)
    yield Progress(source.size or bytes_read, source.size)


class _Table:
    """Makes records out of the rows below one header."""

    def __init__(self, header: Header) -> None:
        self._columns = header.columns
        self._pattern = _pattern(header.delimiter)

    def doubled(self) -> Iterator[Note]:
        """Yield a note when two columns have one name."""
        names = [name for name in self._columns if name]
        counts = Counter(names)
        twice = sorted(name for name in counts if counts[name] > 1)
        if twice:
            yield Note(
                code="doubled_columns",
                sentence=(
                    f'Columns that stand twice, such as "{visible(twice[0])[:80]}": '
                    "the first recorded cell was kept."
                ),
                count=len(twice),
            )

    def row(self, line: _Line, number: int) -> Iterator[Record | Rejected | Note]:
        """Yield the record of a row, or why there is none; blank lines give nothing."""
        data = line.data.rstrip(b"\r\n") if line.is_closed else line.data
        if not data.strip():
            return
        text = visible(data.decode("utf-8", "replace"))
        reason = self._fault(line)
        cells = None if reason else _cells(text, self._pattern)
        if reason is None and cells is None:
            reason = "A quote stands inside a cell that is not quoted as a whole."
        elif cells is not None and len(cells) != len(self._columns):
            reason = self._wrong_width(len(cells), line)
        if reason or cells is None:
            place = f"record {number} (line {line.line})"
            yield Rejected(place, reason or _CUT, excerpt(text[:200]))
            return
        if not line.has_end and not cells[-1][1]:
            cells[-1] = (None, False)
            yield _OPEN_END
        yield Record(self._recorded(cells), number, line.line)

    def _fault(self, line: _Line) -> str | None:
        if line.is_closed:
            return None
        if line.has_end:
            return f"The row is larger than {MAX_ROW:,} bytes."
        return _CUT

    def _wrong_width(self, width: int, line: _Line) -> str:
        if not line.has_end and width < len(self._columns):
            return _SHORT
        return f"The row has {width} cells where the header has {len(self._columns)}."

    def _recorded(self, cells: list[tuple[str | None, bool]]) -> dict[str, str]:
        made: dict[str, str] = {}
        for name, (text, is_quoted) in zip(self._columns, cells, strict=True):
            if name and text and (is_quoted or text not in _NOT_RECORDED):
                made.setdefault(name, text)
        return made


def _lines(stream: BinaryIO) -> Iterator[_Line]:
    """Yield each row as the bytes from its first line to the one that closes its quotes.

    A row above `MAX_ROW` is given up and not held; what follows it is read on.
    """
    at = 1
    while True:
        row = _next_row(stream, at)
        if row is None:
            return
        yield row
        at += row.lines


def _next_row(stream: BinaryIO, at: int) -> _Line | None:
    parts: list[bytes] = []
    size = quotes = lines = 0
    while part := stream.readline(MAX_ROW):
        quotes += part.count(b'"')
        size += len(part)
        has_end = part.endswith(b"\n")
        lines += has_end
        if size <= MAX_ROW:
            parts.append(part)
        else:
            del parts[1:]
        if has_end and quotes % 2 == 0:
            is_whole = size <= MAX_ROW
            return _Line(b"".join(parts), at, lines, is_whole, has_end=True)
    if not size:
        return None
    is_whole = quotes % 2 == 0 and size <= MAX_ROW
    return _Line(b"".join(parts), at, lines, is_whole, has_end=False)


def cell(value: Any) -> Any:
    """Return the content of a cell that is JSON or a Python literal, else the cell.

    Lists, objects and tuples are opened, whichever way they are written; everything
    else is text and stays it. Nothing is evaluated.
    """
    if not isinstance(value, str) or not value.startswith(_STRUCTURES):
        return value
    opened = embedded(value)
    if opened is not value or len(value) > _LONGEST_LITERAL:
        return opened
    try:
        return literal(value)
    except NotALiteral:
        return value
