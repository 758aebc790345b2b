"""A folder becomes one zip, the same one each time, without what tools leave in it."""

from __future__ import annotations

import errno
import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from evalsite import packing
from evalsite.packing import CannotPack, packed

FILES = {
    "b/two.json": b"two" * 1000,
    "a.json": b"one",
    "b.json": b"three",
    ".git/config": b"x",
    "b/node_modules/m/package.json": b"x",
    "b/__pycache__/m.pyc": b"x",
    "b/.DS_Store": b"x",
}


@pytest.fixture
def folder(tmp_path):
    return filled(tmp_path / "results", FILES)


def filled(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def sha256(folder: Path) -> str:
    with packed(folder, say=lambda _: None) as made:
        return hashlib.sha256(made.read()).hexdigest()


def test_names_are_sorted_and_what_is_left_out_is_said(folder):
    said: list[str] = []
    with packed(folder, say=said.append) as made, zipfile.ZipFile(made) as whole:
        assert whole.namelist() == ["a.json", "b.json", "b/two.json"]
        assert whole.read("b/two.json") == FILES["b/two.json"]
        assert {one.compress_type for one in whole.infolist()} == {zipfile.ZIP_DEFLATED}
    [line] = said
    assert line.startswith("one zip of 3 files. Left out as hidden, made by tools")
    assert line.endswith(": .git/, b/.DS_Store, b/__pycache__/, b/node_modules/")


def test_the_same_files_make_the_same_bytes_at_another_time_and_place(folder, tmp_path):
    twin = filled(tmp_path / "later", dict(reversed(FILES.items())))
    for path in twin.rglob("*"):
        path.chmod(0o700)
        os.utime(path, (1e9, 1e9))
    (twin / ".git" / "config").write_bytes(b"another commit")
    assert sha256(twin) == sha256(folder)
    (twin / "a.json").write_bytes(b"One")
    assert sha256(twin) != sha256(folder)


def test_a_folder_without_files_is_refused_in_words(tmp_path):
    filled(tmp_path, {".hidden": b"x"})
    with pytest.raises(CannotPack, match=r"^It holds no files. Left out .*: .hidden.$"):
        packed(tmp_path, say=print)


def test_more_files_than_one_zip_may_have_are_refused_in_words(folder, monkeypatch):
    monkeypatch.setattr(packing, "MAX_MEMBERS", 2)
    with pytest.raises(CannotPack, match=r"^It holds 3 files, and 2 fit .* --each\.$"):
        packed(folder, say=print)


def test_a_file_that_cannot_be_read_is_named_and_nothing_is_dropped(
    folder, monkeypatch
):
    opened = Path.open

    def refuse(path, *words, **more):
        if path.name == "two.json":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *words, **more)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(
        CannotPack, match=r"two\.json cannot be read: Permission denied"
    ):
        packed(folder, say=print)


def test_a_file_larger_than_old_zips_allow_has_room(folder, monkeypatch):
    monkeypatch.setattr(packing, "_WIDE_FROM", 1)
    with packed(folder, say=print) as made, zipfile.ZipFile(made) as whole:
        assert whole.testzip() is None


def test_links_to_folders_are_left_out(folder):
    (folder / "again").symlink_to(folder)
    said: list[str] = []
    packed(folder, say=said.append).close()
    assert "again/" in said[0]
