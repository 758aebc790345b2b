"""The same trace again, and the same id with other content."""

from __future__ import annotations

import msgspec
import pytest
from django.urls import reverse

from apps.engine.formats.evalsite_writer import dump
from apps.traces.models import RejectedRecord, Trace, Upload
from apps.traces.queries import engine_trace
from tests.factories import decay_trace, make_project, tools_trace, upload_traces

FIRST = decay_trace(100, 90, 80, native_id="run-1", name="first")
OTHER = decay_trace(5, 4, native_id="run-1", name="other")
NEW = decay_trace(7, 6, native_id="run-2", name="new")


def names(project):
    return sorted(Trace.objects.filter(project=project).values_list("name", flat=True))


def test_the_same_id_with_other_content_is_rejected_and_the_first_is_kept(project):
    upload_traces(project, FIRST)
    second = upload_traces(project, NEW, OTHER, name="second.jsonl")
    assert (second.state, second.trace_count, second.rejected_count) == ("done", 1, 1)
    assert names(project) == ["first", "new"]
    line = RejectedRecord.objects.get(upload=second)
    assert line.place == "trace 2"
    assert "run-1" in line.reason
    assert "with other content" in line.reason
    assert line.excerpt == "other"


def test_the_same_content_in_another_file_is_counted_as_here_already(project):
    upload_traces(project, FIRST)
    second = upload_traces(project, FIRST, NEW)
    assert (second.trace_count, second.duplicate_count) == (1, 1)
    assert second.rejected_count == 0
    assert names(project) == ["first", "new"]


def test_twice_in_one_file_is_once_in_the_project(project):
    upload = upload_traces(project, FIRST, FIRST, OTHER)
    assert (upload.trace_count, upload.duplicate_count) == (1, 1)
    assert upload.rejected_count == 1
    assert names(project) == ["first"]


def test_a_file_of_nothing_but_known_traces_says_so_and_is_no_failure(
    client, owner, project
):
    upload_traces(project, FIRST)
    second = upload_traces(project, FIRST, NEW)
    third = upload_traces(project, NEW, FIRST, name="third.jsonl")
    assert (third.trace_count, third.duplicate_count) == (0, 2)
    assert third.state == "done"
    assert second.pk != third.pk
    client.force_login(owner)
    page = client.get(reverse("upload", args=[project.slug, third.pk])).content.decode()
    assert "2 here already" in page


def test_the_same_id_in_another_project_is_another_trace(project, owner):
    upload_traces(project, FIRST)
    elsewhere = make_project(owner=owner)
    assert upload_traces(elsewhere, OTHER).trace_count == 1


def test_traces_without_an_id_are_never_taken_for_each_other(project):
    upload_traces(project, decay_trace(1, 2), decay_trace(1, 2))
    assert Trace.objects.count() == 2


@pytest.mark.parametrize("trace", [FIRST, tools_trace(*"abab", native_id="run-3")])
def test_a_downloaded_trace_is_recognised_when_it_is_uploaded_again(
    client, owner, project, trace
):
    upload_traces(project, trace)
    row = Trace.objects.get()
    client.force_login(owner)
    answer = client.get(reverse("trace-download", args=[project.slug, row.pk]))
    elsewhere = make_project(owner=owner)
    upload_traces(elsewhere, trace)
    assert answer.content == dump(engine_trace(row))
    again = msgspec.json.decode(answer.content)
    assert again["trace"]["id"] == trace.native_id
    copied = upload_traces(elsewhere, engine_trace(row), decay_trace(3))
    assert (copied.duplicate_count, copied.rejected_count) == (1, 0)


def test_the_counters_of_an_upload_are_the_sums_of_its_traces(project):
    upload_traces(
        project, decay_trace(9, None, 7), tools_trace(*"abc"), decay_trace(None)
    )
    upload = Upload.objects.get()
    for counter in (
        "step_count",
        "model_call_count",
        "tool_call_count",
        "usage_known",
        "signal_count",
    ):
        rows = Trace.objects.filter(upload=upload)
        assert getattr(upload, counter) == sum(rows.values_list(counter, flat=True))
    assert (upload.model_call_count, upload.usage_known) == (4, 2)
