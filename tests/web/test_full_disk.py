"""A disk without room: a sentence with 507, and no half file that keeps it full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from apps.traces.models import Upload
from apps.traces.storage import incoming_folder, receive
from tests.factories import CHAT, chat_bytes


@pytest.fixture
def full_disk(monkeypatch):
    """Nothing can be made durable any more."""

    def fsync(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)


def test_bytes_that_could_not_be_made_durable_are_removed(full_disk):
    before = set(incoming_folder().iterdir())
    with pytest.raises(OSError, match="No space"):
        receive([b"x" * 1_000_000], limit=10**9, name="a.jsonl")
    assert set(incoming_folder().iterdir()) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has none")
def test_bytes_that_could_not_be_written_are_removed(monkeypatch):
    before = set(incoming_folder().iterdir())
    real = os.fdopen

    def opened(descriptor: int, mode: str):
        os.close(descriptor)
        return real(os.open("/dev/full", os.O_WRONLY), mode)

    monkeypatch.setattr(os, "fdopen", opened)
    with pytest.raises(OSError, match="No space"):
        receive([b"x" * 5_000, b"x" * 5_000], limit=10**9, name="a.jsonl")
    assert set(incoming_folder().iterdir()) == before


@pytest.mark.django_db
@pytest.mark.parametrize("accept", ["text/html", "application/json"])
def test_a_file_for_a_full_disk_is_507_in_words(
    client, owner, project, full_disk, accept
):
    client.force_login(owner)
    client.raise_request_exception = False
    file = SimpleUploadedFile("a.jsonl", chat_bytes(CHAT))
    answer = client.post(
        reverse("uploads", args=[project.slug]),
        {"file": file},
        headers={"Accept": accept},
    )
    assert answer.status_code == 507
    assert "The disk of this site is full" in answer.content.decode()
    assert not Upload.objects.exists()
