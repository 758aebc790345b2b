"""Files that belong together are read together by a folder format."""

from __future__ import annotations

import gzip

import pytest

from apps.engine import formats
from apps.engine.format import Opened
from apps.engine.trace import Trace
from tests.formats.archives import (
    RunFolders,
    archive_items,
    hand_made_zip,
    members_of,
    zip_of,
)
from tests.formats.reading import as_json, messages, rejected_of

CHAT = as_json(messages("hello", "hi"))


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(formats, "FOLDER_FORMATS", (RunFolders(),))


def test_a_folder_format_claims_its_groups_and_leaves_the_rest():
    say = {name: as_json({"say": name}) for name in ("z/run.json", "z/parts/1.json")}
    items = archive_items(zip_of({**say, "a.json": CHAT, "zz.json": CHAT}))
    assert members_of(items) == {"a.json": 1, "z": 1, "zz.json": 1}
    names = [item.name for item in items if isinstance(item, Trace)]
    assert names[1] == "z/run.json z/parts/1.json"
    [opened] = [i for i in items if isinstance(i, Opened) and i.member == "z"]
    assert (opened.format, opened.version) == ("run-folder", 3)


def test_a_group_that_breaks_is_listed_under_its_folder():
    files = {"z/run.json": b'{"say": 5, "x": {}}', "a.json": CHAT}
    items = archive_items(zip_of(files))
    assert members_of(items) == {"a.json": 1, "z/run.json": 0}
    [rejected] = rejected_of(items)
    assert rejected.place == "z/run.json"
    assert "TypeError" in rejected.reason


def test_a_file_that_cannot_be_opened_hides_no_other_group():
    say = as_json({"say": "x"})
    files = {"a/run.json": b"", "b/run.json": say, "c/run.json": gzip.compress(b"")}
    items = archive_items(zip_of(files))
    assert members_of(items) == {"b/run.json": 1}
    places = [one.place for one in rejected_of(items)]
    assert places == ["a/run.json", "c/run.json"]


def test_looking_for_groups_counts_against_no_limit():
    data = zip_of({"run.json": as_json({"say": "x" * 9000})})
    assert members_of(archive_items(data, max_unpacked_bytes=9100)) == {"run.json": 1}


def test_what_is_wrong_with_a_member_is_said_once():
    say = as_json({"say": "x"})
    data = hand_made_zip([(b"run.json", say, say, {"crc": 1})])
    [rejected] = rejected_of(archive_items(data))
    assert "checksum" in rejected.reason


def test_the_label_of_every_format_is_known():
    known = formats.labels()
    assert known["run-folder"] == "Run folder"
    assert known["archive"]
    assert known["otlp-json"]


def test_a_group_of_the_whole_archive_is_no_member_of_it():
    files = {"run.json": as_json({"say": "a"}), "parts/1.json": b'{"say": 5}'}
    items = archive_items(zip_of({**files, "parts/2.json": b"{bad", "z.json": CHAT}))
    assert members_of(items) == {"": 0, "z.json": 1}
    assert rejected_of(items)[0].place.startswith("line 1, column")
    assert rejected_of(items)[1].place == "the archive"
