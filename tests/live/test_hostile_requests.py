"""Requests that are small on the wire and large, slow or broken behind the door."""

from __future__ import annotations

import gzip
import io
import time

import pytest
from gunicorn.http.errors import InvalidChunkSize, NoMoreData
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from apps.live.models import LiveSpan, LiveTrace
from tests.formats.otlp_files import as_protobuf
from tests.live.conftest import billing_run
from tests.live.test_door import sentence_of

pytestmark = pytest.mark.django_db


class BreakingBody(io.BytesIO):
    """A body in chunks that breaks where its bytes end, as the web server says it."""

    def __init__(self, content: bytes, error: Exception) -> None:
        super().__init__(content)
        self._error = error

    def read(self, size: int | None = -1, /) -> bytes:
        if chunk := super().read(size):
            return chunk
        raise self._error


@pytest.mark.parametrize("error", [NoMoreData(), InvalidChunkSize(b"zz")])
def test_chunks_that_break_in_the_middle_are_400_in_words(send, error):
    answer = send(
        body=b"",
        headers={"Transfer-Encoding": "chunked"},
        **{
            "wsgi.input": BreakingBody(as_protobuf(*billing_run())[:40], error),
            "wsgi.input_terminated": True,
        },
    )
    assert answer.status_code == 400
    assert "breaks in the middle" in sentence_of(answer)
    assert not LiveTrace.objects.exists()


def test_a_body_of_very_many_packed_members_is_unpacked_in_linear_time(send):
    body = gzip.compress(b"") * 300_000 + gzip.compress(as_protobuf(*billing_run()))
    begun = time.monotonic()
    assert send(body=body, headers={"Content-Encoding": "gzip"}).status_code == 200
    assert time.monotonic() - begun < 10
    assert LiveSpan.objects.count() == 8


def test_a_large_resource_is_not_multiplied_by_its_spans_without_bound(send, settings):
    settings.LIVE_MAX_REQUEST_BYTES = 20_000
    request = ExportTraceServiceRequest.FromString(as_protobuf(*billing_run()))
    [group] = request.resource_spans
    value = AnyValue(string_value="x" * 10_000)
    group.resource.attributes.append(KeyValue(key="about", value=value))
    answer = send(body=request.SerializeToString())
    assert answer.status_code == 413
    assert "more than 40 kB" in sentence_of(answer)
    assert not LiveSpan.objects.exists()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"resourceSpans":[' + b"[]," * 300_000 + b"[]]}", "application/json"),
        (b"\x12\x00" * 300_000, "application/x-protobuf"),
    ],
)
def test_kilobytes_of_empty_values_are_refused_before_they_are_decoded(
    send, body, kind
):
    packed = gzip.compress(body)
    assert len(packed) < 5_000
    answer = send(body=packed, headers={"Content-Encoding": "gzip"}, content_type=kind)
    assert answer.status_code == 413
    assert "empty values" in sentence_of(answer)
