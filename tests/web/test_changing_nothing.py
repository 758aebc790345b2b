"""Looking changes nothing: no row of any table comes, goes or is written by a GET."""

from __future__ import annotations

import pytest

from apps.accounts.permissions import Role
from tests.factories import make_member, make_project
from tests.web.table_rows import rows_of_all_tables
from tests.web.test_access import (
    ALSO_POST,
    FOR_EVERYONE_SIGNED_IN,
    LEAST_ROLE,
    ask,
    house,
    owner,
    project,
    rooms,
    signed_in_as,
    uploads_dir,
    url_of,
)

__all__ = ["house", "owner", "project", "rooms", "uploads_dir"]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OWNER])
def test_a_walk_over_every_page_leaves_every_table_as_it_was(rooms, project, role):
    client = signed_in_as(make_member(project, role))
    names = [name for name, (method, _) in LEAST_ROLE.items() if method == "get"]
    before = rows_of_all_tables()
    assert before["review.Signal"][0]
    assert before["screening.Shadow"][0]
    for name in [*names, *ALSO_POST, *sorted(FOR_EVERYONE_SIGNED_IN - {"sign-out"})]:
        assert ask(client, name, rooms).status_code < 500, name
        assert rows_of_all_tables() == before, name


ONE = "5f0c35b2-7f4e-4c6e-9d0e-1f1c7f2b8a11"
FIELDS = {
    "upload-read-again": {"format": ""},
    "trace-task": {"task": "another", "trial": "2"},
    "task-rename": {"name": "another"},
    "set-new": {"name": "New"},
    "set-rename": {"name": "Other", "note": ""},
    "set-baseline": {"act": "choose"},
    "shadow-adopt": {"seen": "1"},
    "check-adopt": {"seen": "1", "number": "1"},
    "check-pause": {"act": "pause"},
    "shadows": {"min_calls": "7", "last_percent": "41", "max_chance": "0.05"},
    "case-rename": {"name": "Other"},
    "contract-state": {"state": "paused"},
    "agent-rename": {"name": "Notes", "description": "Keeps what was said."},
    "agent-tools": {"tool": "search_notes", "tools": "keep_note"},
    "agent-restore": {"version": "1", "number": "2"},
    "agent-contract": {
        "act": "save",
        "name": "knows it",
        "pattern": "27",
        "number": "2",
    },
    "agent-decision": {"act": "save", "of": "first", "number": "2"},
    "agent-outcomes": {"act": "save", "task": "*", "expect": "pass", "number": "1"},
    "agent-outcomes-decision": {"act": "save", "of": "first", "number": "1"},
    "signal-decide": {"verdict": "confirm", "version": "0", "submission": ONE},
    "signal-draft": {"note": "typed"},
    "blind-decide": {"verdict": "failure", "version": "0", "submission": ONE},
    "blind-draft": {"note": "typed"},
    "blind-percent": {"percent": "30"},
}

# The key that counts already.
REFUSED = {"check-adopt"}
# Those of one upload, trace, signal, set, contract and so on, not of the project.
OF_NO_ONE_THING = {
    "uploads",
    "reports",
    "set-new",
    "contract-new",
    "agent-new",
    "agent-file",
    "agent-outcomes",
    "agent-outcomes-decision",
    "agent-outcomes-remove",
    "agent-outcomes-restore",
    "shadows",
    "replay-cases-file",
    "replay-cases-chosen",
    "replay-target-new",
    "replay-memory",
    "replay-plan",
    "replay-case-new",
    "check-adopt",
    "check-pause",
    "queue-next",
    "queue-undo",
    "blind-percent",
    "blind-withdraw",
    "member-add",
    "privacy-change",
    "token-create",
}


def posting(names) -> dict[str, Role]:
    """The addresses among `names` that take a POST, and the least role for it."""
    least = {
        name: role for name, (method, role) in LEAST_ROLE.items() if method == "post"
    }
    return {name: role for name, role in (least | ALSO_POST).items() if name in names}


def test_a_form_from_below_ones_role_changes_nothing(rooms, project):
    order = list(Role)
    people = {role: signed_in_as(make_member(project, role)) for role in order[:-1]}
    before = rows_of_all_tables()
    for name, least in posting(set(LEAST_ROLE)).items():
        for role in order[: order.index(least)]:
            answer = people[role].post(url_of(name, rooms), FIELDS.get(name, {}))
            assert answer.status_code == 403, (name, role)
    assert rows_of_all_tables() == before


def test_a_form_about_what_another_project_has_changes_nothing(rooms):
    elsewhere = make_project(name="Elsewhere")
    owner = signed_in_as(elsewhere.members.get())
    args = {**rooms, "slug": elsewhere.slug}
    before = rows_of_all_tables()
    for name in posting(set(LEAST_ROLE) - OF_NO_ONE_THING):
        answer = owner.post(url_of(name, args), FIELDS.get(name, {}))
        assert answer.status_code == 404, name
    assert rows_of_all_tables() == before


@pytest.mark.parametrize("name", sorted(FIELDS))
def test_a_form_that_is_sent_twice_does_once_what_it_does(rooms, owner, name):
    client = signed_in_as(owner)
    fields = FIELDS[name]
    first = client.post(url_of(name, rooms), fields)
    assert first.status_code < 400 or name in REFUSED, first.content.decode()[-900:]
    once = {label: count for label, (count, _) in rows_of_all_tables().items()}
    assert client.post(url_of(name, rooms), fields).status_code < 500
    twice = {label: count for label, (count, _) in rows_of_all_tables().items()}
    assert twice == once
