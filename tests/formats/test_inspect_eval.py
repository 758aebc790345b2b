"""The .eval files of Inspect AI: finished or not, alone or several in one archive."""

from __future__ import annotations

import pytest

from apps.engine.format import Note, Opened
from apps.engine.reading.unpack import TooLarge
from tests.formats.archives import archive_items, zip_of, zstd_zip_of
from tests.formats.benchmark_files import INSPECT_RUN, inspect_log, sample
from tests.formats.reading import as_json, rejected_of, traces_of


def eval_files(root="", **more):
    return {
        f"{root}_journal/start.json": as_json({"version": 2, "eval": {"task": "quiz"}}),
        f"{root}samples/q1_epoch_1.json": as_json(sample(*INSPECT_RUN, epoch=1)),
        f"{root}samples/q1_epoch_2.json": as_json(sample(*INSPECT_RUN)),
        f"{root}summaries.json": as_json([{"id": "q1"}]),
        **more,
    }


def test_an_eval_file_is_one_upload_with_a_trace_for_each_sample():
    files = eval_files(**{"header.json": as_json(inspect_log() | {"samples": None})})
    items = archive_items(zip_of(files))
    found = [(one.task, one.trial) for one in items if hasattr(one, "steps")]
    assert found == [("quiz/q1", 1), ("quiz/q1", 2)]
    assert not rejected_of(items)
    assert [one.format for one in items if isinstance(one, Opened)] == ["inspect-eval"]
    assert traces_of(as_json(inspect_log(sample(*INSPECT_RUN))))[0].steps == next(
        one.steps for one in items if hasattr(one, "steps")
    )


def test_a_log_that_was_not_finished_is_read_and_said():
    items = archive_items(zip_of(eval_files()))
    assert sum(hasattr(one, "steps") for one in items) == 2
    notes = [one.sentence for one in items if isinstance(one, Note)]
    assert any("did not finish" in note for note in notes)


def test_a_log_without_any_sample_is_refused_in_a_sentence():
    start = {"_journal/start.json": as_json({"version": 2, "eval": {"task": "quiz"}})}
    with pytest.raises(Exception, match="no sample that was finished"):
        archive_items(zip_of(start))


def test_logs_unpacked_into_one_folder_are_kept_apart():
    items = archive_items(zip_of(eval_files("one/") | eval_files("two/")))
    assert sum(hasattr(one, "steps") for one in items) == 4
    assert len([one for one in items if isinstance(one, Opened)]) == 2


def test_several_eval_files_in_one_archive_are_one_upload():
    whole, broken = zip_of(eval_files()), zip_of({"notes.txt": b"x"})
    items = archive_items(
        zip_of({"logs/a.eval": whole, "logs/b.eval": whole, "logs/c.eval": broken})
    )
    assert sum(hasattr(one, "steps") for one in items) == 4
    [bad] = rejected_of(items)
    assert "logs/c.eval" in bad.place
    assert "no log of Inspect" in bad.reason


def test_eval_files_in_one_archive_share_one_limit(monkeypatch):
    monkeypatch.setattr("apps.engine.formats.inspect_ai.MAX_UNPACKED_BYTES", 6000)
    whole = zip_of(eval_files())
    assert len(as_json(sample(*INSPECT_RUN))) > 2000
    with pytest.raises(TooLarge):
        archive_items(zip_of({"a.eval": whole, "b.eval": whole}))


def test_a_sample_packed_with_zstandard_is_read():
    items = archive_items(
        zstd_zip_of("samples/q_epoch_2.json", as_json(sample(*INSPECT_RUN)))
    )
    assert [one.trial for one in items if hasattr(one, "steps")] == [2]
