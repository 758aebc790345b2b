"""The receipt of an upload: what was read, corrected, replaced, and by whom."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from apps.engine.trace import Usage, UsageState
from apps.traces.models import Upload
from tests.factories import (
    chat_bytes,
    decay_trace,
    model_call,
    trace_of,
    upload_bytes,
    upload_traces,
)
from tests.formats.archives import zip_of

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
        {"format": "openai-chat", "version": 2, "files": 2, "traces": 2},
        {"format": "tau-bench", "version": 1, "files": 1, "traces": 1},
    ]
    page = receipt(web, upload)
    assert "tau-bench results" in page
    assert "A newer reader" not in page


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
