"""What was read is what is stored: rows and chunks give back the engine's trace."""

from __future__ import annotations

import random
import string

import msgspec
import pytest
import zstandard
from django.db import IntegrityError, connection, transaction
from hypothesis import HealthCheck, given, settings

from apps.engine.format import Opened
from apps.engine.trace import Body, Step, StepKind, UsageState
from apps.traces.codec import (
    CHUNK_BYTES,
    CHUNK_STEPS,
    bodies_of,
    body_chunks,
    content_hash,
    counts_of,
)
from apps.traces.copying import NewTrace, copy_traces
from apps.traces.models import USAGE_STATES, BodyChunk, Task, Trace
from apps.traces.models import Step as StepRow
from apps.traces.operations import create_upload
from apps.traces.queries import body_of_step, engine_trace, steps_of
from apps.traces.storage import receive
from tests.factories import NOW, decay_trace, make_project, model_call, upload_traces
from tests.traces.engine_traces import traces

SOME = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def upload(db):
    project = make_project()
    received = receive([b"x"], limit=10, name="x")
    upload, _ = create_upload(project=project, received=received, user=None, now=NOW)
    return upload


def stored(upload, trace) -> Trace:
    Trace.objects.all().delete()
    task_ids = {}
    if trace.task:
        task, _ = Task.objects.get_or_create(project=upload.project, key=trace.task)
        task_ids = {trace.task: task.pk}
    reader = Opened("", "evalsite-jsonl", 1)
    new = NewTrace(0, content_hash(trace), trace, counts_of(trace), reader)
    [written] = copy_traces(upload=upload, new=[new], task_ids=task_ids)
    return Trace.objects.select_related("task").get(pk=written.trace_id)


@SOME
@given(trace=traces())
def test_a_stored_trace_comes_back_as_it_was_read(upload, trace):
    assert engine_trace(stored(upload, trace)) == trace


@SOME
@given(trace=traces())
def test_steps_without_bodies_have_the_same_structure(upload, trace):
    row = stored(upload, trace)
    bare = steps_of(row.pk)
    assert [step.body for step in bare] == [None] * len(trace.steps)
    for found, original in zip(bare, trace.steps, strict=True):
        assert (found.seq, found.kind, found.parent) == (
            original.seq,
            original.kind,
            original.parent,
        )
        if original.kind is StepKind.MODEL_CALL:
            usage = msgspec.structs.replace(original.call.usage, source=None)
            assert found.call.usage == usage


def noise(size: int, seed: int) -> str:
    return "".join(random.Random(seed).choices(string.ascii_letters, k=size))


def other(seq: int, text: str) -> Step:
    return Step(seq=seq, kind=StepKind.OTHER, body=Body(output=text))


@pytest.mark.parametrize(
    ("count", "size"),
    [(1, 10), (64, 10), (65, 10), (500, 3_000), (9, 100_000), (3, 400_000)],
)
def test_chunks_are_bounded_in_steps_and_bytes_and_lose_nothing(count, size):
    steps = [other(seq, noise(size, seq)) for seq in range(count)]
    found = {}
    for first, data in body_chunks(steps):
        bodies = bodies_of(first, data)
        raw = zstandard.ZstdDecompressor().decompress(data)
        assert min(bodies) == first
        assert len(bodies) <= CHUNK_STEPS
        assert len(bodies) == 1 or len(raw) <= CHUNK_BYTES + CHUNK_STEPS + 2
        assert not found.keys() & bodies.keys()
        found |= bodies
    assert {seq: kept.body for seq, kept in found.items()} == {
        step.seq: step.body for step in steps
    }


def test_one_body_is_read_from_one_chunk(project, django_assert_num_queries):
    upload_traces(project, decay_trace(*range(1, 301)))
    trace = Trace.objects.get()
    assert BodyChunk.objects.filter(trace=trace).count() == 5
    with django_assert_num_queries(1) as seen:
        kept = body_of_step(trace_id=trace.pk, seq=170)
    assert kept.body.output == "answer 170"
    with connection.cursor() as cursor:
        cursor.execute(seen[0]["sql"])
        assert [first_seq for first_seq, _ in cursor.fetchall()] == [128]


def test_a_step_that_does_not_exist_has_no_body(project):
    upload_traces(project, decay_trace(1, 2))
    trace = Trace.objects.get()
    for seq in (2, 10**6, 10**30, -1):
        assert body_of_step(trace_id=trace.pk, seq=seq) is None


def test_what_was_not_recorded_is_null_and_never_zero(project):
    upload_traces(project, decay_trace(None, 0, 7))
    rows = StepRow.objects.order_by("seq").values_list("usage_state", "output_total")
    states = [USAGE_STATES[state] for state, _ in rows]
    assert [total for _, total in rows][::2] == [None, 7]
    assert states[0] is UsageState.MISSING
    assert all(
        value is None
        for name, value in StepRow.objects.filter(seq=0).values()[0].items()
        if name.startswith(("input_", "output_")) or name == "total"
    )


@pytest.mark.parametrize("state", [UsageState.MISSING, UsageState.ZERO_SUSPECT])
@pytest.mark.parametrize(
    "count",
    [
        "input_total",
        "input_cached",
        "input_cache_write",
        "output_total",
        "output_reasoning",
        "total",
    ],
)
def test_the_database_refuses_a_count_whose_state_says_missing(project, state, count):
    upload_traces(project, decay_trace(5))
    everything_null = dict.fromkeys(("input_total", "output_total", "total"), None)
    with (
        pytest.raises(IntegrityError, match="missing_usage_is_null"),
        transaction.atomic(),
    ):
        StepRow.objects.filter(seq=0).update(
            **{
                **everything_null,
                "usage_state": USAGE_STATES.index(state),
                count: 0,
            }
        )


def test_the_database_refuses_a_model_call_without_a_usage_state(project):
    upload_traces(project, decay_trace(5))
    with (
        pytest.raises(IntegrityError, match="a_model_call_has_a_usage_state"),
        transaction.atomic(),
    ):
        StepRow.objects.filter(seq=0).update(usage_state=None)


def test_the_database_refuses_more_known_usage_than_model_calls(project):
    upload_traces(project, decay_trace(5))
    with (
        pytest.raises(IntegrityError, match="usage_known_of_model_calls"),
        transaction.atomic(),
    ):
        Trace.objects.update(usage_known=2)


def test_a_placeholder_counts_as_a_call_without_usage():
    made = model_call(0, 5)
    planned = model_call(1, None, is_placeholder=True)
    trace = msgspec.structs.replace(decay_trace(5), steps=(made, planned))
    counts = counts_of(trace)
    assert (counts.steps, counts.model_calls, counts.usage_known) == (2, 2, 1)


def test_ids_come_from_the_sequence_so_that_later_rows_do_not_collide(upload):
    first = stored(upload, decay_trace(1))
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('traces_trace', 'id'))")
        assert cursor.fetchone()[0] > first.pk
