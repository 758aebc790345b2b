"""Who may do what, as one table, and the sentence that says why not."""

from __future__ import annotations

import pytest

from apps.accounts.permissions import (
    LEAST_ROLE,
    NotAllowed,
    Permission,
    Role,
    allows,
    check_allowed,
    refusal,
)
from tests.each import for_each

# Columns: stranger, viewer, reviewer, maintainer, owner.
MATRIX = {
    Permission.VIEW: (False, True, True, True, True),
    Permission.REVIEW: (False, False, True, True, True),
    Permission.MANAGE_SETS: (False, False, True, True, True),
    Permission.FREEZE_REPORT: (False, False, True, True, True),
    Permission.REPLAY: (False, False, True, True, True),
    Permission.UPLOAD: (False, False, False, True, True),
    Permission.MANAGE_TOKENS: (False, False, False, True, True),
    Permission.MANAGE_PRIVACY: (False, False, False, True, True),
    Permission.MANAGE_CHECKS: (False, False, False, True, True),
    Permission.MANAGE_AGENTS: (False, False, False, True, True),
    Permission.MANAGE_TARGETS: (False, False, False, True, True),
    Permission.MANAGE_MEMBERS: (False, False, False, False, True),
}
ROLES = (None, Role.VIEWER, Role.REVIEWER, Role.MAINTAINER, Role.OWNER)
CELLS = [
    pytest.param(role, permission, allowed, id=f"{role}-{permission}")
    for permission, row in MATRIX.items()
    for role, allowed in zip(ROLES, row, strict=True)
]


def test_what_only_owners_may_is_said_without_a_higher_role():
    assert refusal(Role.VIEWER, Permission.MANAGE_MEMBERS) == (
        "Only an owner may manage members; you are a viewer."
    )


def test_every_permission_and_every_role_is_in_the_table():
    assert set(MATRIX) == set(Permission) == set(LEAST_ROLE)
    assert ROLES[1:] == tuple(Role)


@for_each(("role", "permission", "allowed"), CELLS)
def test_a_role_may_do_what_the_table_says(role, permission, allowed):
    assert allows(role, permission) is allowed
    if allowed:
        assert refusal(role, permission) == ""
        check_allowed(role, permission)


@for_each(("role", "permission"), [c.values[:2] for c in CELLS if not c.values[2]])
def test_a_refusal_says_who_may_and_what_you_are(role, permission):
    with pytest.raises(NotAllowed) as refused:
        check_allowed(role, permission)
    sentence = str(refused.value)
    assert sentence == refusal(role, permission)
    assert LEAST_ROLE[permission].label.lower() in sentence
    assert ("not a member" if role is None else role.value) in sentence
    assert sentence.endswith(".")


def test_a_role_that_does_not_exist_is_an_error_and_never_a_permission():
    with pytest.raises(ValueError, match="emperor"):
        allows("emperor", Permission.VIEW)
