"""The part of a JSON text that is being read, with line and column."""

from __future__ import annotations

import codecs
import re
from typing import Final

from apps.engine.format import Source

WINDOW: Final = 256 * 1024
_BLANK: Final = re.compile(r"[ \t\r\n]*")


class Window:
    """The part of the text that is being read, with the line and column of `at`."""

    def __init__(self, source: Source) -> None:
        self._stream = source.stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.text = ""
        self.at = 0
        self.line = 1
        self.column = 1
        self.bytes_read = 0
        self.ended = False

    def grow(self) -> None:
        """Read on: as much again as is being held, so that growing stays linear."""
        size = max(WINDOW, len(self.text) - self.at)
        data = self._stream.read(size)
        self.bytes_read += len(data)
        self.ended = not data
        more = self._decoder.decode(data, final=self.ended)
        self.text = self.text[self.at :] + more
        self.at = 0

    def advance(self, to: int) -> None:
        """Move to position `to`, keeping line and column right."""
        newlines = self.text.count("\n", self.at, to)
        if newlines:
            self.line += newlines
            self.column = to - self.text.rfind("\n", self.at, to)
        else:
            self.column += to - self.at
        self.at = to

    def skip_blank(self) -> str:
        """Move to the next character that is not blank and return it; "" at the end."""
        while True:
            blank = _BLANK.match(self.text, self.at)
            self.advance(blank.end() if blank else self.at)
            if self.at < len(self.text):
                return self.text[self.at]
            if self.ended:
                return ""
            self.grow()

    def place(self, at: int) -> str:
        """Return "line n, column m" of position `at`."""
        newlines = self.text.count("\n", self.at, at)
        if newlines:
            column = at - self.text.rfind("\n", self.at, at)
        else:
            column = self.column + at - self.at
        return f"line {self.line + newlines}, column {column}"
