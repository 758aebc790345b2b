"""An archive is one upload of many traces, each with the reader of its own file."""

from __future__ import annotations

import pytest

from apps.engine import formats
from apps.engine.format import Opened
from apps.pipeline.reading import read_upload
from apps.traces.models import RejectedRecord, Trace
from tests.factories import CHAT, NOW, chat_bytes
from tests.formats.archives import tar_of, zip_of
from tests.formats.otlp_files import as_protobuf, call
from tests.pipeline.waiting import expire, read, waiting

SPANS = as_protobuf(call(1))
ONE = chat_bytes(CHAT)


def formats_of(upload) -> list[str]:
    rows = Trace.objects.filter(upload=upload).order_by("ordinal")
    return list(rows.values_list("format", flat=True))


@pytest.mark.parametrize("make", [zip_of, tar_of])
def test_each_trace_has_the_format_of_its_own_member(project, make):
    upload = waiting(project, make({"b.pb": SPANS, "a.json": ONE, "README": b"x"}))
    assert read(upload)
    assert (upload.state, upload.trace_count) == ("done", 2)
    assert formats_of(upload) == ["openai-chat", "otlp-protobuf"]
    assert (upload.format, upload.reader_version) == (formats.ARCHIVE, 1)
    assert [note["code"] for note in upload.notes] == ["not_traces"]


def test_an_archive_of_one_format_is_named_after_it(project):
    upload = waiting(project, zip_of({"a.json": ONE, "b.json": ONE, "c.json": b"{}"}))
    read(upload)
    reader = formats.by_slug("openai-chat")
    assert (upload.format, upload.reader_version) == (reader.slug, reader.version)
    assert (upload.trace_count, upload.rejected_count) == (2, 1)
    assert RejectedRecord.objects.get().place == "c.json"


def test_a_member_without_traces_does_not_name_the_archive(project):
    broken = ONE.replace(b'"role"', b'"rule"')
    upload = waiting(
        project, zip_of({"0.pb": SPANS[:2], "a.json": broken, "b.pb": SPANS})
    )
    read(upload)
    assert formats_of(upload) == ["otlp-protobuf"]
    assert upload.format == "otlp-protobuf"


def test_a_chosen_format_reads_every_member(project):
    upload = waiting(project, zip_of({"a.json": ONE, "b.pb": SPANS}))
    upload.format_override = "openai-chat"
    upload.save()
    read(upload)
    assert formats_of(upload) == ["openai-chat"]
    assert RejectedRecord.objects.get().place.startswith("b.pb")


def test_an_archive_without_traces_fails_with_what_was_inside(project):
    upload = waiting(project, zip_of({"README.md": b"words", "run.log": b"words"}))
    read(upload)
    assert upload.state == "failed"
    assert "It holds README.md, run.log." in upload.failure


def test_an_archive_beyond_the_limit_keeps_nothing(project, settings):
    settings.MAX_UNPACKED_BYTES = len(ONE) * 2
    upload = waiting(project, zip_of({"a.json": ONE, "b.json": ONE + b" " * len(ONE)}))
    read(upload)
    assert (upload.state, upload.trace_count) == ("failed", 0)
    assert "which is the limit" in upload.failure


def test_progress_is_that_of_all_members(project):
    upload = waiting(
        project, zip_of({"a.json": ONE, "b.json": ONE, "b.txt": b"x" * 99})
    )
    read(upload)
    assert upload.bytes_read == upload.bytes_total == 2 * len(ONE) + 99


def test_a_worker_that_dies_inside_an_archive_is_followed_from_there(
    project, monkeypatch
):
    monkeypatch.setattr("apps.traces.batches.COPY_BATCH_STEPS", 1)
    dies = [True]
    real = formats.read_file

    def read_file(*args, **options):
        for item in real(*args, **options):
            if isinstance(item, Opened) and item.member == "3.json" and dies:
                dies.clear()
                raise OSError("the machine went away")
            yield item

    monkeypatch.setattr("apps.pipeline.reading.read_file", read_file)
    files = {f"{n}.json": chat_bytes([*CHAT, {"role": "user", "content": str(n)}])
             for n in range(6)}  # fmt: skip
    upload = waiting(project, zip_of(files))
    with pytest.raises(OSError, match="went away"):
        read_upload(upload_id=upload.pk, clock=lambda: NOW)
    stored = list(Trace.objects.values_list("pk", flat=True))
    assert len(stored) == 3
    expire(upload)
    assert read(upload)
    assert (upload.state, upload.trace_count) == ("done", 6)
    ordinals = Trace.objects.order_by("pk").values_list("ordinal", flat=True)
    assert list(ordinals) == list(range(6))
    assert set(stored) < set(Trace.objects.values_list("pk", flat=True))
    assert upload.format == "openai-chat"
