"""An OTLP request taken apart into spans that can be kept one by one.

Each span becomes the bytes of a ResourceSpans message of its own, so the kept spans
of a trace, one after another, are a file that the reader of OTLP files reads.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from apps.engine.reading.spans import time_of

LONGEST_ID: Final = 32
NO_ID: Final = "no_id"
NO_ID_SENTENCE: Final = (
    "Spans without a trace id or a span id cannot be told apart and were not taken."
)
_MOST: Final = 2**24 - 1


class ArrivedSpan(msgspec.Struct, frozen=True):
    """One span of a request: its ids in hex, and itself as a ResourceSpans message."""

    trace_id: str
    span_id: str
    data: bytes
    fullness: int
    is_ended_root: bool


class Arrival(msgspec.Struct):
    """The spans of a request, and how many had no usable ids."""

    spans: list[ArrivedSpan] = []
    without_id: int = 0


class TooMuchApart(Exception):
    """The spans of a request, each with its resource and scope, are too many bytes."""


def spans_of(
    request: ExportTraceServiceRequest, *, most_bytes: float = math.inf
) -> Arrival:
    """Take a request apart; spans without usable ids are counted, not kept.

    Raises `TooMuchApart` when the spans would be more than `most_bytes`.
    """
    arrival = Arrival()
    size = 0
    for group in request.resource_spans:
        for scope_spans in group.scope_spans:
            for span in scope_spans.spans:
                if not (_is_id(span.trace_id) and _is_id(span.span_id)):
                    arrival.without_id += 1
                    continue
                arrived = _arrived(span, scope_spans, group)
                size += len(arrived.data)
                if size > most_bytes:
                    raise TooMuchApart
                arrival.spans.append(arrived)
    return arrival


def _is_id(raw: bytes) -> bool:
    return any(raw) and len(raw) <= LONGEST_ID


def _arrived(span: Span, scope_spans: ScopeSpans, group: ResourceSpans) -> ArrivedSpan:
    alone = ResourceSpans(
        resource=group.resource,
        schema_url=group.schema_url,
        scope_spans=[
            ScopeSpans(
                scope=scope_spans.scope,
                schema_url=scope_spans.schema_url,
                spans=[span],
            )
        ],
    )
    has_ended = time_of(span.end_time_unix_nano)[0] is not None
    return ArrivedSpan(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        data=alone.SerializeToString(),
        fullness=_fullness(span, has_ended=has_ended),
        is_ended_root=has_ended and not any(span.parent_span_id),
    )


def _fullness(span: Span, *, has_ended: bool) -> int:
    """Order copies like `apps.engine.reading.spans.Span.content`, as one number."""
    attributes = len({pair.key for pair in span.attributes})
    rank = int(has_ended)
    for part in (min(attributes, _MOST), min(len(span.events), _MOST)):
        rank = (rank << 24) | part
    return (rank << 2) | (int(span.status.code) & 3)


def framed(messages: Iterator[bytes]) -> Iterator[bytes]:
    """Yield ResourceSpans messages as the pieces of one OTLP file in protobuf."""
    for data in messages:
        yield b"\x0a" + varint(len(data))
        yield data


def varint(number: int) -> bytes:
    """Return a number as protobuf writes lengths and small fields."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


class Refused(msgspec.Struct):
    """How many spans of a request were not taken, by reason, with a sentence each."""

    counts: Counter[str] = msgspec.field(default_factory=Counter)
    sentences: dict[str, str] = {}

    def add(self, code: str, sentence: str, count: int = 1) -> None:
        """Count `count` spans that were refused for one reason."""
        if count:
            self.counts[code] += count
            self.sentences.setdefault(code, sentence)

    @property
    def total(self) -> int:
        """All spans that were not taken."""
        return self.counts.total()

    @property
    def sentence(self) -> str:
        """The reasons in words, one sentence after another."""
        return " ".join(
            f"{sentence} ({self.counts[code]})"
            for code, sentence in self.sentences.items()
        )
