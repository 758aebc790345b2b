"""A command's standard input and the lines of its output."""

from __future__ import annotations

import contextlib
import os
import selectors
from collections.abc import Iterator
from typing import IO, Any

import msgspec


class TypingIn:
    """Writes lines as fast as they are read, and cuts what comes back into lines."""

    def __init__(self, pipe: IO[bytes], selector: selectors.BaseSelector) -> None:
        self._pipe, self._selector = pipe, selector
        self._waiting, self._of_line = bytearray(), bytearray()
        os.set_blocking(pipe.fileno(), False)

    def write(self, value: Any) -> None:
        """Write a JSON value as a line; what nobody reads waits."""
        is_idle = not self._waiting
        self._waiting += msgspec.json.encode(value) + b"\n"
        if is_idle and not self._pipe.closed:
            self._selector.register(self._pipe, selectors.EVENT_WRITE, self._go_on)

    def _go_on(self) -> None:
        try:
            sent = os.write(self._pipe.fileno(), self._waiting[: 1 << 16])
        except BlockingIOError:
            return
        except OSError:
            sent = len(self._waiting)
        del self._waiting[:sent]
        if not self._waiting:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(self._pipe)

    def lines(self, piece: bytes, longest: int) -> Iterator[bytes]:
        """The lines that a piece ends, with their ends; an endless one in parts."""
        self._of_line += piece
        *whole, rest = self._of_line.split(b"\n")
        self._of_line = bytearray()
        if len(rest) > longest:
            whole.append(rest)
            rest = bytearray()
        self._of_line = bytearray(rest)
        for line in whole:
            yield bytes(line) + b"\n"

    def last(self) -> Iterator[bytes]:
        """What came after the last end of a line."""
        if self._of_line:
            yield bytes(self._of_line)
            self._of_line = bytearray()
