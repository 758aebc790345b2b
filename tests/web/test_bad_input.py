"""Bad input through the upload page: a sentence or an honest receipt, never a 500."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from apps.pipeline.reading import read_upload
from apps.reports.models import Report
from apps.review.models import Signal
from apps.screening.models import Screening
from apps.traces.models import RejectedRecord, Trace, Upload
from apps.traces.storage import path_of
from tests.conftest import SHARED
from tests.factories import NOW, decay_trace, upload_traces
from tests.web.hostile import FILES, GOOD, HTML, TEXTS, everywhere

TRAPS = SHARED / "data" / "traps"
ABSENT = "The shared trace files are not beside this checkout."
SURROGATE = "\ud83d".encode("utf-8", "surrogatepass")


@pytest.fixture
def web(client, owner):
    client.force_login(owner)
    return client


def send(web, project, content: bytes, name: str = "file.json"):
    """The file through the upload page, then read as a worker would."""
    answer = web.post(
        reverse("uploads", args=[project.slug]),
        {"file": SimpleUploadedFile(name, content)},
    )
    upload = Upload.objects.order_by("-id").first()
    if upload is not None:
        read_upload(upload_id=upload.pk, clock=lambda: NOW)
        upload.refresh_from_db()
    return answer, upload


def addresses(project) -> list[str]:
    """Every page that shows something of what was uploaded."""
    slug = project.slug
    found = [
        reverse(name, args=[slug])
        for name in ("overview", "uploads", "traces", "queue", "reports")
    ]
    for upload in Upload.objects.filter(project=project):
        found += [
            reverse(name, args=[slug, upload.pk])
            for name in ("upload", "upload-progress")
        ]
    for trace in Trace.objects.filter(project=project)[:3]:
        found.append(reverse("trace", args=[slug, trace.pk]))
        found.append(reverse("trace-download", args=[slug, trace.pk]))
        for seq in range(min(trace.step_count, 7)):
            body = reverse("step-body", args=[slug, trace.pk, seq])
            found += [body, body + "?as=text"]
    for signal in Signal.objects.filter(project=project)[:3]:
        found.append(reverse("signal", args=[slug, signal.pk]))
    for report in Report.objects.filter(project=project):
        found += [
            reverse(f"report{form}", args=[slug, report.pk])
            for form in ("", "-markdown", "-pdf", "-json")
        ]
    return found


def freeze(web, project, title: str = "Weekly") -> None:
    answer = web.post(
        reverse("reports", args=[project.slug]), {"title": title, "view": "all"}
    )
    assert answer.status_code == 302, answer.content.decode()


def pages(web, project) -> dict[str, bytes]:
    """The bytes of every page; each answers 200."""
    found = {}
    for address in addresses(project):
        answer = web.get(address)
        assert answer.status_code == 200, (address, answer.status_code)
        found[address] = answer.content
    return found


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
    assert all(
        Screening.objects.filter(trace=trace).count() >= 3 for trace in kept
    )
    assert RejectedRecord.objects.filter(upload=upload).count() == min(
        upload.rejected_count, 100
    )


@pytest.mark.parametrize("case", FILES)
def test_a_bad_file_ends_in_a_sentence_or_a_receipt_and_every_page_stands(
    web, project, case
):
    content, has_traces = FILES[case]
    answer, upload = send(web, project, content)
    assert answer.status_code == 302
    assert path_of(upload.sha256).read_bytes() == content
    assert_ends_in_words(upload)
    assert (upload.state == "done") is has_traces, upload.failure
    freeze(web, project)
    shown = pages(web, project)
    receipt = shown[reverse("upload", args=[project.slug, upload.pk])].decode()
    if upload.state == "failed":
        assert html.escape(upload.failure) in receipt
    raw = web.get(reverse("upload-raw", args=[project.slug, upload.pk]))
    assert b"".join(raw.streaming_content) == content


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
def test_what_was_not_read_or_was_changed_stands_on_the_receipt(web, project, case):
    _, upload = send(web, project, FILES[case][0])
    assert upload.notes or upload.rejected_count
    page = web.get(reverse("upload", args=[project.slug, upload.pk]))
    text = html.unescape(page.content.decode())
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
def test_a_trap_ends_in_a_sentence_or_a_receipt_and_every_page_stands(
    web, project, path: Path
):
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
    freeze(web, project)
    pages(web, project)


def test_a_line_of_fifty_megabytes_is_read_or_refused_in_words(web, project):
    content = GOOD.replace(b"It left", b"x" * 50_000_000)
    answer, upload = send(web, project, content)
    assert answer.status_code == 302
    assert_ends_in_words(upload)
    trace = Trace.objects.get()
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


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", "multipart/form-data"),
        (b"--b\r\n", "multipart/form-data; boundary=b"),
        (b"junk", "multipart/form-data; boundary=b"),
        (b"junk", "multipart/form-data; boundary=" + "b" * 500),
        (b"file=x", "application/x-www-form-urlencoded"),
        (b"{}", "application/json"),
        (b"\xff\xfe", "text/plain; charset=bogus"),
        (b"file=x", "application/x-www-form-urlencoded; charset=utf-7"),
        (
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n'
            b"Content-Transfer-Encoding: base64\r\n\r\n!!!!\r\n--b--\r\n",
            "multipart/form-data; boundary=b",
        ),
    ],
)
def test_a_malformed_form_is_refused_in_words(web, project, body, content_type):
    answer = web.generic(
        "POST", reverse("uploads", args=[project.slug]), body, content_type
    )
    assert 400 <= answer.status_code < 500
    assert re.search(r"[a-z]{3}[.!?]", answer.content.decode())
    assert not Upload.objects.exists()


def test_more_files_or_fields_than_a_form_holds_are_refused_in_words(web, project):
    url = reverse("uploads", args=[project.slug])
    files = [SimpleUploadedFile(f"{n}.json", b"[]") for n in range(101)]
    fields = {f"f{n}": "x" for n in range(1_001)}
    for form in ({"file": files}, fields):
        answer = web.post(url, form)
        assert answer.status_code in {400, 413}
        assert "files or fields" in answer.content.decode()
    assert not Upload.objects.exists()


@pytest.mark.parametrize("case", TEXTS)
def test_a_hostile_text_in_every_field_is_text_on_every_page(web, project, case):
    _, upload = send(web, project, everywhere(TEXTS[case]), name="hostile.jsonl")
    assert (upload.state, upload.trace_count) == ("done", 1), upload.failure
    assert upload.signal_count == 1
    freeze(web, project, title="Weekly")
    for address, content in pages(web, project).items():
        if address.endswith((".pdf", "/download/", "as=text", ".md", ".json")):
            continue
        assert_inert(content.decode())


class Elements(HTMLParser):
    """What a browser would make of a page: every element with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


def assert_inert(page: str) -> None:
    """No element, attribute or template of a hostile text took effect."""
    assert "\x00" not in page
    assert "<svg/onload" not in page
    for tag, attributes in Elements(page).found:
        assert not [name for name in attributes if name.startswith("on")]
        if tag == "script":
            assert "src" in attributes or attributes["type"] == "application/json"
        for name in ("src", "href", "action", "hx-get", "hx-post", "data-url"):
            target = attributes.get(name, "/")
            assert target.startswith(("/", "?", "#")) or target == "", (tag, target)


@pytest.mark.parametrize(
    "name",
    [
        HTML.replace("/", "") + ".json",
        "../../etc/passwd",
        "..\\..\\windows.json",
        "a\r\nSet-Cookie: x=1.json",
        "nul\x00byte.json",
        "\u202egnp.json",
        'quo"te\'s.json',
        "日本語 😀.json",
        "x" * 600 + ".json",
        "x.html",
        ".json",
        "%00%2e%2e%2f",
        "{{ 7|add:7 }}.json",
    ],
)
def test_a_hostile_file_name_is_only_a_name(web, project, uploads_dir, name):
    answer, upload = send(web, project, GOOD, name=name)
    assert answer.status_code == 302
    assert len(upload.name) <= 255
    assert not re.search(r"[\x00-\x1f/\\\u202e]", upload.name)
    assert path_of(upload.sha256).is_relative_to(uploads_dir)
    for address, content in pages(web, project).items():
        if "/trace" not in address and not address.endswith("progress/"):
            assert_inert(content.decode())
    raw = web.get(reverse("upload-raw", args=[project.slug, upload.pk]))
    assert raw["Content-Disposition"].startswith("attachment")
    assert not re.search(r"[\r\n\x00]", raw["Content-Disposition"])
    assert "Set-Cookie" not in raw
    assert b"".join(raw.streaming_content) == GOOD


def test_a_file_name_of_five_thousand_characters_is_taken_or_refused_in_words(
    web, project
):
    answer = web.post(
        reverse("uploads", args=[project.slug]),
        {"file": SimpleUploadedFile("n" * 5_000 + ".json", GOOD)},
    )
    if answer.status_code == 302:
        assert len(Upload.objects.get().name) <= 255
    else:
        assert answer.status_code == 400
        assert "." in html.unescape(answer.content.decode())


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_file_without_a_name_is_taken_or_refused_in_words(web, project, name):
    body = (
        f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    ).encode() + GOOD + b"\r\n--b--\r\n"
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


NUMBERS = ["%00", "-1", "0", "abc", "²", "٣", "9" * 18, "9" * 19, "9" * 5_000, "1e9",
           "NaN", "%ED%A0%80", "1'--", "", "+1", " 1", "0x10", "1_0"]  # fmt: skip
QUERIES = [
    "outcome=nope", "format=%00", "usage=x", "sort=password", "sort=%00", "view=%00",
    "check=%00", "agent=%00", "agent=%F0%9F", "model=a%00b", "q=%00", "q=%25%25",
    "q=%5C", "q=" + "x" * 5_000, "agent=" + "y" * 5_000, "agent[]=1", "=", "&&&",
    "agent=a&agent=b", "q=%ED%A0%80", "page=-1", "order=password", "id__gt=1",
]  # fmt: skip


@pytest.fixture
def place(project):
    upload_traces(project, decay_trace(100, 90, 80, 70, 60))
    return project


@pytest.mark.parametrize("value", NUMBERS)
@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("uploads", ["before"]),
        ("traces", ["after", "upload", "task"]),
        ("queue", ["after", "upload"]),
        ("reports", ["upload"]),
        ("trace", ["from", "step"]),
        ("signal", ["upload"]),
        ("step-body", ["as"]),
    ],
)
def test_any_value_of_a_number_in_an_address_is_answered(
    web, place, page, names, value
):
    args = {
        "trace": [Trace.objects.get().pk],
        "step-body": [Trace.objects.get().pk, 0],
        "signal": [Signal.objects.get().pk],
    }.get(page, [])
    for name in names:
        address = reverse(page, args=[place.slug, *args]) + f"?{name}={value}"
        assert web.get(address).status_code in {200, 404}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("page", ["uploads", "traces", "queue", "reports", "overview"])
def test_any_filter_in_an_address_is_answered(web, place, page, query):
    answer = web.get(reverse(page, args=[place.slug]) + "?" + query)
    assert answer.status_code == 200


@pytest.mark.parametrize("number", ["0", "9" * 18, "9" * 19, "9" * 100, "9" * 5_000])
def test_any_id_in_an_address_is_answered(web, place, number):
    trace = Trace.objects.get()
    for path in (
        f"uploads/{number}/",
        f"uploads/{number}/raw/",
        f"uploads/{number}/progress/",
        f"traces/{number}/",
        f"traces/{number}/download/",
        f"traces/{trace.pk}/steps/{number}/",
        f"signals/{number}/",
        f"reports/{number}/",
        f"reports/{number}/report.pdf",
    ):
        status = web.get(f"/projects/{place.slug}/{path}").status_code
        assert status in {200, 404}, path
        assert status == 404 or path.endswith("/steps/0/")


@pytest.mark.parametrize(
    "path",
    ["/%00", "/projects/%00/", "/projects/../etc/", "/checks/%ED%A0%80/", "/sign-in/%00/",
     "/projects/" + "x" * 5_000 + "/", "/checks/__proto__/"],
)  # fmt: skip
def test_any_path_is_answered_in_words(web, path):
    answer = web.get(path)
    assert answer.status_code in {200, 404}
    assert "<html" in answer.content.decode()


def test_a_host_that_is_not_ours_is_refused_in_words(web):
    for accept in ("text/html", "application/json"):
        answer = web.get("/", headers={"Host": "evil.example", "Accept": accept})
        assert answer.status_code == 400
        assert "malformed" in answer.content.decode()


VALUES = ["", "a\x00b", "9" * 30, "-1", "²", "x" * 50_000, HTML, "\u202e", "1e999",
          "[]", "null", SURROGATE.decode("latin-1")]  # fmt: skip
FORMS = {
    "signal-decide": {
        "verdict": "dismiss",
        "reason": "other",
        "note": "because",
        "failure_kind": "tool",
        "where_agent": "planner",
        "where_step": "1",
        "version": "0",
        "submission": str(uuid4()),
        "view": "open",
        "agent": "",
        "upload": "",
    },
    "signal-draft": {"verdict": "confirm", "note": "n", "where_step": "1"},
    "signal-undo": {"version": "0"},
    "signal-claim": {"view": "open", "upload": "1", "agent": "a"},
    "signal-release": {"beacon": "", "view": "open", "agent": "a"},
    "queue-next": {"view": "open", "agent": "a", "upload": "1", "check": "x"},
    "queue-undo": {"view": "open", "agent": "a"},
    "member-add": {"username": "new", "role": "viewer"},
    "member-change": {"role": "viewer"},
    "token-create": {"name": "ci", "scopes": "read"},
    "reports": {"title": "Weekly", "view": "all", "agent": "", "upload": ""},
    "projects": {"name": "P", "description": "d"},
    "upload-read-again": {"format": ""},
    "uploads": {"format": ""},
}


@pytest.mark.parametrize(
    ("form", "field"), [(form, field) for form in FORMS for field in FORMS[form]]
)
def test_any_value_of_a_form_is_taken_or_refused_in_words(
    web, place, owner, form, field
):
    args = {
        "member-change": [owner.pk],
        "upload-read-again": [Upload.objects.get().pk],
    }.get(form, [Signal.objects.get().pk] if form.startswith("signal") else [])
    url = reverse(form, args=[] if form == "projects" else [place.slug, *args])
    for value in VALUES:
        answer = web.post(url, {**FORMS[form], field: value})
        assert answer.status_code < 500, (value[:20], answer.status_code)
        if answer.status_code >= 400:
            assert re.search(r"[a-z]{3}[.!?]", answer.content.decode())
        if answer["Content-Type"].startswith("text/html"):
            assert_inert(answer.content.decode().replace("\x00", ""))
    for address in addresses(place):
        assert web.get(address).status_code == 200, address


def test_what_a_reviewer_types_is_text_wherever_it_is_shown(web, place):
    signal = Signal.objects.get()
    url = reverse("signal-decide", args=[place.slug, signal.pk])
    fields = {"verdict": "confirm", "version": "0", "note": HTML, "where_agent": HTML}
    assert web.post(url, fields).status_code == 302
    freeze(web, place, title=HTML[:150])
    for address, content in pages(web, place).items():
        if not address.endswith((".pdf", ".json", ".md", "/download/", "as=text")):
            assert_inert(content.decode())
