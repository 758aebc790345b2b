"""The outline of an OTLP protobuf file: enough to recognise it and to walk its top.

It reads tags and lengths only and claims nothing about what the messages hold; the
messages themselves are parsed by `opentelemetry-proto`.
Wire format: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

RESOURCE_SPANS_TAG: Final = 0x0A
_SCOPE_SPANS_FIELD: Final = 2
_SPANS_FIELD: Final = 2
_LENGTH_DELIMITED: Final = 2
_VARINT: Final = 0
_FIXED64: Final = 1
_FIXED32: Final = 5
_TRACE_ID_BYTES: Final = 16
_SPAN_ID_BYTES: Final = 8
_LONGEST_VARINT: Final = 10


class BadWire(ValueError):
    """The bytes are not protobuf; `offset` is where that showed."""

    def __init__(self, offset: int, what: str) -> None:
        super().__init__(what)
        self.offset = offset
        self.what = what


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at `at` and the position after it; raise `BadWire`."""
    value = 0
    for count in range(_LONGEST_VARINT):
        if at + count >= len(data):
            raise BadWire(at, "the data end inside a number")
        byte = data[at + count]
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, at + count + 1
    raise BadWire(at, "a number is longer than 10 bytes")


def _skip(data: bytes, at: int, wire_type: int) -> tuple[int, int]:
    """Return start and end of the payload of a field whose tag ends before `at`."""
    if wire_type == _LENGTH_DELIMITED:
        length, start = varint(data, at)
        return start, start + length
    if wire_type == _VARINT:
        return at, varint(data, at)[1]
    if wire_type == _FIXED64:
        return at, at + 8
    if wire_type == _FIXED32:
        return at, at + 4
    raise BadWire(at, f"wire type {wire_type} does not exist")


def fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (field number, wire type, payload start, payload end) inside a message.

    The last payload may end after `data` when only a head is known; raises `BadWire`
    for what cannot be protobuf.
    """
    at = start
    while at < min(end, len(data)):
        tag, after = varint(data, at)
        if tag >> 3 == 0:
            raise BadWire(at, "field number 0 does not exist")
        payload, at = _skip(data, after, tag & 7)
        if at > end:
            raise BadWire(after, "a field is longer than the message that holds it")
        yield tag >> 3, tag & 7, payload, at


def looks_like_otlp_traces(head: bytes) -> bool:
    """Whether a file that begins with `head` is an OTLP trace export in protobuf.

    True when field 1 (ResourceSpans) holds field 2 (ScopeSpans) that holds field 2
    (Span) with ids of 16 and 8 bytes. Bytes that are also valid UTF-8 may be protobuf.
    """
    if not head or head[0] != RESOURCE_SPANS_TAG:
        return False
    try:
        return _holds_a_span(head)
    except BadWire:
        return False


def _messages(
    head: bytes, start: int, end: int, number: int
) -> Iterator[tuple[int, int]]:
    for field, wire_type, payload, stop in fields(head, start, end):
        if field == number and wire_type == _LENGTH_DELIMITED:
            yield payload, stop


def _holds_a_span(head: bytes) -> bool:
    whole = max(len(head), 1 << 62)
    for start, end in _messages(head, 0, whole, 1):
        for inner, inner_end in _messages(head, start, end, _SCOPE_SPANS_FIELD):
            for span, span_end in _messages(head, inner, inner_end, _SPANS_FIELD):
                return _has_ids(head, span, span_end)
    return False


def _has_ids(head: bytes, start: int, end: int) -> bool:
    sizes: dict[int, int] = {}
    for field, wire_type, payload, stop in fields(head, start, end):
        if wire_type == _LENGTH_DELIMITED:
            sizes.setdefault(field, stop - payload)
        if len(sizes) >= 2:
            break
    return sizes.get(1) == _TRACE_ID_BYTES and sizes.get(2) == _SPAN_ID_BYTES


_PIECE = 1024 * 1024


def top_level_messages(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield (byte offset, payload) of each top-level field 1 of a protobuf stream.

    One message is held at a time. Other length-delimited fields are skipped. Raises
    `BadWire` with the offset where the stream stops being such a message.
    """
    offset = 0
    while True:
        tag, length, offset = _header(stream, offset)
        if tag is None:
            return
        payload = _read(stream, length)
        if len(payload) < length:
            raise BadWire(
                offset, f"a message of {length} bytes ends after {len(payload)}"
            )
        if tag == RESOURCE_SPANS_TAG:
            yield offset, payload
        offset += length


def _read(stream: BinaryIO, length: int) -> bytes:
    """Up to `length` bytes, in pieces: a false length must not be allocated at once."""
    parts: list[bytes] = []
    left = length
    while left:
        part = stream.read(min(left, _PIECE))
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _header(stream: BinaryIO, offset: int) -> tuple[int | None, int, int]:
    tag, after_tag = _stream_varint(stream, offset)
    if tag is None:
        return None, 0, offset
    if tag & 7 != _LENGTH_DELIMITED or tag >> 3 == 0:
        raise BadWire(offset, f"tag {tag} does not begin a list of messages")
    length, after = _stream_varint(stream, after_tag)
    if length is None:
        raise BadWire(after_tag, "the data end before a length")
    return tag, length, after


def _stream_varint(stream: BinaryIO, offset: int) -> tuple[int | None, int]:
    value = 0
    for count in range(_LONGEST_VARINT):
        byte = stream.read(1)
        if not byte:
            if count:
                raise BadWire(offset, "the data end inside a number")
            return None, offset
        value |= (byte[0] & 0x7F) << (7 * count)
        if byte[0] < 0x80:
            return value, offset + count + 1
    raise BadWire(offset, "a number is longer than 10 bytes")
