"""Settings that change while a file is under way, files that come back, and leaks."""

from __future__ import annotations

import io
import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.test.client import MULTIPART_CONTENT
from django.urls import reverse

from apps.accounts.models import Project, RawBytes
from apps.accounts.operations import create_token
from apps.accounts.permissions import Scope
from apps.engine.format import UnreadableTrace
from apps.engine.formats import read_file
from apps.engine.formats.evalsite_writer import dump
from apps.engine.root_input import root_input_hash
from apps.engine.trace import Outcome, OutcomeKind
from apps.engine.trace import Trace as EngineTrace
from apps.pipeline import privacy
from apps.pipeline.flow import EmptyUpload, submit_upload
from apps.traces.models import Task, Trace, Upload
from apps.traces.raw_bytes import UNREAD_RAW_LASTS, forget_old_raw
from apps.traces.storage import keeping_of, path_of, receive
from apps.traces.transitions import RawKept, UploadState
from tests.factories import NOW, decay_trace
from tests.privacy.test_keeping import (
    CANARY,
    DATA,
    KEY,
    choose,
    in_database,
    on_disk,
    read,
    send,
)

pytestmark = pytest.mark.django_db


def as_it_came() -> EngineTrace:
    """The trace of the file, with its secrets."""
    items = read_file(io.BytesIO(DATA), name="a.jsonl")
    return next(item for item in items if isinstance(item, EngineTrace))


def test_a_file_under_way_while_structure_only_is_switched_on_is_reduced(
    project, uploads_dir
):
    """A request holds the project as it was when the request began."""
    received = receive([DATA], limit=10**6, name="a", keeping=keeping_of(project))
    choose(project, structure_only=True)
    submit_upload(project=project, received=received, user=None, now=NOW)
    assert CANARY.encode() not in on_disk(uploads_dir)


def test_what_broke_off_in_a_structure_only_file_is_told_without_its_words(
    project, monkeypatch
):
    project = choose(project, structure_only=True)

    def breaks_off(*_, **__):
        yield decay_trace(3, 2, 1)
        raise UnreadableTrace(f"A number was expected and “{CANARY}” found.")

    monkeypatch.setattr(privacy, "read_file", breaks_off)
    upload = read(send(project))
    assert upload.rejected_count == 1
    assert CANARY not in in_database()


def test_a_structure_that_is_larger_than_an_upload_may_be_is_refused_in_words(
    project, settings, uploads_dir
):
    project = choose(project, structure_only=True)
    settings.MAX_UPLOAD_BYTES = 2_000
    with pytest.raises(EmptyUpload, match=r"2 kB.*strip_trace\.py"):
        send(project, DATA * 50)
    assert not list((uploads_dir / "incoming").iterdir())


def test_a_failed_file_whose_bytes_went_by_age_is_read_when_it_comes_again(project):
    project = choose(project, raw_bytes=RawBytes.NOT_KEPT)
    upload = read(send(project, b"no trace"))
    later = upload.finished_at + UNREAD_RAW_LASTS * 2
    assert forget_old_raw(now=later) == 1
    again = send(project, b"no trace")
    assert again == upload
    assert (again.state, again.raw_kept) == (UploadState.RECEIVED, RawKept.UNTIL_READ)
    assert path_of(again.sha256).exists()
    assert read(again).state == UploadState.FAILED


def test_a_failed_file_whose_bytes_are_gone_is_read_as_another_format(project):
    project = choose(project, raw_bytes=RawBytes.NOT_KEPT)
    upload = read(send(project, DATA, format_override="langfuse"))
    assert upload.state == UploadState.FAILED
    assert forget_old_raw(now=upload.finished_at + UNREAD_RAW_LASTS * 2) == 1
    assert read(send(project, DATA, format_override="openai-chat")).trace_count == 1


class TestWithoutTheKey:
    """A project that wants its bytes encrypted, on a site that has lost its key."""

    @pytest.fixture(autouse=True)
    def lost(self, project):
        Project.objects.update(raw_bytes=RawBytes.ENCRYPTED)

    def test_the_page_asks_to_wait(self, client, owner, project, uploads_dir):
        client.force_login(owner)
        client.raise_request_exception = False
        answer = client.post(
            reverse("uploads", args=[project.slug]),
            {"file": SimpleUploadedFile("a.jsonl", DATA)},
        )
        assert (answer.status_code, answer["Retry-After"]) == (503, "60")
        assert "EVALSITE_RAW_KEY" in answer.content.decode()
        assert CANARY.encode() not in on_disk(uploads_dir)

    @pytest.mark.parametrize("is_form", [True, False])
    def test_the_api_asks_to_wait(self, project, owner, is_form):
        _, secret = create_token(
            project=project, name="ci", scopes=[Scope.UPLOAD], user=owner, now=NOW
        )
        form = {"file": SimpleUploadedFile("a.jsonl", DATA)}
        answer = Client(raise_request_exception=False).post(
            reverse("api-uploads"),
            form if is_form else DATA,
            content_type=MULTIPART_CONTENT if is_form else "application/json",
            headers={"Authorization": f"Bearer {secret}"},
        )
        assert answer.status_code == 503
        assert "EVALSITE_RAW_KEY" in answer.json()["sentence"]

    def test_the_resumable_upload_asks_to_wait(self, client, owner, project):
        client.force_login(owner)
        client.raise_request_exception = False
        tus = {"Tus-Resumable": "1.0.0"}
        begun = client.post(
            reverse("upload-parts", args=[project.slug]),
            headers={**tus, "Upload-Length": str(len(DATA))},
        )
        answer = client.patch(
            begun["Location"],
            DATA,
            content_type="application/offset+octet-stream",
            headers={**tus, "Upload-Offset": "0"},
        )
        assert answer.status_code == 503


def test_a_secret_in_what_a_trace_is_called_after_is_replaced_too(project):
    """Some formats take its name, its task or its outcome from what was said."""
    said = f"My key is {KEY}"
    verdict = Outcome(kind=OutcomeKind.FAIL, label=f"It told {KEY} to all")
    trace = decay_trace(3, 2, 1, name=said, task=said, outcome=verdict)
    upload = read(send(project, dump(trace)))
    assert upload.trace_count == 1
    assert KEY not in in_database() + str(Task.objects.values_list("key", "title"))
    assert "My key is [redacted" in Trace.objects.get().name


def test_inputs_that_differ_only_in_a_secret_are_no_trials_of_one_task(project):
    def asked(mail: str) -> bytes:
        said = {"role": "user", "content": f"Reset the password of {mail}, please."}
        done = {"role": "assistant", "content": "Done."}
        return json.dumps({"messages": [said, done]}).encode() + b"\n"

    read(send(project, asked("a@acme.com") + asked("b@acme.com") + asked("a@acme.com")))
    rows = Trace.objects.order_by("pk").values_list("task_id", "trial")
    [first, second, third] = rows
    assert second == (None, None)
    assert first[0] == third[0] is not None
    assert (first[1], third[1]) == (0, 1)


def test_the_hash_of_an_input_with_a_secret_cannot_be_made_without_the_sites_key(
    project, settings
):
    read(send(project))
    hashed = Trace.objects.get().input_hash
    assert hashed is not None
    assert hashed != root_input_hash(as_it_came())
    Upload.objects.all().delete()
    settings.SECRET_KEY = "another"
    read(send(project))
    assert Trace.objects.get().input_hash != hashed
