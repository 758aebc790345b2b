"""The door for live traces, request by request: taken, or refused in its own words."""

from __future__ import annotations

import gzip
import json
import zlib
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)

from apps.accounts.models import ApiToken
from apps.accounts.operations import create_token
from apps.accounts.permissions import Scope
from apps.api import otlp
from apps.live.models import LiveSpan, LiveTrace, Refusal
from apps.pipeline.live import assemble_due
from apps.traces.models import Trace
from tests.factories import NOW, make_project
from tests.formats.otlp_files import as_json, as_protobuf, call, document, span
from tests.live.conftest import PROTOBUF, billing_run

pytestmark = pytest.mark.django_db

JSON = "application/json"


def sentence_of(answer) -> str:
    """The message of a google.rpc.Status in the encoding of the answer."""
    if answer["Content-Type"] == PROTOBUF:
        status = Status.FromString(answer.content)
        assert status.code > 0
        return status.message
    body = answer.json()
    assert body["code"] > 0
    return body["message"]


class TestWhatIsTaken:
    def test_protobuf_is_answered_in_protobuf(self, send):
        answer = send(*billing_run())
        assert (answer.status_code, answer["Content-Type"]) == (200, PROTOBUF)
        assert answer.content == b""
        assert not ExportTraceServiceResponse.FromString(answer.content).HasField(
            "partial_success"
        )

    def test_json_is_answered_in_json(self, send):
        answer = send(body=as_json(*billing_run()), content_type=JSON)
        assert (answer.status_code, answer["Content-Type"]) == (200, JSON)
        assert answer.json() == {}
        assert LiveSpan.objects.count() == 8

    def test_a_charset_beside_the_type_does_no_harm(self, send):
        body = as_json(*billing_run())
        answer = send(body=body, content_type="application/json; charset=utf-8")
        assert answer.status_code == 200

    @pytest.mark.parametrize(
        ("packing", "pack"),
        [
            ("gzip", gzip.compress),
            ("GZIP", lambda body: gzip.compress(body[:9]) + gzip.compress(body[9:])),
            ("deflate", zlib.compress),
        ],
    )
    def test_packed_bodies_are_unpacked(self, send, packing, pack):
        body = pack(as_protobuf(*billing_run()))
        assert send(body=body, headers={"Content-Encoding": packing}).status_code == 200
        assert LiveSpan.objects.count() == 8

    def test_a_request_without_spans_is_fine(self, send):
        assert send(body=b"").status_code == 200
        assert send(body=b"{}", content_type=JSON).status_code == 200
        assert LiveTrace.objects.count() == 0

    @pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
    def test_spans_without_ids_are_counted_in_the_answer(self, send, content_type):
        nameless = {**call(4, 1), "spanId": "", "traceId": "00" * 16}
        spans = [*billing_run(), nameless]
        body = as_json(*spans) if content_type == JSON else as_protobuf(*spans)
        answer = send(body=body, content_type=content_type)
        assert answer.status_code == 200
        if content_type == JSON:
            partial = answer.json()["partialSuccess"]
            count, words = int(partial["rejectedSpans"]), partial["errorMessage"]
        else:
            said = ExportTraceServiceResponse.FromString(answer.content)
            partial = said.partial_success
            count, words = partial.rejected_spans, partial.error_message
        assert count == 1
        assert "without a trace id" in words
        assert LiveSpan.objects.count() == 8
        assert Refusal.objects.get().count == 1

    def test_snake_case_base64_and_numbers_are_understood(self, send, settings):
        settings.LIVE_QUIET_SECONDS = 0
        settings.LIVE_SETTLE_SECONDS = 0
        spans = {
            "trace_id": "ASNFZ4mrze8BI0VniavN7w==",
            "span_id": "AAAAAAAAAAM=",
            "name": "chat",
            "start_time_unix_nano": 1_796_008_524_000_000_000,
            "end_time_unix_nano": 1_796_008_525_000_000_000,
            "status": {"code": "STATUS_CODE_ERROR", "message": "no\ud800pe"},
            "attributes": [
                {"key": "deep", "value": _deep(90)},
                {"key": "big", "value": {"intValue": 2**70}},
                {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
                {"key": "gen_ai.usage.output_tokens", "value": {"intValue": "7"}},
            ],
        }
        body = {"resource_spans": [{"scope_spans": [{"spans": [spans]}]}]}
        answer = send(body=json.dumps(body).encode(), content_type=JSON)
        assert answer.status_code == 200
        assert assemble_due(clock=lambda: NOW) == 1
        trace = Trace.objects.get()
        assert trace.native_id == "0123456789abcdef0123456789abcdef"
        assert (trace.model_call_count, trace.usage_known) == (1, 1)
        assert trace.error_count == 1


def _deep(levels: int) -> dict:
    value: dict = {"stringValue": "bottom"}
    for _ in range(levels // 3):
        value = {"arrayValue": {"values": [value]}}
    return value


class TestWhatIsRefused:
    @pytest.mark.parametrize("header", ["", "Bearer ", "Bearer evs_wrong", "Basic abc"])
    @pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
    def test_without_a_live_token_it_is_401(self, send, header, content_type):
        answer = send(
            *billing_run(), headers={"Authorization": header}, content_type=content_type
        )
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"] == "Bearer"
        assert "Bearer" in sentence_of(answer)
        assert LiveTrace.objects.count() == 0

    def test_a_session_is_no_token(self, owner):
        client = Client()
        client.force_login(owner)
        answer = client.post(
            "/v1/traces", as_protobuf(*billing_run()), content_type=PROTOBUF
        )
        assert answer.status_code == 401

    def test_a_revoked_token_is_dead_at_once(self, send, project):
        ApiToken.objects.update(revoked_at=timezone.now())
        assert send(*billing_run()).status_code == 401

    def test_a_token_that_may_only_read_sends_nothing(self, send, project, owner):
        _, secret = create_token(
            project=project, name="r", scopes=[Scope.READ], user=owner, now=NOW
        )
        answer = send(*billing_run(), headers={"Authorization": f"Bearer {secret}"})
        assert answer.status_code == 403
        assert "scope" in sentence_of(answer)

    def test_spans_go_to_the_project_of_the_token_only(self, send, project):
        make_project(name="Elsewhere")
        send(*billing_run())
        assert LiveTrace.objects.get().project == project

    @pytest.mark.parametrize("method", ["get", "put", "delete", "head", "options"])
    def test_only_post_is_taken(self, token, method):
        answer = getattr(Client(), method)("/v1/traces")
        assert (answer.status_code, answer["Allow"]) == (405, "POST")

    @pytest.mark.parametrize(
        "content_type",
        ["text/plain", "application/protobuf", "multipart/form-data", ""],
    )
    def test_another_type_is_415_in_words(self, send, content_type):
        answer = send(body=b"x", content_type=content_type)
        assert answer.status_code == 415
        assert PROTOBUF in sentence_of(answer)

    def test_another_packing_is_415_in_words(self, send):
        answer = send(*billing_run(), headers={"Content-Encoding": "br"})
        assert answer.status_code == 415
        assert "gzip" in sentence_of(answer)

    @pytest.mark.parametrize(
        ("body", "content_type", "words"),
        [
            (b"\xff\xff\xff", PROTOBUF, "not an ExportTraceServiceRequest"),
            (as_protobuf(*billing_run())[:-3], PROTOBUF, "not an Export"),
            (b"{", JSON, "not JSON"),
            (b"", JSON, "empty"),
            (b"[]", JSON, "no resourceSpans"),
            (b"{} {}", JSON, "One JSON document"),
            (b'{"resourceSpans": 3}', JSON, "no resourceSpans"),
            (b'{"resourceMetrics": []}', JSON, "Metrics and logs"),
            (b"\x00\x01", JSON, "not JSON"),
            (b"[" * 100_000, JSON, "not JSON"),
        ],
    )
    def test_a_bad_body_is_400_in_words_and_shown_to_the_project(
        self, send, body, content_type, words
    ):
        answer = send(body=body, content_type=content_type)
        assert answer.status_code == 400
        assert words in sentence_of(answer)
        assert words in Refusal.objects.get().sentence
        assert LiveTrace.objects.count() == 0

    @pytest.mark.parametrize(
        "value", [None, 3, "x", [], {}, [None], [[]], [3], [{"spans": 3}], True]
    )
    @pytest.mark.parametrize(
        "key", ["resource", "scopeSpans", "spans", "attributes", "traceId", "events",
                "startTimeUnixNano", "status", "name", "kind", "parentSpanId"]
    )  # fmt: skip
    def test_any_value_in_json_is_answered(self, send, at_once, key, value):
        one = {**call(3), "kind": 3, "events": []}
        body = document(one)
        group = body["resourceSpans"][0]
        holder = {
            "resource": group,
            "scopeSpans": group,
            "spans": group["scopeSpans"][0],
        }.get(key, one)
        holder[key] = value
        answer = send(body=json.dumps(body).encode(), content_type=JSON)
        assert answer.status_code == 200
        assemble_due(clock=lambda: NOW)
        assert not LiveTrace.objects.exclude(failure="").exists()

    def test_a_body_that_is_too_large_is_413(self, send, settings):
        settings.LIVE_MAX_REQUEST_BYTES = len(as_protobuf(*billing_run())) - 1
        answer = send(*billing_run())
        assert answer.status_code == 413
        assert "OTEL_BSP_MAX_EXPORT_BATCH_SIZE" in sentence_of(answer)
        settings.LIVE_MAX_REQUEST_BYTES += 1
        assert send(*billing_run()).status_code == 200

    def test_a_bomb_is_413_and_never_unpacked(self, send, settings):
        settings.LIVE_MAX_REQUEST_BYTES = 2_000_000
        bomb = gzip.compress(bytes(200_000_000), compresslevel=1)
        answer = send(body=bomb, headers={"Content-Encoding": "gzip"})
        assert answer.status_code == 413

    @pytest.mark.parametrize(
        "body", [b"plain", gzip.compress(b"x" * 99, mtime=0)[:-9], b""]
    )
    def test_damaged_packing_is_400(self, send, body):
        answer = send(body=body, headers={"Content-Encoding": "gzip"})
        assert answer.status_code == 400
        assert "packed" in sentence_of(answer)

    def test_a_large_body_is_not_stopped_at_the_size_of_a_form(self, send, settings):
        settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
        assert send(*billing_run()).status_code == 200

    def test_when_the_database_is_away_the_sender_is_asked_to_wait(
        self, send, monkeypatch
    ):
        def away(**_):
            raise OperationalError("gone")

        monkeypatch.setattr(otlp, "receive_spans", away)
        answer = send(*billing_run())
        assert (answer.status_code, answer["Retry-After"]) == (503, "5")
        assert "send this again" in sentence_of(answer)


class TestBackPressure:
    def test_a_project_with_too_much_waiting_is_told_to_wait(self, send, settings):
        settings.LIVE_MAX_PROJECT_WAITING_BYTES = 100
        assert send(*billing_run()).status_code == 200
        answer = send(*billing_run())
        assert answer.status_code == 429
        assert int(answer["Retry-After"]) > 0
        assert "Nothing that was taken is lost" in sentence_of(answer)

    def test_another_project_goes_on_until_the_site_is_full(
        self, send, settings, owner
    ):
        settings.LIVE_MAX_PROJECT_WAITING_BYTES = 100
        send(*billing_run())
        other = make_project(owner=owner, name="Elsewhere")
        _, secret = create_token(
            project=other, name="e", scopes=[Scope.UPLOAD], user=owner, now=NOW
        )
        theirs = {"Authorization": f"Bearer {secret}"}
        assert send(span(1), headers=theirs).status_code == 200
        settings.LIVE_MAX_WAITING_BYTES = 100
        answer = send(span(1), headers=theirs)
        assert answer.status_code == 503
        assert int(answer["Retry-After"]) > 0

    def test_a_worker_that_is_far_behind_stops_all_senders(self, send, settings):
        send(*billing_run())
        long_ago = timezone.now() - timedelta(
            seconds=settings.LIVE_MAX_DELAY_SECONDS + 9
        )
        LiveTrace.objects.update(due_at=long_ago)
        assert send(*billing_run()).status_code == 503

    def test_it_is_over_once_the_trace_is_stored(self, send, settings, at_once):
        settings.LIVE_MAX_PROJECT_WAITING_BYTES = 100
        send(*billing_run())
        assert send(*billing_run()).status_code == 429
        assemble_due(clock=lambda: NOW)
        assert send(*billing_run()).status_code == 200
