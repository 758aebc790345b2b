"""The receipt of an upload: what was read, corrected, replaced, and by whom."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from apps.engine.formats.evalsite_writer import dump
from apps.engine.trace import Usage, UsageState
from apps.reports.words import expected
from apps.traces.models import Upload
from apps.traces.transitions import RawKept
from tests.factories import (
    chat_bytes,
    decay_trace,
    model_call,
    trace_of,
    upload_bytes,
    upload_traces,
)
from tests.formats.archives import zip_of
from tests.formats.benchmark_files import INSPECT_RUN, inspect_log, sample
from tests.formats.reading import as_json
from tests.pipeline.waiting import read

CHAT = [
    {"role": "user", "content": "Where is parcel A-1?"},
    {"role": "assistant", "content": "In Graz."},
]


def receipt(web, upload: Upload) -> str:
    answer = web.get(reverse("upload", args=[upload.project.slug, upload.pk]))
    assert answer.status_code == 200
    return answer.content.decode()


def calls_with(*states: UsageState):
    steps = []
    for seq, state in enumerate(states):
        step = model_call(seq, 5)
        count = {UsageState.REPORTED: 5, UsageState.VENDOR_ESTIMATE: 5}.get(state)
        usage = Usage(state=state, input_total=count, output_total=count)
        call = step.call.__class__(usage=usage)
        steps.append(step.__class__(seq=seq, kind=step.kind, invocation=0, call=call))
    return trace_of(steps)


def test_it_tells_the_states_of_usage_apart(web, project):
    upload = upload_traces(project, calls_with(*UsageState, UsageState.MISSING))
    page = receipt(web, upload)
    for words in ("zero, suspect", "estimate of the vendor", "only in a total"):
        assert words in page
    assert upload.usage_states["missing"] == 2
    assert sum(upload.usage_states.values()) == 7


def test_it_names_the_readers_of_an_archive(web, project):
    content = zip_of(
        {
            "a.jsonl": chat_bytes(CHAT),
            "b.json": json.dumps(CHAT).encode(),
            "c.json": json.dumps([{"task_id": 1, "traj": CHAT, "reward": 1}]).encode(),
        }
    )
    upload = upload_bytes(project, content, name="all.zip")
    assert upload.readers == [
        {"format": "openai-chat", "version": 3, "files": 2, "traces": 2},
        {"format": "tau-bench", "version": 1, "files": 1, "traces": 1},
    ]
    page = receipt(web, upload)
    assert "tau-bench results" in page
    assert "A newer reader" not in page


def test_it_counts_all_files_of_a_group(web, project):
    log = zip_of(
        {
            "header.json": as_json(inspect_log() | {"samples": None}),
            "samples/q1_epoch_1.json": as_json(sample(*INSPECT_RUN, epoch=1)),
        }
    )
    logs = {f"{number}.eval": log for number in range(5)}
    upload = upload_bytes(project, zip_of(logs), name="evals.zip")
    assert [one["files"] for one in upload.readers] == [5]
    assert "Inspect AI logs" in receipt(web, upload)


def test_it_offers_a_newer_reader_without_sending_the_file_again(web, project):
    upload = upload_traces(project, decay_trace(9, 8, 7, 6, 5))
    older = [{**upload.readers[0], "version": 0}]
    Upload.objects.filter(pk=upload.pk).update(readers=older)
    page = receipt(web, upload)
    assert "A newer reader of this format is here." in page
    again = reverse("upload-read-again", args=[project.slug, upload.pk])
    assert web.post(again, {"format": ""}).status_code == 302
    upload.refresh_from_db()
    assert upload.state == "received"


def test_what_was_corrected_is_counted_apart_from_what_was_decided(web, project):
    content = b'[{"role": "user", "content": "caf\xe9 \\u0000 ni\xf1o here"}, '
    content += b'{"role": "assistant", "content": "x"}]'
    page = receipt(web, upload_bytes(project, content))
    corrected, _, _ = page.partition("What the reader had to decide")
    assert "What was corrected" in corrected
    assert "not valid UTF-8" in corrected
    assert "NUL characters" in corrected


def test_secrets_that_were_replaced_are_counted_by_rule(web, project):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    said = [{"role": "user", "content": f"use {secret} please"}, CHAT[1]]
    upload = upload_bytes(project, chat_bytes(said))
    page = receipt(web, upload)
    assert sum(upload.redactions.values()) == 1
    assert "Secrets that were replaced" in page
    assert secret not in page


def test_rejected_records_show_place_reason_and_first_bytes(web, project):
    content = chat_bytes(CHAT) + b'{"messages": "none of this"}\n'
    page = receipt(web, upload_bytes(project, content))
    assert "line 2" in page
    assert "none of this" in page


@pytest.mark.parametrize("kept", ["gone"])
def test_an_upload_without_bytes_says_why_it_cannot_be_read_again(web, project, kept):
    upload = upload_traces(project, decay_trace(9, 8, 7, 6, 5))
    Upload.objects.filter(pk=upload.pk).update(raw_kept=kept)
    page = receipt(web, upload)
    assert "cannot be read again" in page
    assert "Raw bytes" not in page


@pytest.mark.parametrize("kept", RawKept)
def test_every_way_to_keep_the_bytes_has_words(web, project, kept):
    upload = upload_bytes(project, b'{"what": "no trace"}')
    Upload.objects.filter(pk=upload.pk).update(raw_kept=kept.value)
    assert "Bytes" in receipt(web, upload)


class TestAReceiptWithoutNewTraces:
    """Nothing is claimed of what was not read."""

    FALSE = ("not recorded in this file", "not named in this file", "ended in an error")

    def test_traces_that_were_here_before_are_nothing_new(self, web, project):
        trace = decay_trace(9, 8, 7, native_id="a")
        upload_traces(project, trace)
        page = receipt(web, upload_traces(project, trace, name="b.jsonl"))
        # Other bytes, so that it is another upload.
        again = upload_bytes(project, dump(trace) + b"\n", name="c.jsonl")
        page = receipt(web, again)
        assert "Nothing new; 1 here already." in page
        assert "read before, nothing new" in page
        assert "checked when they were read before" in page
        for words in self.FALSE:
            assert words not in page

    def test_a_file_that_was_not_read_says_so(self, web, project):
        page = receipt(web, upload_bytes(project, b"no trace at all", name="a.txt"))
        assert "Format not recognised" in page
        assert "recognised from content" not in page
        assert "Nothing was checked: no trace was read." in page
        assert "<dt>Models</dt>" not in page
        assert '<dt>Traces</dt><dd class="mute">not read</dd>' in page
        for words in self.FALSE:
            assert words not in page

    def test_traces_that_stand_twice_in_one_upload_were_not_here_before(
        self, web, project
    ):
        trace = decay_trace(9, 8, 7, native_id="a")
        upload = upload_traces(project, trace, trace, trace)
        assert (upload.duplicate_count, upload.doubled_count) == (2, 2)
        page = receipt(web, upload)
        assert "2 stood twice in this upload" in page
        assert "here already" not in page


class TestNotes:
    """A note says in how many traces, and no number twice."""

    def test_files_that_are_no_traces_do_not_contradict_that_all_was_read(
        self, web, project
    ):
        files = {"a.jsonl": chat_bytes(CHAT), "b.md": b"# b", "c.py": b"c = 1"}
        page = receipt(web, upload_bytes(project, zip_of(files), name="all.zip"))
        assert "2 files are no traces" in page
        assert "everything was read" not in page
        assert "times in all" not in page

    @pytest.mark.parametrize(
        ("sentences", "shown"),
        [
            (
                ["Steps left out: 3.", "Steps left out: 1,004."],
                "Steps left out: 1,007.",
            ),
            (["No times."] * 2, "No times."),
            (["Step 3 is odd.", "Step 4 is odd."], "Step 3 is odd."),
        ],
    )
    def test_notes_of_traces_are_added_up_or_named_as_the_first(
        self, web, project, sentences, shown
    ):
        traces = [decay_trace(1, 2, notes=(one,), name=one) for one in sentences]
        page = receipt(web, upload_traces(project, *traces))
        varies = "; the numbers are those of the first" if "Step 3" in shown else ""
        assert f'{shown} <span class="mute">(in 2 traces{varies})</span>' in page

    def test_a_note_of_one_trace_says_nothing_more(self, web, project):
        page = receipt(web, upload_traces(project, decay_trace(1, 2, notes=("Odd.",))))
        assert "<li><span>Odd.</span></li>" in page


class TestStructureOnly:
    """What came is gone; the receipt says who read it and what is kept."""

    @pytest.fixture
    def upload(self, project) -> Upload:
        project.structure_only = True
        project.save()
        files = {
            "a.jsonl": chat_bytes(CHAT),
            "b.json": json.dumps([{"task_id": 1, "traj": CHAT, "reward": 1}]).encode(),
        }
        return upload_bytes(project, zip_of(files), name="all.zip")

    def test_the_readers_are_those_of_the_file_that_came(self, web, upload):
        assert list(
            upload.trace_set.order_by("ordinal").values_list("format", flat=True)
        ) == ["openai-chat", "tau-bench"]
        page = receipt(web, upload)
        assert "tau-bench results" in page
        assert "Evalsite JSON" not in page.partition("Read it again")[0]
        assert page.count("Structure only: bodies were dropped") == 1
        assert "only the structure is kept" in page
        assert "kept as they came" not in page

    def test_what_is_kept_is_named_for_what_it_is(self, web, upload):
        page = receipt(web, upload)
        assert "What is kept</a>" in page
        assert "Raw bytes" not in page
        answer = web.get(reverse("upload-raw", args=[upload.project.slug, upload.pk]))
        assert "all.zip.evalsite.jsonl" in answer["Content-Disposition"]
        answer.close()

    def test_the_settings_do_not_say_that_files_are_kept_as_they_came(
        self, web, upload
    ):
        url = reverse("project-settings", args=[upload.project.slug])
        page = web.get(url).content.decode()
        assert "of files the structure is kept." in page
        assert "files are kept as they came" not in page


def test_a_reading_again_that_found_nothing_is_told_above_what_stays(web, project):
    upload = upload_traces(project, decay_trace(9, 8, 7, 6, 5))
    again = reverse("upload-read-again", args=[project.slug, upload.pk])
    web.post(again, {"format": "langfuse"})
    assert "Waits to be read again; what was read before stays" in receipt(web, upload)
    read(upload)
    page = receipt(web, upload)
    assert "Reading it again changed nothing." in page
    assert "found nothing, so what was read before stays" in page
    assert "1 trace, 5 steps" in page


def test_what_chance_gives_has_one_wording(web, project):
    page = receipt(web, upload_traces(project, decay_trace(9, 8, 7, 6, 5)))
    assert (
        "1 signal from 1 applicable sequence; chance alone would give less than 0.01 "
        "(0 to 0): more than chance gives; not applicable: 0" in page
    )
    assert expected(0.35) == "about 0.35"
    assert expected(0) == "none"
    assert "about about" not in page
