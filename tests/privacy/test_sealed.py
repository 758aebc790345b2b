"""Sealed files: what goes in comes out, from anywhere, and nothing else does."""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.privacy.sealed import (
    CHUNK,
    Damaged,
    SealedWriter,
    WrongKey,
    new_key,
    open_sealed,
    scratch_file,
)

KEY = new_key()


def sealed(data: bytes, key: bytes = KEY, *, pieces: int = 1) -> bytes:
    whole = io.BytesIO()
    writer = SealedWriter(whole, key)
    step = max(1, len(data) // pieces)
    for at in range(0, len(data), step):
        writer.write(data[at : at + step])
    writer.finish()
    return whole.getvalue()


def opened(data: bytes, *keys: bytes):
    return open_sealed(io.BytesIO(data), keys or (KEY,))


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_what_was_sealed_comes_back(size):
    data = bytes(range(256)) * (size // 256 + 1)
    data = data[:size]
    assert opened(sealed(data, pieces=7)).read() == data


@given(st.integers(0, 200_000), st.integers(0, 200_000))
@settings(max_examples=30, deadline=None)
def test_it_can_be_read_from_anywhere(at, size):
    data = b"0123456789" * 15_000
    with opened(sealed(data)) as stream:
        stream.seek(at)
        assert stream.read(size) == data[at : at + size]


def test_an_archive_can_be_read_out_of_it():
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("a.json", b"[1]" * 50_000)
    with zipfile.ZipFile(opened(sealed(whole.getvalue()))) as archive:
        assert archive.read("a.json") == b"[1]" * 50_000


def test_nothing_of_the_content_can_be_seen():
    assert b"canary" not in sealed(b"canary" * 50_000)
    assert sealed(b"same") != sealed(b"same")


def test_an_old_key_still_opens_and_a_foreign_one_does_not():
    data = sealed(b"old")
    assert opened(data, new_key(), KEY).read() == b"old"
    with pytest.raises(WrongKey, match="key"):
        opened(data, new_key())


@pytest.mark.parametrize("at", [9, 20, 33, 40, CHUNK + 60, -1])
def test_one_changed_byte_is_noticed(at):
    data = bytearray(sealed(b"x" * (2 * CHUNK)))
    data[at] ^= 1
    with pytest.raises((Damaged, WrongKey)):
        opened(bytes(data)).read()


@pytest.mark.parametrize("lost", [1, 16, 17, CHUNK, CHUNK + 16, CHUNK + 17])
def test_a_file_that_was_cut_off_is_noticed_at_once(lost):
    data = sealed(b"x" * (2 * CHUNK + 5))
    with pytest.raises(Damaged):
        opened(data[:-lost])


def test_chunks_in_another_order_are_noticed():
    data = sealed(b"a" * CHUNK + b"b" * CHUNK + b"c")
    head, size = 32, CHUNK + 16
    one, two = data[head : head + size], data[head + size : head + 2 * size]
    with pytest.raises(Damaged):
        opened(data[:head] + two + one + data[head + 2 * size :]).read()


class TestScratchFiles:
    @given(st.lists(st.binary(max_size=40_000), max_size=8))
    @settings(max_examples=25, deadline=None)
    def test_what_was_written_can_be_read_by_its_place(self, pieces):
        places, at = [], 0
        with scratch_file(1024) as file:
            for piece in pieces:
                places.append((at, piece))
                at += file.write(piece)
            for start, piece in reversed(places):
                file.seek(start)
                assert file.read(len(piece)) == piece
            assert file.size == at

    def test_what_lies_on_the_disk_cannot_be_read(self):
        with scratch_file(0) as file:
            file.write(b"canary" * 50_000)
            assert b"canary" not in raw_bytes_of(file)


def raw_bytes_of(file) -> bytes:
    file._file.seek(0)
    return file._file.read()
