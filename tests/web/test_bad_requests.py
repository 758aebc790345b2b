"""Odd addresses and bodies: answered, or refused in words, and never a 500."""

from __future__ import annotations

import re
from itertools import product

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
from tests.replays.making import stopped_batch
from tests.web.agent_fields import memory_of
from tests.web.page_reads import ask_and_note, changes, concerned, state_for
from tests.web.visiting import addresses

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
        ("replays", ["before", "agent"]),
        ("replay-batch", ["from"]),
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
        "replay-batch": ([stopped_batch(place).pk] if page == "replay-batch" else []),
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
        "replays",
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
        f"replays/batches/{number}/",
        f"replays/batches/{number}/progress/",
        f"replays/batches/{number}/runs.jsonl",
        f"replays/batches/{number}/groups/{number}/",
        f"replays/runs/{number}/",
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


def test_every_page_answers_before_any_form_was_sent(web, place, owner):
    reads = ask_and_note(web, addresses(place))
    assert len(reads) > 30
    for make in (make_regression_case, look_at_the_trace):
        before = state_for(owner, place)
        make(place)
        changed = changes(before, state_for(owner, place))
        asked = concerned(addresses(place), reads, changed)
        assert len(asked) > 1
        reads |= ask_and_note(web, asked)
