"""Real OpenTelemetry files through the product: stored as the index says."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from apps.review.models import Signal
from apps.screening.models import Screening
from apps.traces.models import BodyChunk, Trace
from apps.traces.queries import engine_trace
from tests.conftest import SHARED
from tests.factories import make_project, upload_bytes
from tests.formats.reading import counts_of

DATA = SHARED / "data"
FOLDERS = ("otlp_json", "otlp_protobuf")
ABSENT = pytest.param(
    {},
    marks=pytest.mark.skip(
        "The shared trace files lie outside of the repository and are absent."
    ),
)


def index() -> list[dict[str, str]]:
    if not DATA.is_dir():
        return []
    with (DATA / "INDEX.tsv").open(encoding="utf-8", newline="") as file:
        return [
            row
            for row in csv.DictReader(file, delimiter="\t")
            if row["path"].split("/")[0] in FOLDERS
        ]


ROWS = [pytest.param(row, id=row["path"]) for row in index()] or [ABSENT]
# Runs that lie there in both encodings, by the name before the first dot.
PAIRS = sorted(
    {Path(row["path"]).name.split(".")[0] for row in index() if ".pb" in row["path"]}
) or [pytest.param("", marks=pytest.mark.skip("No shared trace files."))]


@pytest.mark.parametrize("row", ROWS)
def test_what_is_stored_are_the_counts_of_the_index(project, row):
    path = DATA / row["path"]
    upload = upload_bytes(project, path.read_bytes(), name=path.name)
    if row["n_traces"] == "0":
        assert upload.state == "failed"
        assert upload.failure.endswith("not traces.")
        return
    assert (upload.state, upload.failure) == ("done", "")
    assert upload.trace_count == Trace.objects.count() == int(row["n_traces"])
    assert upload.model_call_count == int(row["model_calls"])
    assert upload.tool_call_count == int(row["tool_calls"])
    assert upload.usage_known == int(row["usage_known"])
    stored = [engine_trace(trace) for trace in Trace.objects.select_related("task")]
    found = counts_of(stored)
    assert found == {key: int(row[key]) for key in found}
    assert sum(trace.error_count for trace in Trace.objects.all()) == sum(
        step.status == "error" for trace in stored for step in trace.steps
    )


def facts_of(project) -> dict[str, object]:
    """Everything stored about a project's traces, without the ids of rows."""
    traces = Trace.objects.filter(project=project).select_related("task")
    screenings = Screening.objects.filter(project=project).select_related("trace")
    signals = Signal.objects.filter(project=project).select_related("trace")
    return {
        "traces": {t.native_id: engine_trace(t) for t in traces},
        "hashes": sorted(traces.values_list("native_id", "content_hash")),
        "chunks": sorted(
            (chunk.trace.native_id, chunk.first_seq, bytes(chunk.data))
            for chunk in BodyChunk.objects.filter(trace__in=traces).select_related(
                "trace"
            )
        ),
        "answers": sorted(
            (
                row.trace.native_id,
                row.check_slug,
                row.scope,
                row.answer,
                row.level,
                row.headline,
                row.input_hash,
                str(row.evidence),
            )
            for row in screenings
        ),
        "signals": sorted((s.trace.native_id, s.headline, s.chance) for s in signals),
    }


@pytest.mark.parametrize("run", PAIRS)
def test_both_encodings_of_a_run_store_the_same_traces_steps_and_signals(
    owner, shared_data, run
):
    facts = []
    for file in (f"otlp_json/{run}.otlp.json", f"otlp_protobuf/{run}.otlp.pb"):
        project = make_project(owner=owner)
        path = shared_data / file
        upload = upload_bytes(project, path.read_bytes(), name=path.name)
        assert upload.trace_count > 0
        facts.append(facts_of(project))
    assert facts[0] == facts[1]


def test_the_second_encoding_in_the_same_project_is_here_already(project, shared_data):
    run = "traceloop__normal_3runs"
    first = (shared_data / f"otlp_json/{run}.otlp.json").read_bytes()
    second = (shared_data / f"otlp_protobuf/{run}.otlp.pb").read_bytes()
    assert upload_bytes(project, first).trace_count == 3
    again = upload_bytes(project, second)
    assert (again.trace_count, again.duplicate_count, again.rejected_count) == (0, 3, 0)


def test_a_whole_run_of_falling_lengths_is_one_signal_each(project, shared_data):
    path = shared_data / "otlp_json/traceloop__normal_3runs.otlp.json"
    upload = upload_bytes(project, path.read_bytes())
    assert upload.signal_count == Signal.objects.count()
    falling = Signal.objects.filter(check_slug="output-decay")
    assert falling.count() == 3
    for signal in falling.select_related("screening"):
        evidence = signal.screening.evidence
        assert evidence["series"]["values"] == [112, 100, 86, 78, 70, 43]
        assert (evidence["chance"]["numerator"], evidence["chance"]["denominator"]) == (
            "1",
            "720",
        )
