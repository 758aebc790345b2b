"""The content of many stored traces is that of each, in a constant number of queries."""

from __future__ import annotations

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Project
from apps.engine.trace import Trace as EngineTrace
from apps.traces import contents
from apps.traces.contents import stored_contents
from apps.traces.models import Trace
from apps.traces.queries import engine_trace
from tests.factories import decay_trace, make_project, upload_bytes, upload_traces
from tests.formats.all_samples import FILES

pytestmark = pytest.mark.django_db


def stored(project: Project) -> list[Trace]:
    traces = Trace.objects.filter(project=project)
    return list(traces.select_related("task").order_by("-pk"))


def decoded(traces: list[Trace]) -> list[EngineTrace]:
    return [one.decoded() for one in stored_contents(traces)]


def make_one_of_every_format() -> Project:
    project = make_project(name="Every format")
    for slug, samples in FILES.items():
        for sample in samples:
            upload_bytes(project, sample, name=f"{slug}.json")
    # Longer than one chunk of bodies.
    upload_traces(project, decay_trace(*range(1, 150), name="long"))
    return project


@pytest.fixture(scope="module")
def every_format(stand) -> Project:
    project, _ = stand(make_one_of_every_format)
    return project


@pytest.mark.parametrize("most", [1, 40, 1_000])
def test_it_is_what_each_trace_alone_gives(every_format, monkeypatch, most):
    monkeypatch.setattr(contents, "MOST_STEPS", most)
    traces = stored(every_format)
    found = decoded(traces)
    assert len(found) > 60
    assert [msgspec.to_builtins(one) for one in found] == [
        msgspec.to_builtins(engine_trace(one)) for one in traces
    ]
    assert any(one.invocations for one in found)
    assert any(step.body for one in found for step in one.steps)


def test_it_takes_three_statements_for_many_small_traces(project):
    upload_traces(
        project,
        *(decay_trace(9, 8, 7, number, name=f"{number}") for number in range(90)),
    )
    traces = stored(project)
    with CaptureQueriesContext(connection) as caught:
        assert len(decoded(traces)) == 90
    assert len(caught) == 3


def test_a_trace_without_steps_has_content_too(project):
    upload_traces(project, decay_trace(9, 8))
    trace = stored(project)[0]
    with connection.cursor() as cursor:
        for table in ("traces_step", "traces_bodychunk", "traces_agentinvocation"):
            cursor.execute(f"DELETE FROM {table}")  # noqa: S608 - names of tables
    [found] = decoded([trace])
    assert (found.name, found.steps, found.invocations) == (trace.name, (), ())
