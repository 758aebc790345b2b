"""What comes in through the doors: numbers and bodies; and a database away."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import InterfaceError, OperationalError, connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.operations import create_token
from apps.accounts.permissions import Scope
from apps.traces.models import Upload
from apps.traces.storage import Keeping, Receiver
from apps.web.numbers import whole
from tests.factories import CHAT, chat_bytes

STRANGE_NUMBERS = [
    "²",
    "٣",
    "\uff11\uff12",
    "-1",
    "1_0",
    " 1",
    "9" * 19,
    "9" * 5000,
    "x",
    "\x00",
]
MEBIBYTE = 1024**2


@pytest.fixture
def web(client, owner):
    client.force_login(owner)
    client.raise_request_exception = False
    return client


@pytest.fixture
def stranger():
    """A client that sends no session, and checks forms like a browser's server."""
    return Client(enforce_csrf_checks=True, raise_request_exception=False)


@pytest.fixture
def token(project, owner):
    _, secret = create_token(
        project=project,
        name="ci",
        scopes=[Scope.UPLOAD, Scope.READ],
        user=owner,
        now=timezone.now(),
    )
    return {"Authorization": f"Bearer {secret}"}


@pytest.fixture
def opened(monkeypatch):
    """The files that were opened for incoming bytes, in order."""
    names: list[str] = []

    class Watched(Receiver):
        def __init__(self, *, limit: int, name: str, keeping: Keeping) -> None:
            names.append(name)
            super().__init__(limit=limit, name=name, keeping=keeping)

    monkeypatch.setattr("apps.traces.storage.Receiver", Watched)
    return names


def file_of(size: int, name: str = "a.jsonl") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, b"x" * size)


def sentence_of(answer) -> str:
    found = re.search(r"<p data-sentence>(.*?)</p>", answer.content.decode())
    assert found is not None, answer.content.decode()
    return found[1]


class TestNumbersInAddresses:
    """They are up to 18 ASCII digits; everything else is no number."""

    @pytest.mark.parametrize("value", ["0", "17", "007", "9" * 18])
    def test_digits_are_their_number(self, value):
        assert whole(value) == int(value)

    @pytest.mark.parametrize("value", ["", *STRANGE_NUMBERS])
    def test_anything_else_is_none(self, value):
        assert whole(value) is None

    @pytest.mark.parametrize("value", STRANGE_NUMBERS)
    @pytest.mark.parametrize(
        ("name", "field"),
        [
            ("queue", "after"),
            ("queue", "upload"),
            ("traces", "after"),
            ("traces", "upload"),
            ("traces", "task"),
            ("uploads", "before"),
        ],
    )
    def test_a_list_ignores_what_is_no_number(self, web, project, name, field, value):
        url = reverse(name, args=[project.slug])
        assert web.get(url, {field: value}).status_code == 200

    @pytest.mark.parametrize("value", STRANGE_NUMBERS)
    @pytest.mark.parametrize(
        ("name", "field"), [("api-uploads", "before"), ("api-signals", "after")]
    )
    def test_the_json_door_refuses_it(self, token, name, field, value):
        client = Client(raise_request_exception=False)
        answer = client.get(reverse(name), {field: value}, headers=token)
        assert answer.status_code == 400
        assert answer.json()["sentence"] == f"“{field}” is a whole number."


class TestTheDatabaseAway:
    """Every page says so with 503, wherever in the request it is noticed."""

    @pytest.fixture(params=[OperationalError, InterfaceError])
    def away(self, request, web, project):
        """Opening or using the connection fails from now on."""

        def dead() -> None:
            raise request.param("the server closed the connection unexpectedly")

        # Ends before the test's transaction is rolled back.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(connections["default"], "ensure_connection", dead)
            yield

    @pytest.mark.parametrize("name", ["home", "projects", "account"])
    @pytest.mark.usefixtures("away")
    def test_a_signed_in_page_asks_to_come_back(self, web, name):
        answer = web.get(reverse(name))
        assert answer.status_code == 503
        assert answer["Retry-After"] == "5"
        assert "The database does not answer just now" in sentence_of(answer)

    @pytest.mark.usefixtures("away")
    def test_a_script_is_told_in_json(self, web):
        answer = web.get(reverse("home"), headers={"Accept": "application/json"})
        assert answer.status_code == 503
        assert "Nothing is lost" in answer.json()["sentence"]

    @pytest.mark.usefixtures("away")
    def test_the_json_door_says_so_too(self):
        client = Client(raise_request_exception=False)
        answer = client.get(
            reverse("api-uploads"),
            headers={"Authorization": "Bearer evs_x"},
        )
        assert answer.status_code == 503
        assert answer["Retry-After"] == "5"

    @pytest.mark.usefixtures("away")
    def test_the_site_is_alive_and_not_ready(self):
        probe = Client(raise_request_exception=False)
        assert probe.get(reverse("healthz")).status_code == 200
        answer = probe.get(reverse("readyz"))
        assert answer.status_code == 503
        assert answer.json() == {"database": False}

    def test_another_fault_stays_a_500(self, web, monkeypatch):
        def broken(_user: User) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr("apps.web.views.projects.projects_of", broken)
        answer = web.get(reverse("home"))
        assert answer.status_code == 500
        assert "our fault" in sentence_of(answer)


class TestBodiesOfStrangers:
    """Nothing is stored for someone who may not send files."""

    @pytest.fixture
    def caller(self, stranger, db):
        """A stranger with the cookie of a form, without which no body is parsed."""
        assert "csrftoken" in stranger.get(reverse("sign-in")).cookies
        return stranger

    def test_no_file_of_a_stranger_is_stored(self, caller, project, opened):
        url = reverse("uploads", args=[project.slug])
        answer = caller.post(url, {"file": file_of(100)})
        assert answer.status_code == 403
        assert opened == []

    @pytest.mark.parametrize("name", ["sign-in", "healthz"])
    def test_no_public_page_stores_one(self, caller, opened, name):
        caller.post(reverse(name), {"file": file_of(100)})
        assert opened == []

    @pytest.mark.parametrize(
        "headers",
        [
            {"Authorization": "Bearer evs_unknown"},
            {"Authorization": "Bearer"},
            {"Authorization": "Basic abc"},
            {},
        ],
    )
    def test_made_up_credentials_store_nothing(self, caller, project, opened, headers):
        caller.cookies["sessionid"] = "made-up"
        url = reverse("uploads", args=[project.slug])
        answer = caller.post(url, {"file": file_of(100)}, headers=headers)
        assert answer.status_code == 403
        assert opened == []

    def test_a_signed_in_member_and_a_token_still_upload(
        self, web, project, token, opened
    ):
        content = chat_bytes(CHAT)
        files = [SimpleUploadedFile(f"{n}.jsonl", content + b"\n" * n) for n in (1, 2)]
        page = web.post(reverse("uploads", args=[project.slug]), {"file": files[0]})
        door = Client().post(
            reverse("api-uploads"),
            {"file": files[1]},
            headers=token,
        )
        assert (page.status_code, door.status_code) == (302, 201)
        assert opened == ["1.jsonl", "2.jsonl"]

    @pytest.mark.parametrize(
        ("path", "headers"),
        [
            ("/projects/desk/uploads/", {}),
            ("/api/v1/uploads", {}),
            ("/api/v1/projects/desk/uploads/", {}),
            ("/sign-in/", {"Cookie": "sessionid=x"}),
            ("/api/v1/projects/desk/signals/", {"Authorization": "Bearer x"}),
            ("/no/such/page", {"Cookie": "sessionid=x"}),
        ],
    )
    def test_a_body_over_two_mebibytes_is_refused_unread(
        self, stranger, db, path, headers
    ):
        declared = {"Content-Length": str(2 * MEBIBYTE + 1)}
        answer = stranger.post(
            path,
            b"x",
            content_type="multipart/form-data; boundary=b",
            headers={**headers, **declared},
        )
        assert answer.status_code == 413
        assert "larger than 2.1 MB" in answer.content.decode()

    def test_a_length_of_thousands_of_digits_is_too_large(self, stranger, db):
        answer = stranger.post(
            "/sign-in/",
            b"x",
            content_type="text/plain",
            headers={"Content-Length": "9" * 5000},
        )
        assert answer.status_code == 413

    def test_a_large_file_of_a_member_is_not_taken_for_a_strangers(self, web, project):
        url = reverse("uploads", args=[project.slug])
        answer = web.post(url, {"file": file_of(3 * MEBIBYTE)})
        assert answer.status_code == 302
        assert Upload.objects.get().size == 3 * MEBIBYTE


class TestFilesOverTheLimit:
    """They are refused with 413 and the limit, however little they are over it."""

    @pytest.fixture(autouse=True)
    def limit(self, settings):
        settings.MAX_UPLOAD_BYTES = 1_000

    def test_one_byte_over_is_too_large(self, web, project, uploads_dir):
        url = reverse("uploads", args=[project.slug])
        answer = web.post(url, {"file": file_of(1_001)})
        assert answer.status_code == 413
        assert "This file is larger than 1 kB" in sentence_of(answer)
        assert [p for p in uploads_dir.rglob("*") if p.is_file()] == []

    def test_exactly_the_limit_is_taken(self, web, project):
        url = reverse("uploads", args=[project.slug])
        assert web.post(url, {"file": file_of(1_000)}).status_code == 302

    def test_it_is_too_large_beside_a_small_one_too(self, web, project, uploads_dir):
        url = reverse("uploads", args=[project.slug])
        files = [file_of(10, "small.json"), file_of(1_001, "large.json")]
        assert web.post(url, {"file": files}).status_code == 413
        assert not Upload.objects.exists()
        assert [p for p in uploads_dir.rglob("*") if p.is_file()] == []

    def test_a_form_whose_token_was_cut_off_is_too_large_not_too_old(
        self, stranger, owner, project
    ):
        stranger.force_login(owner)
        url = reverse("uploads", args=[project.slug])
        assert "csrftoken" in stranger.get(url).cookies
        answer = stranger.post(url, {"file": file_of(1_001)})
        assert answer.status_code == 413
        assert "This file is larger" in sentence_of(answer)

    def test_the_json_door_says_the_same(self, token):
        url = reverse("api-uploads")
        answer = Client().post(url, {"file": file_of(1_001)}, headers=token)
        assert answer.status_code == 413
        assert "This file is larger than 1 kB" in answer.json()["detail"]

    def test_several_files_together_are_not_called_one_file(self, web, project):
        url = reverse("uploads", args=[project.slug])
        answer = web.post(url, {"file": [file_of(900) for _ in range(100)]})
        assert answer.status_code == 413
        sentence = sentence_of(answer)
        assert "This request is larger than 1 kB" in sentence
        assert "fewer files" in sentence
