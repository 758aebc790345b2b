"""Trace sets and comparisons through the JSON door."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from apps.traces.comparing import compare_sides, comparison_document
from apps.traces.models import TraceSet, Upload
from tests.factories import decay_trace, make_project, make_trace_set, upload_traces

pytestmark = pytest.mark.django_db


@pytest.fixture
def filled(project):
    for name in ("a", "b"):
        runs = [decay_trace(9, 8 + n, name=f"{name}{n}") for n in range(4)]
        upload_traces(project, *runs, name=f"{name}.jsonl")
    return project


def keys() -> dict[str, str]:
    first, second = Upload.objects.order_by("pk").values_list("pk", flat=True)
    return {"first": f"upload:{first}", "second": f"upload:{second}"}


def test_the_sets_are_listed_newest_first(door, filled):
    for name in ("One", "Two"):
        make_trace_set(filled, name)
    found = door.get(reverse("api-sets")).json()["sets"]
    assert [(one["key"], one["traces"], one["passed"]) for one in found] == [
        ("two", 8, 8),
        ("one", 8, 8),
    ]
    assert found[0]["models"] == {"gpt-4o": 8}
    assert found[0]["made_from"] == "all traces of the project"
    older = door.get(
        reverse("api-sets"), {"before": TraceSet.objects.get(slug="two").pk}
    )
    assert [one["key"] for one in older.json()["sets"]] == ["one"]


def test_a_comparison_is_that_of_the_page(door, filled):
    found = door.get(reverse("api-comparison"), keys()).json()
    wanted = comparison_document(compare_sides(filled, **keys()))
    assert found == json.loads(json.dumps(wanted))


def test_without_sides_it_says_what_may_be_compared(door, filled):
    sides = door.get(reverse("api-comparison")).json()["sides"]
    assert {one["key"] for one in sides} == {"model:gpt-4o", *keys().values()}
    for one in sides:
        other = next(key for key in keys().values() if key != one["key"])
        asked = {"first": one["key"], "second": other}
        assert door.get(reverse("api-comparison"), asked).status_code == 200


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"first": "upload:0", "second": "model:gpt-4o"}, 404),
        ({"first": "model:gpt-4o"}, 404),
        ({"first": "x", "second": "x"}, 400),
        ({"first": "a\x00", "second": "b"}, 404),
    ],
)
def test_what_cannot_be_compared_is_said(door, filled, fields, status):
    answer = door.get(reverse("api-comparison"), fields)
    assert answer.status_code == status
    assert answer.json()["sentence"].endswith(".")


def test_a_token_sees_only_its_own_project(door, filled, owner):
    other = make_project(owner=owner, name="Other")
    upload_traces(other, decay_trace(7, name="foreign"))
    make_trace_set(other, "Foreign")
    assert door.get(reverse("api-sets")).json() == {"sets": []}
    fields = {"first": "foreign", "second": "model:gpt-4o"}
    assert door.get(reverse("api-comparison"), fields).status_code == 404
