"""Bad input through the upload page: a sentence or an honest receipt, never a 500."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Project
from apps.screening.models import Screening
from apps.traces.models import RejectedRecord, Trace, Upload
from apps.traces.storage import path_of
from tests.conftest import SHARED
from tests.factories import make_project, make_user
from tests.web.hostile import FILES, GOOD, HTML, TEXTS, everywhere
from tests.web.visiting import assert_inert, freeze, pages, send

TRAPS = SHARED / "data" / "traps"
ABSENT = "The shared trace files lie outside of the repository and are absent."


def assert_ends_in_words(upload: Upload) -> None:
    """Failed with a sentence, or done with at least one trace and honest counts."""
    kept = Trace.objects.filter(upload=upload)
    if upload.state == "failed":
        assert upload.failure.strip().endswith((".", "?", "!"))
        assert len(upload.failure) > 20
        assert "our fault" not in upload.failure
        assert not kept.exists()
        return
    assert upload.state == "done"
    assert kept.count() == upload.trace_count > 0
    assert all(Screening.objects.filter(trace=trace).count() >= 3 for trace in kept)
    assert RejectedRecord.objects.filter(upload=upload).count() == min(
        upload.rejected_count, 100
    )


class Sent(NamedTuple):
    """All bad files after they were sent to one project, and its pages then."""

    client: Client
    project: Project
    answers: dict[str, tuple[HttpResponse, Upload]]
    shown: dict[str, bytes]

    def receipt(self, upload: Upload) -> str:
        address = reverse("upload", args=[self.project.slug, upload.pk])
        return self.shown[address].decode()


def send_bad_files() -> Sent:
    user = make_user("berta")
    project = make_project(owner=user)
    client = Client()
    client.force_login(user)
    answers = {
        case: send(client, project, content) for case, (content, _) in FILES.items()
    }
    freeze(client, project)
    return Sent(client, project, answers, pages(client, project))


@pytest.fixture(scope="module")
def bad_files_sent(stand):
    return stand(send_bad_files)


@pytest.fixture
def bad_files(bad_files_sent, db, settings) -> Sent:
    sent, settings.UPLOADS_DIR = bad_files_sent
    return sent


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_ends_in_a_sentence_or_a_receipt(bad_files, case):
    content, has_traces = FILES[case]
    answer, upload = bad_files.answers[case]
    assert answer.status_code == 302
    assert path_of(upload.sha256).read_bytes() == content
    assert_ends_in_words(upload)
    assert (upload.state == "done") is has_traces, upload.failure
    receipt = bad_files.receipt(upload)
    if upload.state == "failed":
        assert html.escape(upload.failure) in receipt
    raw = reverse("upload-raw", args=[bad_files.project.slug, upload.pk])
    assert b"".join(bad_files.client.get(raw).streaming_content) == content


def test_every_page_stands_after_all_that_was_read_and_refused(bad_files):
    refused = [content for content, has_traces in FILES.values() if not has_traces]
    failed = Upload.objects.filter(project=bad_files.project, state="failed")
    assert failed.count() == len(refused) > 10
    assert len(bad_files.shown) > len(FILES)


SAYS = {
    "truncated json": "cut off",
    "truncated last line": "line 4",
    "latin-1": "not valid UTF-8",
    "nul escape": "NUL characters",
    "lone surrogate": "halves of a character pair",
    "nan": "NaN",
    "infinity": "NaN",
    "duplicate keys": "twice",
    "deep record among good ones": "nested deeper",
    "bad line 3 of 6": "line 3",
}


@pytest.mark.parametrize("case", SAYS)
def test_what_was_not_read_or_was_changed_stands_on_the_receipt(bad_files, case):
    _, upload = bad_files.answers[case]
    assert upload.notes or upload.rejected_count
    text = html.unescape(bad_files.receipt(upload))
    said = [note["sentence"] for note in upload.notes] + [
        f"{line.place}: {line.reason}"
        for line in RejectedRecord.objects.filter(upload=upload)
    ]
    assert any(SAYS[case] in sentence for sentence in said), said
    for note in upload.notes:
        assert note["sentence"] in text
    for line in RejectedRecord.objects.filter(upload=upload):
        assert line.reason in text


def traps() -> list[object]:
    if not TRAPS.is_dir():
        return [pytest.param(None, marks=pytest.mark.skip(ABSENT))]
    return [pytest.param(path, id=path.name) for path in sorted(TRAPS.iterdir())]


@pytest.mark.parametrize("path", traps())
def test_a_trap_ends_in_a_sentence_or_a_receipt(web, project, path: Path):
    content = path.read_bytes()
    answer, upload = send(web, project, content, name=path.name)
    if not content:
        assert answer.status_code == 400
        assert "is empty" in html.unescape(answer.content.decode())
        assert upload is None
        return
    assert answer.status_code == 302
    assert path_of(upload.sha256).read_bytes() == content
    assert_ends_in_words(upload)
    receipt = reverse("upload", args=[project.slug, upload.pk])
    assert web.get(receipt).status_code == 200


def test_every_page_stands_over_all_traps_together(web, project):
    if not TRAPS.is_dir():
        pytest.skip(ABSENT)
    for path in TRAPS.iterdir():
        send(web, project, path.read_bytes(), name=path.name)
    freeze(web, project)
    assert len(pages(web, project)) > Trace.objects.filter(project=project).count() > 10


def test_a_line_of_fifty_megabytes_is_read_or_refused_in_words(web, project):
    content = GOOD.replace(b"It left", b"x" * 50_000_000)
    answer, upload = send(web, project, content)
    assert answer.status_code == 302
    assert_ends_in_words(upload)
    trace = Trace.objects.get(upload=upload)
    page = web.get(reverse("trace", args=[project.slug, trace.pk]))
    assert len(page.content) < 500_000
    body = web.get(reverse("step-body", args=[project.slug, trace.pk, 2]))
    assert len(body.content) < 500_000


def test_a_body_that_declares_two_gigabytes_is_refused_before_it_is_read(web, project):
    for accept in ("text/html", "application/json"):
        answer = web.post(
            reverse("uploads", args=[project.slug]),
            b"x",
            content_type="multipart/form-data; boundary=b",
            headers={"Content-Length": str(2 * 1024**3 + 1), "Accept": accept},
        )
        assert answer.status_code == 413
        assert "larger than" in answer.content.decode()


IN_WORDS = ("html", "quotes", "templates", "keys", "links", "csv")


def test_a_hostile_text_in_every_field_is_text_on_every_page(web, project):
    for case, text in TEXTS.items():
        _, upload = send(web, project, everywhere(text), name=f"{case}.jsonl")
        assert (upload.state, upload.trace_count) == ("done", 1), upload.failure
        assert upload.signal_count == 1
        trace = Trace.objects.get(upload=upload)
        if case in IN_WORDS:
            address = reverse("trace", args=[project.slug, trace.pk])
            shown = web.get(address).content.decode()
            assert html.escape(text)[:80] in shown, case
    freeze(web, project, title="Weekly")
    for address, content in pages(web, project).items():
        if address.endswith((".pdf", "/download/", "as=text", ".md", ".json")):
            continue
        assert_inert(content.decode())


NAMES = [
    HTML.replace("/", "") + ".json",
    "../../etc/passwd",
    "..\\..\\windows.json",
    "a\r\nSet-Cookie: x=1.json",
    "nul\x00byte.json",
    "\u202egnp.json",
    "quo\"te's.json",
    "日本語 😀.json",
    "x" * 600 + ".json",
    "x.html",
    ".json",
    "%00%2e%2e%2f",
    "{{ 7|add:7 }}.json",
]


def test_a_hostile_file_name_is_only_a_name(web, project, uploads_dir):
    for number, name in enumerate(NAMES):
        content = GOOD + b"\n" * number
        answer, upload = send(web, project, content, name=name)
        assert answer.status_code == 302
        assert len(upload.name) <= 255
        assert not re.search(r"[\x00-\x1f/\\\u202e]", upload.name)
        assert path_of(upload.sha256).is_relative_to(uploads_dir)
        raw = web.get(reverse("upload-raw", args=[project.slug, upload.pk]))
        assert raw["Content-Disposition"].startswith("attachment")
        assert not re.search(r"[\r\n\x00]", raw["Content-Disposition"])
        assert "Set-Cookie" not in raw
        assert b"".join(raw.streaming_content) == content
    for address, content in pages(web, project).items():
        if "/trace" not in address and not address.endswith("progress/"):
            assert_inert(content.decode())


def test_a_file_name_of_five_thousand_characters_is_taken_or_refused_in_words(
    web, project
):
    answer = web.post(
        reverse("uploads", args=[project.slug]),
        {"file": SimpleUploadedFile("n" * 5_000 + ".json", GOOD)},
    )
    if answer.status_code == 302:
        assert len(Upload.objects.get(project=project).name) <= 255
    else:
        assert answer.status_code == 400
        assert "." in html.unescape(answer.content.decode())


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_file_without_a_name_is_taken_or_refused_in_words(web, project, name):
    body = (
        (
            f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        ).encode()
        + GOOD
        + b"\r\n--b--\r\n"
    )
    answer = web.post(
        reverse("uploads", args=[project.slug]),
        body,
        content_type="multipart/form-data; boundary=b",
    )
    assert answer.status_code in {302, 400}


def test_numbers_that_no_column_holds_are_refused_or_not_recorded(web, project):
    huge = 2**70
    record = (
        '{"evalsite": 1, "trace": {"name": "n", "trial": %d, "start": %d, '
        '"outcome": {"kind": "score", "score": 1e400, "out_of": -1e400}}, "steps": '
        '[{"kind": "model_call", "start": %d, "usage": {"output": %d}, '
        '"parent": %d}]}'
    )
    for numbers in [(huge, 1, 1, 1, 0), (1, huge, 1, 1, 0), (1, 1, -huge, 1, 0),
                    (1, 1, 1, huge, 0), (1, 1, 1, 1, huge), (2**31, 1, 1, 2**63, 0),
                    (-1, -1, -1, -1, -1)]:  # fmt: skip
        _, upload = send(web, project, (record % numbers).encode())
        assert_ends_in_words(upload)
    pages(web, project)
