"""The store of raw bytes: durable once taken over, and swept of what was abandoned."""

from __future__ import annotations

import os
import time

import pytest
from django.core.management import call_command

from apps.traces.storage import (
    Receiver,
    path_of,
    receive,
    remove_abandoned,
    take_over,
)

DAY = 86_400


def half_file(content: bytes = b"half", *, age: float = 0):
    """A file whose process was killed while it arrived, `age` seconds ago."""
    receiver = Receiver(limit=1_000, name="a.json")
    receiver.take(content)
    received = receiver.finish()
    moment = time.time() - age
    os.utime(received.path, (moment, moment))
    return received.path


def test_a_half_file_of_yesterday_is_removed():
    old, young = half_file(age=DAY + 60), half_file(age=DAY - 60)
    assert remove_abandoned() == 1
    assert not old.exists()
    assert young.exists()
    assert remove_abandoned() == 0


def test_what_was_taken_over_is_never_removed():
    received = receive([b"whole"], limit=1_000, name="a.json")
    os.utime(received.path, (0, 0))
    take_over(received)
    assert remove_abandoned(older_than_seconds=0) == 0
    assert path_of(received.sha256).read_bytes() == b"whole"


def test_there_may_be_nothing_to_remove(uploads_dir):
    assert not uploads_dir.exists()
    assert remove_abandoned() == 0


@pytest.mark.django_db
def test_preparing_the_site_removes_half_files(tmp_path, settings, monkeypatch):
    settings.DATA_DIR = tmp_path
    old = half_file(age=2 * DAY)
    module = "evalsite.management.commands.prepare_site"
    # Only the sweep is asked about here; what else it does has tests of its own.
    monkeypatch.setattr(f"{module}.call_command", lambda *_, **__: None)
    monkeypatch.setattr(f"{module}.collect_static_files", lambda _stamp: True)
    call_command("prepare_site", tmp_path / "answer")
    assert not old.exists()


def test_a_new_sub_folder_is_made_durable_too(uploads_dir, monkeypatch):
    received = receive([b"content"], limit=1_000, name="a.json")
    target = path_of(received.sha256)
    synced: list[tuple[int, bool]] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_ino, target.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    take_over(received)
    assert (target.parent.stat().st_ino, True) in synced
    assert (uploads_dir.stat().st_ino, True) in synced
