"""Archives of traces: every good file is read, every other one is accounted for."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
import zlib
from contextlib import suppress

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from apps.engine import formats
from apps.engine.format import Opened, Progress, UnreadableTrace
from apps.engine.formats import TooLarge, read_file
from apps.engine.reading import members
from apps.engine.trace import Trace
from tests.formats.archives import (
    archive_items,
    hand_made_zip,
    members_of,
    tar_of,
    zip_of,
    zstd_zip_of,
)
from tests.formats.otlp_files import as_protobuf, call
from tests.formats.reading import (
    as_json,
    lines,
    messages,
    notes_of,
    rejected_of,
    traces_of,
)

CHAT = as_json(messages("hello", "hi"))
MANY = lines(*[{"messages": messages("a", str(n))} for n in range(3)])
SPANS = as_protobuf(call(1))
FILES = {"b/many.jsonl": MANY, "a/chat.json": CHAT, "spans.pb": SPANS}
COUNTS = {"a/chat.json": 1, "b/many.jsonl": 3, "spans.pb": 1}


def refusal(data: bytes, **options) -> str:
    with pytest.raises(UnreadableTrace) as refused:
        archive_items(data, **options)
    return str(refused.value)


@pytest.mark.parametrize(
    "data",
    [
        zip_of(FILES),
        zip_of(FILES, zipfile.ZIP_STORED),
        tar_of(FILES),
        tar_of(FILES, form=tarfile.GNU_FORMAT),
        tar_of(FILES, form=tarfile.USTAR_FORMAT),
        tar_of(FILES, "w:gz"),
        zstandard.compress(tar_of(FILES)),
        zip_of({name: gzip.compress(data) for name, data in FILES.items()}),
        tar_of({name: zstandard.compress(data) for name, data in FILES.items()}),
    ],
    ids=["deflate", "stored", "pax", "gnu", "ustar", "tar.gz", "tar.zst",
         "gz in zip", "zst in tar"],
)  # fmt: skip
def test_it_reads_each_member_as_a_file_of_its_own_in_the_order_of_names(data):
    items = archive_items(data)
    found = [item for item in items if isinstance(item, Trace)]
    assert members_of(items) == COUNTS
    assert list(members_of(items)) == sorted(COUNTS)
    assert found == [*traces_of(CHAT), *traces_of(MANY), *traces_of(SPANS)]
    assert not rejected_of(items)


def test_it_reads_zstandard_members():
    items = archive_items(zstd_zip_of("a.json", CHAT))
    assert members_of(items) == {"a.json": 1}
    assert not rejected_of(items)


def test_it_reads_the_real_zstandard_archives_to_their_last_byte(shared_data):
    for path in sorted((shared_data / "inspect_eval_zip").glob("*.eval")):
        with path.open("rb") as file:
            items = list(read_file(file))
        assert not [one for one in rejected_of(items) if "archive says" in one.reason]
        assert len([i for i in items if isinstance(i, Opened)]) >= 1, path


def test_it_reads_every_member_of_the_mixed_archive_as_it_reads_it_alone(shared_data):
    """The index counts no trace here, because it does not look inside; there are three
    of Traceloop, and those of the Agents SDK where a reader for them is there."""
    path = shared_data / "traps/mixed.zip"
    alone = []
    with zipfile.ZipFile(path) as archive:
        for name in ("a/openai_agents.jsonl", "b/traceloop.otlp.json"):
            try:
                alone += traces_of(archive.read(name))
            except UnreadableTrace:
                assert name.startswith("a/")
    items = archive_items(path.read_bytes())
    assert [item for item in items if isinstance(item, Trace)] == alone
    assert members_of(items)["b/traceloop.otlp.json"] == 3
    note = notes_of(items)["not_traces"]
    assert (note.count, "__MACOSX/._x, notes.txt" in note.sentence) == (2, True)


def test_it_says_which_reader_read_each_member():
    opened = [i for i in archive_items(zip_of(FILES)) if isinstance(i, Opened)]
    assert [(one.member, one.format) for one in opened] == [
        ("a/chat.json", "openai-chat"),
        ("b/many.jsonl", "openai-chat"),
        ("spans.pb", "otlp-protobuf"),
    ]
    [plain] = [i for i in read_file(io.BytesIO(CHAT)) if isinstance(i, Opened)]
    assert (plain.member, plain.format) == ("", "openai-chat")


def test_the_place_of_a_bad_record_begins_with_its_member():
    items = archive_items(zip_of({"run1/t.jsonl": MANY + b"{bad\n" + MANY}))
    [rejected] = rejected_of(items)
    assert rejected.place == "run1/t.jsonl, line 4, column 2"
    assert members_of(items) == {"run1/t.jsonl": 6}


def test_it_lists_what_looks_like_a_trace_and_counts_the_rest():
    items = archive_items(
        zip_of(
            {
                "good.json": CHAT,
                "odd.json": b'{"hello": 1}',
                "words.json": b"plain words",
                "README.md": b"# Runs",
                "sub/": b"",
                "sub/.DS_Store": b"\0\0",
                "__MACOSX/._good.json": CHAT,
                "x.png": b"\x89PNG\0",
                "empty.log": b"",
                "empty.jsonl": b"",
            }
        )
    )
    assert members_of(items) == {"good.json": 1}
    reasons = {one.place: one.reason for one in rejected_of(items)}
    assert sorted(reasons) == ["empty.jsonl", "odd.json", "words.json"]
    assert '"hello"' in reasons["odd.json"]
    assert "empty" in reasons["empty.jsonl"]
    note = notes_of(items)["not_traces"]
    assert note.count == 5
    assert "README.md" in note.sentence


def test_a_member_that_breaks_off_does_not_take_the_others_with_it():
    bad = b'[{"role": "user", "content": "x"}, {"role": "assis'
    items = archive_items(zip_of({"a.json": CHAT, "b.json": bad, "c.json": CHAT}))
    assert members_of(items) == {"a.json": 1, "b.json": 0, "c.json": 1}
    assert [one.place.split(",")[0] for one in rejected_of(items)] == ["b.json"]


def test_a_reader_that_breaks_on_one_member_leaves_the_others(monkeypatch):
    class Breaks:
        slug, label, version, description = "breaks", "", 1, ""

        def recognises(self, source):
            return source.name == "b.json"

        def read(self, _source):
            raise KeyError("x")
            yield

    monkeypatch.setattr(formats, "FORMATS", (Breaks(), *formats.FORMATS))
    items = archive_items(zip_of({"a.json": CHAT, "b.json": CHAT, "c.json": CHAT}))
    assert members_of(items) == {"a.json": 1, "b.json": 0, "c.json": 1}
    [rejected] = rejected_of(items)
    assert "reader broke on this member (KeyError)" in rejected.reason


def test_the_chosen_format_is_used_for_every_member():
    items = archive_items(zip_of(FILES), format_override="openai-chat")
    opened = {i.format for i in items if isinstance(i, Opened)}
    assert opened == {"openai-chat"}
    assert [one.place.split(",")[0] for one in rejected_of(items)] == ["spans.pb"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (zip_of({}), "archive is empty"),
        (zip_of({"a/": b""}), "archive is empty"),
        (zip_of({"README": b"x", "b.png": b"\x89PNG\0"}), "It holds README, b.png."),
        (zip_of({"x.json": b"{}"}), "x.json: The file is JSON"),
        (gzip.compress(zip_of(FILES), mtime=0), "upload the archive itself"),
        (zip_of({"in.zip": zip_of(FILES)}), "upload the archive itself"),
        (zip_of({"in.tgz": tar_of(FILES, "w:gz")}), "upload the archive itself"),
        (tar_of({"in.tar": tar_of(FILES)}), "upload the archive itself"),
    ],
)  # fmt: skip
def test_an_archive_without_any_trace_is_refused_with_what_was_inside(data, words):
    assert words in refusal(data)


def test_names_are_labels_and_nothing_is_written_under_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ["../../evil.json", "/abs/evil.json", "C:\\w.json", "a\x1bb\u202egpj.json"]
    data = hand_made_zip([(n.encode(), CHAT, CHAT, {}) for n in names])
    items = archive_items(data)
    assert sorted(members_of(items)) == [
        "../../evil.json", "/abs/evil.json", "C:/w.json", "a\ufffdb\ufffdgpj.json",
    ]  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_equal_names_and_names_that_are_no_utf8_stay_apart():
    names = [b"a.json", b"a.json", b"A.json", b"caf\x82.json", b"nul\0.json"]
    items = archive_items(hand_made_zip([(n, CHAT, CHAT, {}) for n in names]))
    assert members_of(items) == dict.fromkeys(
        ["A.json", "a.json", "a.json (number 2)", "café.json", "nul\ufffd.json"], 1
    )


def test_links_and_devices_are_named_and_never_followed():
    buffer = io.BytesIO(tar_of({"a.json": CHAT}))
    with tarfile.open(fileobj=buffer, mode="a") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE):
            entry = tarfile.TarInfo(f"kind{kind.decode()}.json")
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry)
    items = archive_items(buffer.getvalue())
    assert members_of(items) == {"a.json": 1}
    assert notes_of(items)["not_traces"].count == 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"flags": 1}, "encrypted"),
        ({"method": 14}, "LZMA"),
        ({"method": 77}, "method 77"),
        ({"start": 7}, "No member begins"),
        ({"start": 2**32 - 2}, "No member begins"),
        ({"size": 3}, "size is given as 3 bytes"),
        ({"crc": 5}, "checksum is another one"),
        ({"method": 8}, "cannot be unpacked"),
    ],
)
def test_a_member_that_lies_is_listed_and_the_others_are_read(changes, words):
    data = hand_made_zip(
        [(b"bad.json", CHAT, CHAT, changes), (b"good.json", CHAT, CHAT, {})]
    )
    items = archive_items(data)
    assert members_of(items)["good.json"] == 1
    [rejected] = rejected_of(items)
    assert rejected.place == "bad.json"
    assert words in rejected.reason


def test_members_that_share_their_bytes_are_refused_and_the_first_is_read():
    data = hand_made_zip(
        [(f"{n}.json".encode(), CHAT, CHAT, {"start": 0}) for n in range(5)]
    )
    items = archive_items(data)
    assert members_of(items) == {"0.json": 1}
    assert len(rejected_of(items)) == 4
    assert "shares its bytes" in rejected_of(items)[0].reason


@pytest.mark.parametrize("size", [0.5, 0.9, 0.98])
def test_a_zip_that_is_cut_off_keeps_the_members_before_the_cut(size):
    files = {f"{n}.json": as_json(messages("x" * 200, str(n))) for n in range(20)}
    whole = zip_of(files, zipfile.ZIP_STORED)
    items = archive_items(whole[: int(len(whole) * size)])
    assert sum(members_of(items).values()) >= 20 * size * 0.7
    assert "archive_directory_damaged" in notes_of(items)


def test_a_zip_with_a_damaged_directory_is_read_from_its_start():
    whole = zip_of({"a.json": CHAT, "b.json": CHAT})
    items = archive_items(whole.replace(b"PK\x01\x02", b"PK\x09\x09"))
    assert members_of(items) == {"a.json": 1, "b.json": 1}


@pytest.mark.parametrize("packing", [bytes, gzip.compress, zstandard.compress])
def test_a_tar_that_is_cut_off_keeps_the_members_before_the_cut(packing):
    files = {f"{n:02}.json": as_json(messages("x" * 900, str(n))) for n in range(20)}
    whole = tar_of(files)
    for cut in (100, 600, 1100, 1600):
        items = archive_items(packing(whole[: 20 * 1536 - cut]))
        assert sum(members_of(items).values()) in {18, 19}
        said = [*rejected_of(items), *notes_of(items)]
        assert said, cut


def test_it_refuses_more_bytes_than_the_limit_whatever_the_members_claim():
    data = hand_made_zip([
        (b"a.json", CHAT, CHAT, {}),
        (b"b.json", zlib.compress(b" " * 100_000, 9, -15), b"", {"method": 8, "size": 9}),
    ])  # fmt: skip
    with pytest.raises(TooLarge, match="which is the limit"):
        archive_items(data, max_unpacked_bytes=50_000)
    with pytest.raises(TooLarge, match="which is the limit"):
        archive_items(tar_of(FILES, "w:gz"), max_unpacked_bytes=5_000)


def test_it_refuses_members_that_grow_beyond_any_trace_together():
    long = as_json(messages("x" * 12_000_000, "y"))
    data = zip_of({f"{n}.json": long for n in range(4)})
    with pytest.raises(TooLarge, match="grows more than"):
        archive_items(data)


@pytest.mark.parametrize("make", [zip_of, tar_of])
def test_it_refuses_more_members_than_anyone_sends(make, monkeypatch):
    monkeypatch.setattr(members, "MAX_MEMBERS", 10)
    data = make({f"{n}.json": CHAT for n in range(11)})
    with pytest.raises(TooLarge, match="more than 10 members"):
        archive_items(data)
    assert (
        len(members_of(archive_items(make({f"{n}.json": CHAT for n in range(10)}))))
        == 10
    )


def test_progress_never_goes_back_and_ends_at_the_whole():
    items = archive_items(zip_of({n: gzip.compress(d) for n, d in FILES.items()}))
    progress = [item for item in items if isinstance(item, Progress)]
    read = [item.bytes_read for item in progress]
    assert read == sorted(read)
    assert (
        progress[-1].bytes_read
        == progress[-1].bytes_total
        >= sum(map(len, FILES.values()))
    )


@given(data=st.data())
def test_damage_anywhere_gives_a_reading_or_a_sentence(data):
    files = {"a.json": CHAT, "b.jsonl": MANY, "d/README": b"words"}
    make = data.draw(st.sampled_from([zip_of, tar_of, lambda f: tar_of(f, "w:gz")]))
    whole = bytearray(make(files))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(4, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(4, len(whole)))
    with suppress(UnreadableTrace):
        for item in rejected_of(archive_items(bytes(whole[:cut]))):
            assert item.reason.endswith(".")
