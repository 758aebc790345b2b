"""What the tables of the review rest on: indexes for each filter, acts that happen."""

from __future__ import annotations

import inspect

import pytest
from django.db import connection

from apps.review import adopting, operations
from apps.review.queries import (
    QueueFilter,
    check_precision,
    parts_in_order,
    queue_signals,
)
from apps.review.transitions import Act
from apps.screening.lineup import lineup_of
from apps.screening.queries import counts_per_check
from tests.factories import decay_trace, upload_traces


@pytest.mark.django_db
def test_the_queue_of_one_outcome_is_read_from_an_index_in_its_order(project):
    where = QueueFilter(outcome="fail")
    signals = queue_signals(project=project, where=where)
    passed = [decay_trace(100, 90, 80, 70, 40, name=f"run {n}") for n in range(300)]
    upload_traces(project, *passed)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE review_signal")
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("SET LOCAL enable_sort = off")
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = %s", [TABLE])
        defined = [row[0] for row in cursor.fetchall()]
    assert any(
        "(project_id, outcome, state, rank, chance, id)" in text for text in defined
    )
    for part in parts_in_order(signals, where=where):
        assert "signal_by_outcome" in part.filter(state="open").explain()


TABLE = "review_signal"


def test_every_act_has_an_operation_that_does_it():
    source = inspect.getsource(operations) + inspect.getsource(adopting)
    assert {act for act in Act if f"Act.{act.name}" not in source} == set()


@pytest.mark.django_db
def test_the_counts_of_one_check_are_those_of_the_whole_list(project):
    upload_traces(
        project,
        decay_trace(100, 90, 80, 70, 40, name="falls"),
        decay_trace(50, 60, 55, 58, 61, name="level"),
    )
    for entry in counts_per_check(project):
        (alone,) = counts_per_check(project, check_slug=entry.slug)
        assert alone == entry
    lineup = lineup_of(project.pk)
    everything = check_precision(project=project, lineup=lineup)
    assert everything == {"output-decay": (1, 0, 0)}
    alone = check_precision(project=project, lineup=lineup, check_slug="output-decay")
    assert alone == everything
    assert (
        check_precision(project=project, lineup=lineup, check_slug="no-such-check")
        == {}
    )
    assert counts_per_check(project, check_slug="no-such-check") == []
