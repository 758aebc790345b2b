"""What was left behind by processes that were killed goes by itself."""

from __future__ import annotations

import os
import time

from apps.pipeline.tasks import remove_abandoned_files


def test_the_periodic_task_removes_the_folders_of_killed_runs_too(
    db, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gone, fresh = tmp_path / "evalsite-run-999999999-x", tmp_path / "evalsite-run-1-x"
    for folder in (gone, fresh):
        folder.mkdir()
    before = time.time() - 7_200
    os.utime(gone, (before, before))
    remove_abandoned_files()
    assert [path.name for path in tmp_path.iterdir()] == [fresh.name]
