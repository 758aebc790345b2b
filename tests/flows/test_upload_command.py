"""`manage.py upload` against a real server with a real worker."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from apps.accounts.operations import create_token
from apps.accounts.permissions import Scope
from apps.traces.models import Trace, Upload
from tests.conftest import ROOT
from tests.factories import CHAT, chat_bytes
from tests.formats.benchmark_files import harbor_job

FILES = {
    "run1/a.jsonl": chat_bytes(CHAT),
    "run1/b.jsonl": chat_bytes(CHAT, CHAT),
    "run2/c.jsonl": chat_bytes(CHAT) + b"\n",
    ".git/config": b"[core]",
}


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "results"
    for name, content in FILES.items():
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return made


@pytest.fixture
def secret_with(owner, project):
    def made(*scopes: Scope) -> str:
        _, secret = create_token(
            project=project, name="ci", scopes=scopes, user=owner, now=timezone.now()
        )
        return secret

    return made


@pytest.fixture
def server(transactional_db, uploads_dir):
    started = LiveServer("localhost")
    yield started
    started.stop()


@pytest.fixture
def upload(server):
    """Calls the command as somebody on another machine would, without settings."""

    def called(*words: object, token: str, to: str = ""):
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DJANGO", "EVALSITE", "DATABASE", "REDIS"))
        }
        names = [*map(str, words), "--to", to or server.url]
        return subprocess.run(
            [sys.executable, "manage.py", "upload", *names],
            cwd=ROOT,
            env={**kept, "DATABASE_URL": "nowhere", "EVALSITE_TOKEN": token},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return called


def test_each_file_is_sent_once_waited_for_and_cheap_to_send_again(
    processes, upload, folder, secret_with
):
    processes.worker()
    token = secret_with(Scope.UPLOAD, Scope.READ)
    first = upload(folder, "--each", "--wait", token=token)
    assert (first.returncode, first.stderr) == (0, "")
    assert "3 files: 3 sent." in first.stdout
    assert "results/run1/b.jsonl: openai-chat, 2 traces, 2 model calls" in first.stdout
    assert "results/run1/a.jsonl: openai-chat, 1 trace, 1 model call (" in first.stdout
    assert first.stdout.count("/uploads/") == 3
    assert Trace.objects.count() == 4
    again = upload(folder, "--each", "--wait", token=token)
    assert again.returncode == 0
    assert "3 files: 3 here already." in again.stdout
    assert Upload.objects.count() == 3


def test_what_cannot_be_sent_or_read_is_said_and_ends_with_one(
    processes, upload, folder, secret_with
):
    processes.worker()
    (folder / "empty.json").write_bytes(b"")
    (folder / "page.html").write_bytes(b"<html><body>Hello</body></html>")
    token = secret_with(Scope.UPLOAD, Scope.READ)
    done = upload(folder, folder / "gone.json", "--each", "--wait", token=token)
    assert done.returncode == 1
    assert "empty.json: not sent. It is empty: it has 0 bytes." in done.stdout
    assert "gone.json: not sent. It cannot be opened" in done.stdout
    assert "page.html: not read." in done.stdout
    assert "6 files: 4 sent, 2 not sent, 1 not read." in done.stdout


def test_a_dry_run_sends_nothing(upload, folder, secret_with):
    done = upload(
        folder, "--each", "--dry-run", token=secret_with(Scope.UPLOAD, Scope.READ)
    )
    assert done.returncode == 0
    assert "3 files: 3 would be sent." in done.stdout
    assert not Upload.objects.exists()


def test_a_folder_as_one_zip_is_the_same_upload_the_second_time(
    upload, folder, secret_with
):
    token = secret_with(Scope.UPLOAD, Scope.READ)
    for expected in ("1 file: 1 sent.", "1 file: 1 here already."):
        done = upload(folder, token=token)
        assert expected in done.stdout
        assert "one zip of 3 files. Left out as hidden" in done.stdout
    assert Upload.objects.get().name == "results.zip"


def test_a_harbor_folder_is_read_as_trials_with_their_outcomes(
    processes, upload, tmp_path, secret_with
):
    processes.worker()
    folder = harbor_job(tmp_path / "job")
    token = secret_with(Scope.UPLOAD, Scope.READ)
    done = upload(folder, "--wait", token=token)
    assert "job.zip: harbor-trial, 1 trace, " in done.stdout
    assert "0 records not read" in done.stdout
    assert [one.outcome for one in Trace.objects.all()] == ["pass"]


def test_a_folder_beyond_the_sites_limit_names_the_other_way(
    upload, folder, secret_with, settings
):
    settings.MAX_UPLOAD_BYTES = 100
    done = upload(folder, token=secret_with(Scope.UPLOAD, Scope.READ))
    assert done.returncode == 1
    assert "--each sends its files one by one." in done.stdout


def test_a_token_that_may_only_upload_sends_and_changes_nothing_twice(
    upload, folder, secret_with
):
    token = secret_with(Scope.UPLOAD)
    assert "3 files: 3 sent." in upload(folder, "--each", token=token).stdout
    assert "3 files: 3 here already." in upload(folder, "--each", token=token).stdout
    waiting = upload(folder, "--wait", token=token)
    assert waiting.returncode == 1
    assert "lacks the scope" in waiting.stderr


def test_a_dead_token_stops_at_once_with_the_servers_sentence(upload, folder):
    done = upload(folder, token="evs_no")
    assert done.returncode == 1
    assert done.stderr == "This token is unknown or was revoked.\n"
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("token", "to", "sentence"),
    [("", "", "EVALSITE_TOKEN"), ("evs_x", "host", "no address of a site")],
)
def test_a_wrong_call_ends_with_two(upload, folder, token, to, sentence):
    done = upload(folder, token=token, to=to)
    assert done.returncode == 2
    assert sentence in done.stderr
