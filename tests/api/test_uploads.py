"""Uploading through the JSON door, following what was sent, and every refusal."""

from __future__ import annotations

import hashlib

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from apps.accounts.permissions import Scope
from apps.pipeline.reading import read_upload
from apps.traces.models import Upload
from apps.traces.storage import path_of
from tests.factories import (
    CHAT,
    NOW,
    chat_bytes,
    decay_trace,
    make_project,
    upload_bytes,
    upload_traces,
)

URL = "/api/v1/uploads"
CONTENT = chat_bytes(CHAT)


def form(*files: tuple[str, bytes], **fields: str) -> dict:
    return {"file": [SimpleUploadedFile(name, data) for name, data in files], **fields}


def raw(door, content: bytes, query: str = "", **headers: str):
    return door.post(
        URL + query, content, content_type="application/octet-stream", headers=headers
    )


def assert_refused(answer, status: int, *words: str) -> None:
    assert answer.status_code == status, answer.content
    document = answer.json()
    assert document["sentence"] == document["detail"]
    for word in words:
        assert word in document["sentence"]
    assert document["sentence"].endswith(".")


class TestSending:
    """A file as a form's field or as the body; the same bytes are the same upload."""

    def test_a_new_file_is_created_with_its_address_and_state(self, door):
        answer = door.post(URL, form(("chat.jsonl", CONTENT)))
        upload = Upload.objects.get()
        assert answer.status_code == 201
        document = answer.json()
        assert (document["id"], document["state"]) == (upload.pk, "received")
        assert document["url"] == answer["Location"]
        assert document["url"].endswith(f"/api/v1/uploads/{upload.pk}")
        assert document["sha256"] == hashlib.sha256(CONTENT).hexdigest()
        assert path_of(upload.sha256).read_bytes() == CONTENT

    def test_the_same_bytes_again_are_the_same_upload(self, door):
        first = door.post(URL, form(("a.jsonl", CONTENT)))
        again = raw(door, CONTENT)
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json()["id"] == again.json()["id"]
        assert Upload.objects.count() == 1

    @pytest.mark.parametrize(
        ("query", "headers", "name"),
        [
            ("", {"X-File-Name": "runs/a.jsonl"}, "runs/a.jsonl"),
            ("", {"X-File-Name": "%E5%AE%9F.jsonl"}, "実.jsonl"),
            ("?name=b%20c.jsonl", {}, "b c.jsonl"),
            ("?name=a%00b", {}, "ab"),
            ("?name=" + "x" * 300, {}, "x" * 255),
            ("", {}, "unnamed"),
        ],
    )
    def test_a_body_is_a_file_with_the_name_that_was_said(
        self, door, query, headers, name
    ):
        answer = raw(door, CONTENT, query, **headers)
        assert answer.status_code == 201
        assert answer.json()["name"] == name
        assert Upload.objects.get().name == name

    @pytest.mark.parametrize(
        "content_type",
        ["application/x-www-form-urlencoded", "application/json", "text/plain"],
    )
    def test_a_body_of_any_type_is_kept_as_it_came(self, door, content_type):
        answer = door.generic("POST", URL, CONTENT, content_type)
        assert answer.status_code == 201
        assert path_of(Upload.objects.get().sha256).read_bytes() == CONTENT

    def test_several_files_are_several_uploads_of_one_request(self, door):
        files = [("a.jsonl", CONTENT), ("b.jsonl", chat_bytes(CHAT, CHAT))]
        answer = door.post(URL, form(*files))
        assert answer.status_code == 201
        assert [one["name"] for one in answer.json()["uploads"]] == [
            "a.jsonl",
            "b.jsonl",
        ]

    def test_a_format_can_be_named(self, door):
        assert raw(door, CONTENT, "?format=tau-bench").status_code == 201
        assert Upload.objects.get().format_override == "tau-bench"

    def test_the_addresses_of_the_first_version_still_work(self, door, project):
        url = f"/api/v1/projects/{project.slug}/uploads/"
        answer = door.post(url, form(("a.jsonl", CONTENT)))
        assert answer.status_code == 201
        assert door.get(URL + "/").json() == door.get(url).json()


class TestRefusals:
    """Every refusal is a status and a sentence."""

    def test_a_body_without_bytes_is_refused(self, door):
        assert_refused(raw(door, b""), 400, "empty")

    def test_an_empty_file_is_refused(self, door):
        assert_refused(door.post(URL, form(("e.json", b""))), 400, "is empty")

    def test_a_form_without_a_file_is_told_the_field(self, door):
        assert_refused(door.post(URL, {"x": "1"}), 400, "“file”")

    def test_a_broken_form_is_refused(self, door):
        answer = door.generic("POST", URL, b"junk", "multipart/form-data; boundary=")
        assert answer.status_code == 400
        assert answer.json()["sentence"]

    @pytest.mark.parametrize("where", ["query", "field"])
    def test_an_unknown_format_is_told_the_known_ones(self, door, where):
        answer = (
            raw(door, CONTENT, "?format=xml")
            if where == "query"
            else door.post(URL, form(("a", CONTENT), format="xml"))
        )
        assert_refused(answer, 400, "“xml”", "openai-chat")
        assert not Upload.objects.exists()

    @pytest.mark.parametrize("as_form", [True, False])
    def test_a_file_over_the_limit_leaves_nothing(
        self, door, settings, uploads_dir, as_form
    ):
        settings.MAX_UPLOAD_BYTES = 1_000
        content = b"x" * 1_001
        answer = door.post(URL, form(("a", content))) if as_form else raw(door, content)
        assert_refused(answer, 413, "larger than 1 kB")
        assert [p for p in uploads_dir.rglob("*") if p.is_file()] == []

    def test_a_token_that_may_only_read_sends_nothing(self, client_with, project):
        reader = client_with(project, Scope.READ)
        assert_refused(raw(reader, CONTENT), 403, "lacks the scope")
        assert not Upload.objects.exists()

    def test_without_a_token_nothing_is_kept(self, client, project, uploads_dir):
        assert_refused(raw(client, CONTENT), 401, "Bearer")
        assert [p for p in uploads_dir.rglob("*") if p.is_file()] == []

    def test_a_method_that_is_not_there_is_refused(self, door):
        assert door.delete(URL).status_code in {403, 405}
        assert door.delete(URL).json()["sentence"]


class TestReceipts:
    """What was read, what was not, and how usage stands."""

    def test_a_receipt_has_counts_usage_and_what_was_rejected(self, door, project):
        upload = upload_bytes(project, CONTENT + b'{"messages": [{"role": "us\n')
        receipt = door.get(f"{URL}/{upload.pk}").json()
        assert receipt["state"] == "done"
        assert (receipt["format"], receipt["reader_version"]) == (
            "openai-chat",
            upload.reader_version,
        )
        assert (receipt["traces"], receipt["rejected"]) == (1, 1)
        [rejected] = receipt["rejected_records"]
        assert rejected["place"].startswith("line 2")
        assert receipt["usage"] == {
            "reported": 0,
            "partial": 0,
            "missing": 1,
            "zero_suspect": 0,
            "vendor_estimate": 0,
            "aggregate_only": 0,
        }

    def test_usage_is_counted_over_all_traces_of_the_upload(self, door, project):
        upload = upload_traces(
            project, decay_trace(9, 8, None), decay_trace(7, None, None)
        )
        upload_traces(project, decay_trace(1, 2, 3))
        usage = door.get(f"{URL}/{upload.pk}").json()["usage"]
        assert (usage["reported"], usage["missing"]) == (3, 3)

    def test_a_failed_upload_says_why(self, door):
        pk = raw(door, b"<html></html>").json()["id"]
        read_upload(upload_id=pk, clock=lambda: NOW)
        receipt = door.get(f"{URL}/{pk}").json()
        assert receipt["state"] == "failed"
        assert "web page" in receipt["failure"]

    @pytest.mark.parametrize("number", ["0", "17", "9" * 18, "9" * 19, "x", "²"])
    def test_an_id_that_is_not_there_is_404(self, door, number):
        answer = door.get(f"{URL}/{number}")
        assert answer.status_code == 404
        assert answer.json()["sentence"]

    def test_an_upload_of_another_project_is_404(self, door):
        foreign = upload_bytes(make_project(name="Elsewhere"), CONTENT)
        assert_refused(door.get(f"{URL}/{foreign.pk}"), 404)
        assert door.get(URL).json()["uploads"] == []


class TestLists:
    """Pages, and asking for files by their hash before they are sent."""

    def test_pages_lead_from_newest_to_oldest_without_a_gap(
        self, door, project, monkeypatch
    ):
        monkeypatch.setattr("apps.api.views.PAGE_SIZE", 2)
        sent = [upload_bytes(project, CONTENT + b"\n" * n).pk for n in range(5)]
        found, url = [], URL
        while url:
            page = door.get(url).json()
            found.append([one["id"] for one in page["uploads"]])
            url = page["next"]
        newest_first = sorted(sent, reverse=True)
        assert found == [newest_first[:2], newest_first[2:4], newest_first[4:]]

    def test_hashes_pick_the_uploads_that_are_here(self, door, project):
        upload = upload_bytes(project, CONTENT)
        upload_bytes(project, CONTENT + b"\n")
        here, absent = upload.sha256, "0" * 64
        page = door.get(URL, {"sha256": [here.upper(), absent]}).json()
        assert [one["id"] for one in page["uploads"]] == [upload.pk]

    @pytest.mark.parametrize("query", ["sha256=xyz", "sha256=", "before=²"])
    def test_a_strange_question_is_refused_in_a_sentence(self, door, query):
        assert_refused(door.get(f"{URL}?{query}"), 400)

    def test_more_hashes_than_a_page_holds_are_refused(self, door):
        answer = door.get(URL, {"sha256": ["0" * 64] * 51})
        assert_refused(answer, 400, "at most 50")

    def test_a_list_costs_the_same_questions_however_long_it_is(
        self, door, project, django_assert_num_queries
    ):
        upload_bytes(project, CONTENT)
        door.get(URL)
        with django_assert_num_queries(2):
            door.get(URL)
        upload_bytes(project, CONTENT + b"\n")
        with django_assert_num_queries(2):
            assert len(door.get(URL).json()["uploads"]) == 2


def test_every_address_of_the_door_is_named_without_a_project():
    assert reverse("api-uploads") == URL
    assert reverse("api-upload", args=[7]) == f"{URL}/7"
    assert reverse("api-signals") == "/api/v1/signals"


def test_the_page_about_the_api_names_every_address(client, owner):
    client.force_login(owner)
    page = client.get(reverse("api")).content.decode()
    for name in ("api-uploads", "api-signals", "api-reports"):
        assert reverse(name) in page
    assert "http://testserver/api/v1/uploads" in page
