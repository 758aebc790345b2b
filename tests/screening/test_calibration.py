"""How often a key fired in each group: what the database counts beside plain Python."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.permissions import Role
from apps.screening import calibration
from apps.screening.calibration import (
    DOMAIN_KEYS,
    GroupKind,
    keys_that_answered,
    outcomes_of,
    parameters_of,
    rates_of,
)
from apps.screening.models import Screening
from apps.traces.models import TraceSetMember
from tests.factories import decay_trace, make_member, make_project, upload_traces
from tests.random_reviews import SLUG, furnish_at_random


@pytest.fixture
def furnished(project, owner, reviewer):
    keys = furnish_at_random(project, people=[reviewer, owner], seed=7, traces=60)
    other = make_project(owner=owner)
    furnish_at_random(other, people=[make_member(other, Role.REVIEWER), owner],
                      seed=8, traces=9)  # fmt: skip
    return keys


def answers(project, key):
    slug, version, parameters = key
    return (
        Screening.objects.filter(
            project=project,
            check_slug=slug,
            check_version=version,
            parameters_hash=parameters,
        )
        .exclude(answer="not_applicable")
        .select_related("trace", "trace__upload")
    )


def groups_in_python(row):
    """Every group of one answer, as the words of the page say it."""
    trace = row.trace
    yield GroupKind.ALL, ""
    for trait in trace.traits:
        yield GroupKind.TRAIT, trait
    for model in trace.models_seen:
        yield GroupKind.MODEL, model
    if row.agent:
        yield GroupKind.AGENT, row.agent
    for name, value in trace.metadata.items():
        if name.lower() in DOMAIN_KEYS and isinstance(value, str):
            yield GroupKind.DOMAIN, f"{name}: {value}"
    yield GroupKind.FORMAT, trace.format
    yield GroupKind.UPLOAD, str(trace.upload_id)
    for member in TraceSetMember.objects.filter(trace=trace):
        yield GroupKind.SET, str(member.trace_set_id)
    day = trace.upload.created_at.astimezone(UTC).date()
    yield GroupKind.DAY, day.isoformat()
    yield GroupKind.WEEK, (day - timedelta(days=day.weekday())).isoformat()


def test_the_rates_of_all_groups_are_what_plain_python_counts(project, furnished):
    found = rates_of(project=project, keys=furnished)
    for key in furnished:
        expected = defaultdict(lambda: [0, 0, 0])
        for row in answers(project, key):
            for group in groups_in_python(row):
                counted = expected[group]
                is_signal = row.answer == "signal"
                counted[0] += 1
                counted[1] += is_signal
                counted[2] += is_signal and row.level == "review_signal"
        counts = {
            (one.kind, one.name): [one.applicable, one.signals, one.queued]
            for one in found[key]
        }
        assert counts == expected
        assert len(found[key]) == len(counts)
        assert {kind for kind, _ in counts} == set(GroupKind)
        assert counts[GroupKind.ALL, ""][1] > 3


def test_the_outcomes_of_all_groups_are_what_plain_python_counts(project, furnished):
    for key in furnished:
        traces = {}
        for row in answers(project, key).filter(trace__outcome__in=["pass", "fail"]):
            fired = traces.setdefault(row.trace_id, [row, False])
            fired[1] |= row.answer == "signal"
        expected = defaultdict(list)
        kinds = {GroupKind.ALL, GroupKind.MODEL, GroupKind.DOMAIN, GroupKind.FORMAT}
        for row, fired in traces.values():
            for group in groups_in_python(row):
                if group[0] in kinds:
                    expected[group].append((row.trace, fired))
        found = {
            (kind, name): table
            for kind, name, table in outcomes_of(project=project, key=key)
        }
        assert set(found) == set(expected)
        for group, members in expected.items():
            table = found[group]
            passed = [(trace.outcome == "pass", fired) for trace, fired in members]
            assert table.fired == sum(fired for _, fired in passed)
            assert table.fired_passed == sum(p and fired for p, fired in passed)
            assert table.not_fired_passed == sum(p and not f for p, f in passed)
            assert table.traces == len(members)
            tasks = {trace.task_id for trace, _ in members}
            assert table.tasks == len(tasks - {None})
            assert table.without_task == sum(
                trace.task_id is None for trace, _ in members
            )


def test_every_key_that_ever_answered_is_named_with_its_counts(project, furnished):
    current, other = furnished
    found = {
        one.key: one for one in keys_that_answered(project=project, check_slug=SLUG)
    }
    assert set(found) == {current, other}
    for key, one in found.items():
        rows = answers(project, key)
        assert one.applicable == rows.count()
        assert one.signals == rows.filter(answer="signal").count()
        assert (
            one.applicable + one.not_applicable
            == Screening.objects.filter(
                project=project,
                check_slug=SLUG,
                check_version=key[1],
                parameters_hash=key[2],
            ).count()
        )
    assert found[other].signals < found[current].signals
    assert parameters_of(project=project, key=other)["last_percent"] == 40
    assert parameters_of(project=project, key=(SLUG, 99, "no")) == {}
    assert keys_that_answered(project=project, check_slug="no-such-check") == []


def test_only_the_largest_groups_of_a_kind_are_listed_and_the_rest_is_counted(
    project, monkeypatch
):
    monkeypatch.setattr(calibration, "LARGEST", 3)
    monkeypatch.setattr(calibration, "LATEST", 2)
    for day in range(4):
        made = [
            decay_trace(
                90 + n, 80, 70, 60, 50, name=f"{day} {n}", metadata={"domain": f"d{n}"}
            )
            for n in range(5 - day)
        ]
        upload_traces(project, *made, name=f"{day}.jsonl")
    [key] = [one.key for one in keys_that_answered(project=project, check_slug=SLUG)]
    found = rates_of(project=project, keys=[key])[key]
    domains = [one for one in found if one.kind is GroupKind.DOMAIN]
    assert [(one.name, one.applicable) for one in domains] == [
        ("domain: d0", 4),
        ("domain: d1", 4),
        ("domain: d2", 3),
    ]
    assert {one.of_kind for one in domains} == {5}
    uploads = [one for one in found if one.kind is GroupKind.UPLOAD]
    assert sorted(one.applicable for one in uploads) == [2, 3]
    assert {one.of_kind for one in uploads} == {4}


def test_ten_times_the_traces_cost_the_same_statements(project, reviewer, owner):
    def statements():
        with CaptureQueriesContext(connection) as caught:
            keys = [
                one.key for one in keys_that_answered(project=project, check_slug=SLUG)
            ]
            rates_of(project=project, keys=keys)
            outcomes_of(project=project, key=keys[0])
            parameters_of(project=project, key=keys[0])
        return len(caught)

    upload_traces(project, decay_trace(100, 90, 80, 70, 60), name="few.jsonl")
    few = statements()
    furnish_at_random(project, people=[reviewer, owner], seed=3, traces=30)
    assert statements() == few == 4
