"""Uploading through the pages: receipts, the same bytes again, refusals in words."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils.html import escape

from apps.accounts.permissions import Role
from apps.pipeline.reading import read_upload
from apps.traces.models import Upload
from apps.traces.storage import path_of
from apps.web.forms import format_choices
from tests.factories import (
    CHAT,
    NOW,
    chat_bytes,
    make_member,
    make_project,
    upload_bytes,
)


@pytest.fixture
def owner_client(client, owner):
    client.force_login(owner)
    return client


def send(client, project, *files, accept="text/html", **fields):
    return client.post(
        reverse("uploads", args=[project.slug]),
        {
            "file": [SimpleUploadedFile(name, content) for name, content in files],
            **fields,
        },
        headers={"Accept": accept},
    )


def test_a_file_is_kept_byte_for_byte_and_leads_to_its_receipt(owner_client, project):
    content = chat_bytes(CHAT)
    answer = send(owner_client, project, ("chat.jsonl", content))
    upload = Upload.objects.get()
    assert answer.status_code == 302
    assert answer["Location"] == reverse("upload", args=[project.slug, upload.pk])
    assert path_of(upload.sha256).read_bytes() == content


def test_the_drop_zone_names_what_is_taken_and_sorts_the_formats(owner_client, project):
    page = owner_client.get(reverse("uploads", args=[project.slug])).content.decode()
    for taken in ("CSV", "Parquet", ".eval"):
        assert taken in page
    first, *labels = [label for _, label in format_choices()]
    assert first == "Recognise from content"
    assert labels == sorted(labels, key=str.casefold)
    assert [page.index(f">{escape(one)}</option>") for one in labels] == sorted(
        page.index(f">{escape(one)}</option>") for one in labels
    )


def test_the_same_bytes_again_lead_to_the_same_upload(owner_client, project):
    content = chat_bytes(CHAT)
    first = send(owner_client, project, ("a.jsonl", content), accept="application/json")
    again = send(owner_client, project, ("b.jsonl", content), accept="application/json")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]
    assert again.json()["already_here"] is True
    assert Upload.objects.count() == 1


def test_the_same_bytes_in_two_projects_are_two_uploads(project, owner):
    other = make_project(owner=owner)
    content = chat_bytes(CHAT)
    assert upload_bytes(project, content).pk != upload_bytes(other, content).pk


def test_several_files_at_once_lead_to_the_list(owner_client, project):
    answer = send(
        owner_client,
        project,
        ("a.jsonl", chat_bytes(CHAT)),
        ("b.jsonl", chat_bytes(CHAT, CHAT)),
    )
    assert answer["Location"] == reverse("uploads", args=[project.slug])
    assert Upload.objects.count() == 2


@pytest.mark.parametrize(
    ("files", "fields", "status", "sentence"),
    [
        pytest.param([], {}, 400, "Choose at least one file", id="no file"),
        pytest.param([("e.json", b"")], {}, 400, "is empty", id="no bytes"),
        pytest.param(
            [("a.json", b"[]")],
            {"format": "xml"},
            400,
            "not a format we know",
            id="fmt",
        ),
    ],
)
def test_what_cannot_be_taken_is_refused_with_a_sentence(
    owner_client, project, files, fields, status, sentence
):
    answer = send(owner_client, project, *files, accept="application/json", **fields)
    assert answer.status_code == status
    assert sentence in answer.json()["sentence"]
    assert not Upload.objects.exists()


def test_a_file_over_the_limit_is_refused_unread(owner_client, project, settings):
    settings.MAX_UPLOAD_BYTES = 1_000
    answer = owner_client.post(
        reverse("uploads", args=[project.slug]),
        b"x",
        content_type="multipart/form-data; boundary=b",
        headers={"Accept": "application/json", "Content-Length": str(2 * 10**9)},
    )
    assert answer.status_code == 413
    assert "larger than 1 kB" in answer.json()["sentence"]


def test_a_file_over_the_limit_leaves_nothing_behind(
    owner_client, project, settings, uploads_dir
):
    settings.MAX_UPLOAD_BYTES = 1_000
    send(owner_client, project, ("big.json", b"x" * 5_000))
    assert not Upload.objects.exists()
    assert [p for p in uploads_dir.rglob("*") if p.is_file()] == []


def test_a_reviewer_may_not_upload_and_is_told_who_may(client, project, reviewer):
    client.force_login(reviewer)
    answer = send(client, project, ("a.json", b"[]"), accept="application/json")
    assert answer.status_code == 403
    assert "Only a maintainer" in answer.json()["sentence"]


def test_the_receipt_shows_counts_rejections_and_what_could_not_be_checked(
    owner_client, project
):
    content = chat_bytes(CHAT, CHAT) + b'{"messages": [{"role": "us\n'
    upload = upload_bytes(project, content)
    page = owner_client.get(reverse("upload", args=[project.slug, upload.pk]))
    text = page.content.decode()
    assert (upload.trace_count, upload.rejected_count) == (2, 1)
    assert "line 3" in text
    assert "0 of 2" in text


def test_raw_bytes_are_an_attachment_that_no_browser_interprets(owner_client, project):
    upload = upload_bytes(project, chat_bytes(CHAT), name='x".html')
    answer = owner_client.get(reverse("upload-raw", args=[project.slug, upload.pk]))
    assert b"".join(answer.streaming_content) == chat_bytes(CHAT)
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_a_failed_upload_can_be_read_again_as_another_format(owner_client, project):
    upload = upload_bytes(project, chat_bytes(CHAT), override="tau-bench")
    assert upload.state == "failed"
    url = reverse("upload-read-again", args=[project.slug, upload.pk])
    assert owner_client.post(url, {"format": "openai-chat"}).status_code == 302
    read_upload(upload_id=upload.pk, clock=lambda: NOW)
    upload.refresh_from_db()
    assert (upload.state, upload.trace_count) == ("done", 1)


def test_progress_is_json_for_the_drop_zone(client, project):
    client.force_login(make_member(project, Role.VIEWER))
    upload = upload_bytes(project, chat_bytes(CHAT))
    url = reverse("upload-progress", args=[project.slug, upload.pk])
    answer = json.loads(client.get(url).content)
    assert answer["state"] == "done"
    assert answer["traces"] == 1
