"""The door for live traces: OTLP/HTTP at `/v1/traces`, in protobuf and in JSON.

An OpenTelemetry exporter drops what is answered with 400 or 500 and sends again what is
answered with 429 or 503. So a request is refused for good only for what it is; whatever
is wrong with us is a 503. 200 is said once the spans are durable.
Protocol: https://opentelemetry.io/docs/specs/otlp/#otlphttp
"""

from __future__ import annotations

import json
import zlib
from typing import Any, Final, Protocol

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from apps.accounts.models import ApiToken, Project
from apps.accounts.operations import note_token_use
from apps.accounts.permissions import Scope
from apps.accounts.queries import live_token
from apps.live.arrival import (
    NO_ID,
    NO_ID_SENTENCE,
    Arrival,
    Refused,
    TooMuchApart,
    spans_of,
    varint,
)
from apps.live.encoding import JSON, PROTOBUF, BadRequest, decode
from apps.live.operations import note_refusals, receive_spans
from apps.live.queries import pressure
from apps.pipeline.privacy import Privacy, reduced_export
from apps.traces.storage import CannotKeep, size_in_words

CHUNK: Final = 64 * 1024
# https://grpc.io/docs/guides/status-codes/
_GRPC_CODES: Final = {
    400: 3, 401: 16, 403: 7, 405: 12, 411: 3, 413: 11, 415: 3, 429: 8, 503: 14,
}  # fmt: skip
_DATABASE_AWAY_PAUSE: Final = 5
_NO_KEY_PAUSE: Final = 60
_AUTODETECT: Final = 47
# `unused_data` copies what is left, so members are taken from small pieces.
_PACKED_PIECE: Final = 16 * 1024
# An empty list and object in JSON; an empty span and an empty scope in protobuf.
_EMPTY_VALUES: Final = (b"[]", b"{}", b"\x12\x00")
_MOST_EMPTY: Final = 200_000


class _Refusal(Exception):
    """A request that is not taken: the status, a sentence, headers."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = {
            name.replace("_", "-"): value for name, value in headers.items()
        }


@csrf_exempt
@login_not_required
def traces(request: HttpRequest) -> HttpResponse:
    """Take one export request; the answer is in the encoding of the request."""
    encoding = _encoding(request)
    try:
        _check_form(request, encoding)
        refused = _take(request, encoding)
    except _Refusal as refusal:
        return _refusal(refusal, encoding)
    except (OperationalError, InterfaceError):
        sentence = "The database does not answer just now; send this again."
        away = _Refusal(503, sentence, Retry_After=str(_DATABASE_AWAY_PAUSE))
        return _refusal(away, encoding)
    return _success(refused, encoding)


def _encoding(request: HttpRequest) -> str:
    return (request.content_type or "").lower()


def _check_form(request: HttpRequest, encoding: str) -> None:
    if request.method != "POST":
        raise _Refusal(405, "Send spans with POST.", Allow="POST")
    if encoding not in {PROTOBUF, JSON}:
        raise _Refusal(
            415,
            f"Spans are taken as {PROTOBUF} or {JSON}, not as “{encoding[:80]}”.",
        )


def _take(request: HttpRequest, encoding: str) -> Refused:
    """Keep the spans of a request; returns what was not taken of it."""
    now = timezone.now()
    project = _project(request)
    waiting = pressure(project_id=project.pk, now=now)
    if waiting is not None:
        raise _Refusal(
            waiting.status, waiting.sentence, Retry_After=str(waiting.seconds)
        )
    try:
        export = decode(_body(request), encoding)
    except BadRequest as error:
        refused = Refused()
        refused.add("bad_request", Privacy.of(project).keep_sentence(str(error)))
        note_refusals(project_id=project.pk, refused=refused, now=now)
        raise _Refusal(400, str(error)) from error
    # A body may come slowly: what is kept is what the project wants by now.
    project.refresh_from_db(fields=["structure_only", "raw_bytes"])
    # What a project does not keep is dropped here, before anything is written.
    arrival = _arrival(reduced_export(project, export))
    try:
        refused = receive_spans(project=project, spans=arrival.spans, now=now)
    except CannotKeep as error:
        raise _Refusal(503, str(error), Retry_After=str(_NO_KEY_PAUSE)) from error
    refused.add(NO_ID, NO_ID_SENTENCE, arrival.without_id)
    note_refusals(project_id=project.pk, refused=refused, now=now)
    return refused


def _arrival(export: ExportTraceServiceRequest) -> Arrival:
    most = 2 * settings.LIVE_MAX_REQUEST_BYTES
    try:
        return spans_of(export, most_bytes=most)
    except TooMuchApart as error:
        raise _Refusal(
            413,
            "Each span is kept with its resource and scope, which makes more than "
            f"{size_in_words(most)} of this request. Send smaller batches "
            "(OTEL_BSP_MAX_EXPORT_BATCH_SIZE), or less in the resource.",
        ) from error


def _project(request: HttpRequest) -> Project:
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    token: ApiToken | None = None
    if scheme.lower() == "bearer" and secret.strip():
        token = live_token(secret.strip())
    if token is None:
        raise _Refusal(
            401,
            "Send an API token of a project that is not revoked: "
            "“Authorization: Bearer evs_…”.",
            WWW_Authenticate="Bearer",
        )
    if Scope.UPLOAD.value not in token.scopes:
        raise _Refusal(403, "This token may not send traces: it lacks the scope.")
    note_token_use(token=token, now=timezone.now())
    return token.project


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _body(request: HttpRequest) -> bytes:
    """The unpacked body, never more than the limit of it held in memory."""
    limit: int = settings.LIVE_MAX_REQUEST_BYTES
    packing = request.headers.get("Content-Encoding", "identity").strip().lower()
    if packing not in {"identity", "", "gzip", "deflate"}:
        raise _Refusal(
            415, f"Bodies are taken plain or packed with gzip, not “{packing[:40]}”."
        )
    stream, declared = _stream(request)
    if declared > limit:
        raise _too_large(limit)
    raw = _read(stream, limit)
    if len(raw) < declared:
        raise BadRequest(
            f"The body ends after {len(raw)} of {declared} bytes: it was cut off."
        )
    body = raw if packing in {"identity", ""} else _unpacked(raw, limit)
    _refuse_emptiness(body)
    return body


def _refuse_emptiness(body: bytes) -> None:
    """Refuse a body of empty values: kilobytes of it, packed, take minutes to decode."""
    for empty in _EMPTY_VALUES:
        if body.count(empty) > _MOST_EMPTY:
            raise _Refusal(
                413,
                f"The request holds more than {_MOST_EMPTY:,} empty values, which spans "
                "do not.",
            )


def _stream(request: HttpRequest) -> tuple[_Stream, int]:
    """The stream of the body and its declared size, 0 when it comes in chunks."""
    if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
        if not request.META.get("wsgi.input_terminated"):
            raise _Refusal(411, "Send the length of the body.")
        # Django reads by the declared length and would see an empty body.
        return request.META["wsgi.input"], 0
    declared = request.META.get("CONTENT_LENGTH") or "0"
    is_whole = declared.isascii() and declared.isdigit() and len(declared) <= 18
    return request, int(declared) if is_whole else 0


def _too_large(limit: int) -> _Refusal:
    return _Refusal(
        413,
        f"One request may hold {size_in_words(limit)} when unpacked. Send smaller "
        "batches (OTEL_BSP_MAX_EXPORT_BATCH_SIZE), or raise "
        "EVALSITE_LIVE_MAX_REQUEST_BYTES.",
    )


def _read(stream: _Stream, limit: int) -> bytes:
    body = bytearray()
    while chunk := _piece(stream):
        body += chunk
        if len(body) > limit:
            raise _too_large(limit)
    return bytes(body)


def _piece(stream: _Stream) -> bytes:
    try:
        return stream.read(CHUNK)
    except Exception as error:
        raise BadRequest(
            "The body breaks in the middle: it was cut off, or its chunks are damaged."
        ) from error


def _unpacked(raw: bytes, limit: int) -> bytes:
    """Unpack gzip (any number of members) or zlib data; refuse what grows too large."""
    body = bytearray()
    member = zlib.decompressobj(wbits=_AUTODETECT)
    try:
        for start in range(0, len(raw), _PACKED_PIECE):
            data = raw[start : start + _PACKED_PIECE]
            while data:
                body += member.decompress(data, limit + 1 - len(body))
                if len(body) > limit:
                    raise _too_large(limit)
                data = member.unconsumed_tail or member.unused_data
                if member.eof and data:
                    member = zlib.decompressobj(wbits=_AUTODETECT)
    except zlib.error as error:
        raise BadRequest(f"The body cannot be unpacked: {error}.") from error
    if not member.eof:
        raise BadRequest("The packed body is cut off.")
    return bytes(body)


def _success(refused: Refused, encoding: str) -> HttpResponse:
    answer = ExportTraceServiceResponse()
    document: dict[str, Any] = {}
    if refused.total:
        words = refused.sentence
        answer.partial_success.CopyFrom(
            ExportTracePartialSuccess(rejected_spans=refused.total, error_message=words)
        )
        document["partialSuccess"] = {
            "rejectedSpans": str(refused.total),
            "errorMessage": words,
        }
    body = (
        json.dumps(document).encode()
        if encoding == JSON
        else answer.SerializeToString()
    )
    return HttpResponse(body, content_type=JSON if encoding == JSON else PROTOBUF)


def _refusal(refusal: _Refusal, encoding: str) -> HttpResponse:
    """The answer to what was not taken: a google.rpc.Status in words."""
    code = _GRPC_CODES[refusal.status]
    if encoding == PROTOBUF:
        body = _status_message(code, refusal.sentence)
    else:
        body = json.dumps({"code": code, "message": refusal.sentence}).encode()
    response = HttpResponse(
        body,
        status=refusal.status,
        content_type=PROTOBUF if encoding == PROTOBUF else JSON,
    )
    for name, value in refusal.headers.items():
        response[name] = value
    return response


def _status_message(code: int, sentence: str) -> bytes:
    """A google.rpc.Status in protobuf: field 1 the code, field 2 the message.

    https://github.com/googleapis/googleapis/blob/master/google/rpc/status.proto
    """
    text = sentence.encode()
    return b"\x08" + varint(code) + b"\x12" + varint(len(text)) + text
