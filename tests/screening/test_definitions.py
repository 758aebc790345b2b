"""What a project defines itself: rows are added, versions grow with the question."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.engine.contracts import BadDefinition
from apps.screening.definitions import (
    DefinedMeanwhile,
    Wanted,
    current_definition,
    define,
    definitions_of,
    history_of,
    redefine,
    set_state,
    slug_from,
)
from apps.screening.lineup import lineup_of
from apps.screening.models import Definition, DefinitionState
from tests.factories import NO_REFUND, NOW, make_contract, make_project

NO_DELETE = {"operator": "never", "select": {"name": "delete"}}


def wanted(spec=NO_DELETE, label="No refund", kind="contract"):
    return Wanted(kind=kind, label=label, spec=spec)


def test_a_new_definition_is_a_check_of_the_line_up(project, owner):
    row = define(project_id=project.pk, wanted=wanted(), user_id=owner.pk, now=NOW)
    assert (row.slug, row.number, row.version, row.state) == (
        "no-refund",
        1,
        1,
        "active",
    )
    entry = lineup_of(project.pk).by_slug["contract-no-refund"]
    assert entry.is_defined_here
    assert not entry.is_paused
    assert entry.key in lineup_of(project.pk).queueing
    assert "contract-no-refund" not in lineup_of(make_project().pk).by_slug


def test_another_question_is_another_version_and_another_name_is_not(project, owner):
    first = make_contract(project)
    renamed = redefine(
        current=first, wanted=wanted(NO_REFUND, "Never"), user_id=owner.pk, now=NOW
    )
    assert (renamed.slug, renamed.number, renamed.version) == ("no-refund", 2, 1)
    before = lineup_of(project.pk)
    changed = redefine(
        current=renamed, wanted=wanted(label="Never"), user_id=owner.pk, now=NOW
    )
    assert (changed.number, changed.version) == (3, 2)
    assert lineup_of(project.pk).name != before.name
    assert [
        row.number for row in history_of(project_id=project.pk, slug="no-refund")
    ] == [
        3,
        2,
        1,
    ]


def test_the_same_question_in_other_writing_writes_nothing(project, owner):
    first = make_contract(project)
    same = {**NO_REFUND, "n": 0, "scope": "trace", "level": "review_signal"}
    kept = redefine(current=first, wanted=wanted(same), user_id=owner.pk, now=NOW)
    assert kept.pk == first.pk
    assert Definition.objects.count() == 1


def test_a_paused_one_answers_but_does_not_queue_and_a_retired_one_is_gone(
    project, owner
):
    first = make_contract(project)
    before = lineup_of(project.pk)
    paused = set_state(
        current=first, state=DefinitionState.PAUSED, user_id=owner.pk, now=NOW
    )
    entry = lineup_of(project.pk).by_slug["contract-no-refund"]
    assert entry.is_paused
    assert entry.key not in lineup_of(project.pk).queueing
    assert entry.key in before.queueing
    retired = set_state(
        current=paused, state=DefinitionState.RETIRED, user_id=owner.pk, now=NOW
    )
    assert "contract-no-refund" not in lineup_of(project.pk).by_slug
    again = set_state(
        current=retired, state=DefinitionState.ACTIVE, user_id=owner.pk, now=NOW
    )
    assert (again.number, again.version) == (4, 1)
    same = set_state(
        current=again, state=DefinitionState.ACTIVE, user_id=owner.pk, now=NOW
    )
    assert same.pk == again.pk


def test_two_people_do_not_overwrite_one_another(project, owner):
    first = make_contract(project)
    redefine(current=first, wanted=wanted(), user_id=owner.pk, now=NOW)
    with pytest.raises(DefinedMeanwhile, match="at the same time"):
        set_state(
            current=first, state=DefinitionState.PAUSED, user_id=owner.pk, now=NOW
        )
    with pytest.raises(DefinedMeanwhile):
        redefine(current=first, wanted=wanted(label="Other"), user_id=owner.pk, now=NOW)


def test_a_name_is_taken_once_in_a_project_by_either_kind(project):
    make_contract(project)
    fact = wanted({"value": "17", "probe": "x"}, "No: refund!", "planted-fact")
    with pytest.raises(BadDefinition) as refused:
        define(project_id=project.pk, wanted=fact, user_id=None, now=NOW)
    assert refused.value.field == "label"
    make_contract(make_project())


@pytest.mark.parametrize("label", ["", "!!!", "new", "New", "日本"])
def test_a_name_of_which_no_address_is_left_is_refused(project, label):
    with pytest.raises(BadDefinition) as refused:
        slug_from(label)
    assert refused.value.field == "label"


def test_long_names_make_short_addresses():
    assert slug_from("Before every refund there is a look_up") == (
        "before-every-refund-there-i"
    )


def test_what_cannot_be_checked_is_not_stored(project):
    with pytest.raises(BadDefinition):
        define(
            project_id=project.pk,
            wanted=wanted({"operator": "sometimes"}),
            user_id=None,
            now=NOW,
        )
    assert not Definition.objects.exists()


def test_there_are_at_most_a_hundred(project, monkeypatch):
    monkeypatch.setattr("apps.screening.definitions.MOST_DEFINITIONS", 1)
    first = make_contract(project)
    with pytest.raises(BadDefinition, match="retire one first"):
        make_contract(project, label="Another")
    set_state(current=first, state=DefinitionState.RETIRED, user_id=None, now=NOW)
    make_contract(project, label="Another")


def test_the_list_shows_the_newest_rows_and_retired_ones_last(project):
    first = make_contract(project, label="A")
    make_contract(project, label="B")
    set_state(current=first, state=DefinitionState.RETIRED, user_id=None, now=NOW)
    assert [row.label for row in definitions_of(project.pk)] == ["B", "A"]
    newest = current_definition(project_id=project.pk, slug="a")
    assert newest.state == DefinitionState.RETIRED
    assert current_definition(project_id=project.pk, slug="c") is None


def test_the_list_takes_one_query(project):
    for label in ("A", "B", "C"):
        make_contract(project, label=label)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        definitions_of(project.pk)
    assert len(queries) == 1
