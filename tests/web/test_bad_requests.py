"""Odd addresses and forms: answered, or refused in words, and never a 500."""

from __future__ import annotations

import re
from itertools import product
from uuid import uuid4

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.review.models import BlindLook, Signal
from apps.traces.models import Trace, Upload
from tests.adopting import make_regression_case, shadowed
from tests.factories import (
    NOW,
    decay_trace,
    make_contract,
    make_project,
    make_trace_set,
    make_user,
    upload_traces,
)
from tests.web.agent_fields import AGENT_FORMS, memory_of, places_of_agents
from tests.web.hostile import HTML
from tests.web.table_rows import rows_of_all_tables
from tests.web.visiting import addresses, assert_inert, freeze, pages

SURROGATE = "\ud83d".encode("utf-8", "surrogatepass")
NUMBERS = ["%00", "-1", "0", "abc", "²", "٣", "9" * 18, "9" * 19, "9" * 5_000, "1e9",
           "NaN", "%ED%A0%80", "1'--", "", "+1", " 1", "0x10", "1_0"]  # fmt: skip
QUERIES = [
    "outcome=nope", "format=%00", "usage=x", "sort=password", "sort=%00", "view=%00",
    "check=%00", "agent=%00", "agent=%F0%9F", "model=a%00b", "q=%00", "q=%25%25",
    "q=%5C", "q=" + "x" * 5_000, "agent=" + "y" * 5_000, "agent[]=1", "=", "&&&",
    "agent=a&agent=b", "q=%ED%A0%80", "page=-1", "order=password", "id__gt=1",
]  # fmt: skip


def make_place() -> None:
    """A project of Olga's with a trace, its signal, a contract and a set."""
    project = make_project(owner=make_user("olga"), name="Support desk")
    upload_traces(project, decay_trace(100, 90, 80, 70, 60))
    make_contract(project)
    make_trace_set(project)


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_place)


@pytest.fixture
def place(made, db):
    return Project.objects.get()


@pytest.fixture
def owner(made, db):
    return User.objects.get()


@pytest.fixture(autouse=True)
def uploads_dir(made, settings):
    settings.UPLOADS_DIR = made[1]
    return settings.UPLOADS_DIR


def look_at_the_trace(project) -> BlindLook:
    """A blind look at the one trace of the project."""
    found, _ = BlindLook.objects.get_or_create(
        trace=Trace.objects.get(),
        defaults={
            "project": project,
            "was_flagged": True,
            "place": 0.5,
            "created_at": NOW,
        },
    )
    return found


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("uploads", ["before"]),
        ("traces", ["after", "upload", "task"]),
        ("queue", ["after", "upload"]),
        ("reports", ["upload"]),
        ("tasks", ["from", "agent"]),
        ("sets", ["before"]),
        ("trace-set", ["after"]),
        ("set-new", ["upload", "task", "ids"]),
        ("compare", ["first", "second"]),
        ("trace", ["from", "step"]),
        ("signal", ["upload"]),
        ("step-body", ["as"]),
        ("blind", ["from", "step"]),
        ("calibration", ["key", "beside"]),
        ("shadows", ["version"]),
        ("shadow", ["show", "after"]),
        ("regression", ["after"]),
    ],
)
def test_any_value_of_a_number_in_an_address_is_answered(web, place, page, names):
    args = {
        "trace": [Trace.objects.get().pk],
        "step-body": [Trace.objects.get().pk, 0],
        "signal": [Signal.objects.get().pk],
        "blind": [look_at_the_trace(place).pk],
        "calibration": ["output-decay"],
        "shadows": ["output-decay"],
        "shadow": [
            "output-decay",
            shadowed(place, last_percent=30).pk if page == "shadow" else 0,
        ],
        "trace-set": ["release-4"],
        "agent": [memory_of(place).pk] if page == "agent" else [],
    }.get(page, [])
    for name, value in product(names, NUMBERS):
        address = reverse(page, args=[place.slug, *args]) + f"?{name}={value}"
        assert web.get(address).status_code in {200, 404}, address[:200]


@pytest.mark.parametrize(
    "page",
    [
        "uploads",
        "traces",
        "tasks",
        "agents",
        "agent-outcomes",
        "queue",
        "reports",
        "overview",
        "project-checks",
        "sets",
        "set-new",
        "compare",
    ],
)
def test_any_filter_in_an_address_is_answered(web, place, page):
    for query in QUERIES:
        answer = web.get(reverse(page, args=[place.slug]) + "?" + query)
        assert answer.status_code == 200, query[:200]


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
        f"tasks/{number}/",
        f"agents/{number}/",
        f"agents/{number}/contracts/{number}/",
        f"tasks/{number}/forks/",
        f"signals/{number}/",
        f"blind/{number}/",
        f"checks/output-decay/shadow/{number}/",
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
    "blind-decide": {
        "verdict": "failure",
        "note": "because",
        "failure_kind": "tool",
        "where_agent": "planner",
        "where_step": "1",
        "version": "0",
        "submission": str(uuid4()),
    },
    "blind-draft": {"verdict": "failure", "note": "n", "where_step": "1"},
    "blind-undo": {"version": "0"},
    "blind-release": {"beacon": ""},
    "blind-percent": {"percent": "10"},
    "signal-draft": {"verdict": "confirm", "note": "n", "where_step": "1"},
    "signal-undo": {"version": "0"},
    "signal-claim": {"view": "open", "upload": "1", "agent": "a"},
    "signal-release": {"beacon": "", "view": "open", "agent": "a"},
    "queue-next": {"view": "open", "agent": "a", "upload": "1", "check": "x"},
    "queue-undo": {"view": "open", "agent": "a"},
    "member-add": {"username": "new", "role": "viewer"},
    "member-change": {"role": "viewer"},
    "privacy-change": {"redact_secrets": "on", "raw_bytes": "not_kept"},
    "token-create": {"name": "ci", "scopes": "read"},
    "reports": {"title": "Weekly", "view": "all", "agent": "", "upload": ""},
    "contract-new": {
        "label": "Small refunds",
        "operator": "always",
        "scope": "trace",
        "level": "review_signal",
        "sentence": "As agreed.",
        "n": "",
        "select_kind": "tool_call",
        "select_name": "refund",
        "then_asks": "arguments",
        "then_condition": '{"maximum": 3}',
        "then_status": "ok",
        "on": "",
        "act": "preview",
    },
    "contract-edit": {
        "label": "No refund",
        "operator": "never",
        "select_name": "refund",
        "select_asks": "cel",
        "select_condition": "step.seq > 1",
        "number": "1",
        "act": "save",
    },
    "contract-state": {"state": "paused"},
    **AGENT_FORMS,
    "shadows": {
        "version": "1",
        "min_calls": "6",
        "last_percent": "40",
        "max_chance": "0.05",
    },
    "check-adopt": {"number": "1", "seen": "1", "note": "because"},
    "check-pause": {"act": "pause"},
    "case-rename": {"name": "A quiet run"},
    "signal-keep-quiet": {"name": "A quiet run"},
    "projects": {"name": "P", "description": "d"},
    "upload-read-again": {"format": ""},
    "set-new": {"name": "Release 5", "note": "why", "ids": "", "act": "save"},
    "set-rename": {"name": "Release 5", "note": "why"},
    "set-baseline": {"act": "choose"},
    "uploads": {"format": ""},
}


OF_A_CHECK = ("shadows", "check-adopt", "check-pause")
OF_A_LOOK = ("blind-decide", "blind-draft", "blind-undo", "blind-release")


def test_every_page_answers_before_any_form_was_sent(web, place):
    assert len(pages(web, place)) > 30
    make_regression_case(place)
    assert len(pages(web, place)) > 30
    look_at_the_trace(place)
    assert len(pages(web, place)) > 30


@pytest.mark.parametrize(
    ("form", "field"), [(form, field) for form in FORMS for field in FORMS[form]]
)
def test_any_value_of_a_form_is_taken_or_refused_in_words(
    web, place, owner, form, field
):
    args = {
        "contract-edit": ["no-refund"],
        "contract-state": ["no-refund"],
        **{name: ["output-decay"] for name in OF_A_CHECK},
        "case-rename": [make_regression_case(place).pk],
        "member-change": [owner.pk],
        "upload-read-again": [Upload.objects.get().pk],
        "set-rename": ["release-4"],
        "set-baseline": ["release-4"],
        **{name: [look_at_the_trace(place).pk] for name in OF_A_LOOK},
        **places_of_agents(place),
    }.get(form, [Signal.objects.get().pk] if form.startswith("signal") else [])
    url = reverse(form, args=[] if form == "projects" else [place.slug, *args])
    before = rows_of_all_tables()
    for value in VALUES:
        answer = web.post(url, {**FORMS[form], field: value})
        assert answer.status_code < 500, (value[:20], answer.status_code)
        if answer.status_code >= 400:
            assert re.search(r"[a-z]{3}[.!?]", answer.content.decode())
        if answer["Content-Type"].startswith("text/html"):
            assert_inert(answer.content.decode().replace("\x00", ""))
    # Where nothing was written, one page says what was said about the last form, and
    # the others are as the test above found them.
    unchanged = rows_of_all_tables() == before
    for address in addresses(place)[: 1 if unchanged else None]:
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
def test_a_malformed_form_is_refused_in_words(web, place, body, content_type):
    answer = web.generic(
        "POST", reverse("uploads", args=[place.slug]), body, content_type
    )
    assert 400 <= answer.status_code < 500
    assert re.search(r"[a-z]{3}[.!?]", answer.content.decode())
    assert Upload.objects.count() == 1


def test_more_files_or_fields_than_a_form_holds_are_refused_in_words(web, place):
    url = reverse("uploads", args=[place.slug])
    files = [SimpleUploadedFile(f"{n}.json", b"[]") for n in range(101)]
    fields = {f"f{n}": "x" for n in range(1_001)}
    for form in ({"file": files}, fields):
        answer = web.post(url, form)
        assert answer.status_code in {400, 413}
        assert "files or fields" in answer.content.decode()
    assert Upload.objects.count() == 1
