"""What fired beside the outcome, among the traces of one upload."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.engine.checks import by_slug
from apps.engine.trace import Outcome, OutcomeKind
from apps.review.models import Signal
from apps.screening.lineup import key_of
from apps.screening.queries import outcome_association
from tests.factories import decay_trace, make_project, upload_bytes, upload_traces

PASS, FAIL = Outcome(kind=OutcomeKind.PASS), Outcome(kind=OutcomeKind.FAIL)
SCORE = Outcome(kind=OutcomeKind.SCORE, score=0.4)


def falling(n: int, outcome: Outcome, **more):
    return decay_trace(100 + n, 90, 80, 70, 40, name=f"f{n}", outcome=outcome, **more)


def level(n: int, outcome: Outcome, **more):
    return decay_trace(50 + n, 60, 55, 58, 61, name=f"l{n}", outcome=outcome, **more)


def decay(project, upload):
    return outcome_association(
        project=project, key=key_of(by_slug("output-decay")), upload_id=upload.pk
    )


def test_it_counts_traces_that_fired_and_passed_and_their_tasks(project, owner):
    upload = upload_traces(
        project,
        *[falling(n, FAIL, task=f"t{n}") for n in range(3)],
        falling(3, PASS, task="t0"),
        *[level(n, PASS, task=f"t{n}") for n in range(2)],
        level(2, FAIL, task="t9"),
        # Nothing of these is in the table: no pass or fail, or not applicable.
        falling(4, SCORE, task="t10"),
        decay_trace(9, 8, name="short", outcome=PASS, task="t11"),
    )
    upload_traces(project, falling(5, PASS, task="t12"), name="another.jsonl")
    upload_traces(make_project(owner=owner), falling(6, PASS, task="t13"))
    found = decay(project, upload)
    assert (found.fired, found.fired_passed) == (4, 1)
    assert (found.not_fired, found.not_fired_passed) == (3, 2)
    assert (found.traces, found.tasks, found.without_task) == (7, 4, 0)
    assert found.p == pytest.approx(17 / 35)


def test_traces_without_a_task_are_counted_as_such(project):
    upload = upload_traces(project, falling(0, FAIL), level(0, PASS, task="t"))
    found = decay(project, upload)
    assert (found.tasks, found.without_task) == (1, 1)


@pytest.mark.parametrize(
    ("fell", "held"), [(PASS, PASS), (FAIL, FAIL)], ids=["all pass", "all fail"]
)
def test_an_empty_margin_has_no_probability(project, fell, held):
    upload = upload_traces(project, falling(0, fell), level(0, held))
    found = decay(project, upload)
    assert (found.traces, found.p) == (2, None)


def test_it_is_none_where_no_applicable_trace_has_an_outcome(project):
    upload = upload_traces(project, falling(0, SCORE))
    assert decay(project, upload) is None


def test_more_traces_cost_no_more_queries(project):
    upload = upload_traces(project, *[falling(n, FAIL) for n in range(9)])
    with CaptureQueriesContext(connection) as caught:
        decay(project, upload)
    assert len(caught) == 1


@pytest.mark.slow
def test_of_the_airline_traces_1_of_22_that_fired_passed(project, shared_data):
    path = shared_data / "tau_bench_results" / "gpt-4o-airline.json"
    if not path.is_file():
        pytest.skip("The airline file lies outside of the repository and is absent.")
    upload = upload_bytes(project, path.read_bytes(), name=path.name)
    assert Signal.objects.filter(check_slug="tool-drift").exists()
    found = outcome_association(
        project=project, key=key_of(by_slug("tool-drift")), upload_id=upload.pk
    )
    assert (found.fired, found.fired_passed) == (22, 1)
    assert (found.not_fired, found.not_fired_passed) == (39, 12)
    assert found.p == pytest.approx(0.022, abs=5e-4)
    assert found.tasks == 25
