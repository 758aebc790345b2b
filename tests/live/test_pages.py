"""What people see of live traces: what to set, what came, and the day's receipt."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.accounts.permissions import Role
from apps.pipeline.flow import read_again
from apps.pipeline.live import assemble_due
from apps.traces.models import Trace, Upload
from apps.traces.transitions import NotPossibleNow
from tests.factories import NOW, make_member
from tests.live.conftest import billing_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_once")]


@pytest.fixture
def page(client, owner, project):
    client.force_login(owner)

    def get(name: str, *args: object, query: str = "") -> str:
        answer = client.get(reverse(name, args=[project.slug, *args]) + query)
        assert answer.status_code == 200
        return answer.content.decode()

    return get


@pytest.fixture
def stream(send, project) -> Upload:
    send(*billing_run())
    assemble_due(clock=lambda: NOW)
    return Upload.objects.get(project=project)


def test_the_uploads_page_has_the_variables_to_copy(page):
    text = page("uploads")
    assert "OTEL_EXPORTER_OTLP_ENDPOINT=http://testserver\n" in text
    assert "OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20evs_" in text
    assert "No span has come yet." in text


def test_it_says_when_the_last_span_came_and_what_is_running(page, send, settings):
    settings.LIVE_SETTLE_SECONDS = 60
    send(*billing_run())
    text = page("uploads")
    assert "The last span came" in text
    assert "1 trace is still running" in text


def test_it_says_what_was_not_taken(page, send):
    send(body=b"\xff\xff")
    text = page("uploads")
    assert "Not taken on" in text
    assert "not an ExportTraceServiceRequest" in text


def test_a_viewer_sees_what_came_too(client, project, stream):
    client.force_login(make_member(project, Role.VIEWER, "vera"))
    answer = client.get(reverse("uploads", args=[project.slug]))
    assert "The last span came" in answer.content.decode()


def test_the_tokens_lead_to_the_section(page):
    assert reverse("uploads", args=["support-desk"]) + "#live" in page(
        "project-settings"
    )


def test_a_stream_is_in_the_lists_like_any_upload(page, stream):
    assert stream.name in page("uploads")
    assert "1 trace, 8 steps; 1 signal to review." in page("upload", stream.pk)
    assert "run" in page("traces", query=f"?upload={stream.pk}")
    assert "billing" in page("trace", Trace.objects.get().pk)


def test_a_stream_has_no_bytes_and_cannot_be_read_again(
    client, owner, project, stream, page
):
    text = page("upload", stream.pk)
    assert reverse("upload-raw", args=[project.slug, stream.pk]) not in text
    assert reverse("upload-read-again", args=[project.slug, stream.pk]) not in text
    assert "Raw upload" not in page("trace", Trace.objects.get().pk)
    client.force_login(owner)
    raw = client.get(reverse("upload-raw", args=[project.slug, stream.pk]))
    assert raw.status_code == 404
    with pytest.raises(NotPossibleNow, match="came live"):
        read_again(upload=stream, format_override="")
    assert Trace.objects.count() == 1


def test_what_cannot_be_assembled_stands_in_the_receipt(
    page, send, project, monkeypatch
):
    def broken(*_):
        raise ValueError("no")

    monkeypatch.setattr("apps.pipeline.live._read", broken)
    send(*billing_run())
    assemble_due(clock=lambda: NOW)
    stream = Upload.objects.get(project=project)
    assert stream.rejected_count == 1
    assert "broke on this trace (ValueError)" in page("upload", stream.pk)
