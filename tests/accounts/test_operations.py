"""Projects, members, tokens and one-time links."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction

from apps.accounts.models import ApiToken, Membership, Project, SignInLink
from apps.accounts.operations import (
    LINK_LIFETIME,
    create_project,
    create_sign_in_link,
    create_token,
    note_token_use,
    revoke_token,
    set_role,
    use_sign_in_link,
)
from apps.accounts.permissions import NotAllowed, Role, Scope
from apps.accounts.queries import live_token, membership, tokens_of
from tests.factories import NOW, make_member, make_project, make_user

READ = [Scope.READ]
pytestmark = pytest.mark.django_db


def roles(project):
    return dict(
        Membership.objects.filter(project=project).values_list("user__username", "role")
    )


class TestProjects:
    """A project has a name, an address of its own, and always an owner."""

    def test_its_maker_owns_it(self):
        ada = make_user("ada")
        project = create_project(name="Support Désk!", owner=ada, now=NOW)
        assert project.slug == "support-desk"
        assert roles(project) == {"ada": "owner"}

    def test_a_taken_address_gets_a_number(self):
        ada = make_user("ada")
        slugs = [create_project(name="Desk", owner=ada, now=NOW).slug for _ in range(3)]
        assert slugs == ["desk", "desk-2", "desk-3"]

    @pytest.mark.parametrize("name", ["日本", "!!!", "x" * 120])
    def test_any_name_gives_an_address(self, name):
        project = create_project(name=name, owner=make_user(), now=NOW)
        assert 0 < len(project.slug) <= 60
        assert project.name == name


class TestRoles:
    """Changing them never leaves a project without an owner."""

    @pytest.mark.parametrize("role", [*Role, None])
    def test_a_member_gets_the_role_and_keeps_one_membership(self, project, role):
        user = make_member(project, Role.VIEWER, "mia")
        for _ in range(2):
            set_role(project=project, user=user, role=role, now=NOW)
        expected = {"olga": "owner"} | ({"mia": role.value} if role else {})
        assert roles(project) == expected

    @pytest.mark.parametrize("role", [Role.VIEWER, Role.MAINTAINER, None])
    def test_the_last_owner_stays(self, project, owner, role):
        make_member(project, Role.MAINTAINER, "mia")
        with pytest.raises(NotAllowed, match="at least one owner"):
            set_role(project=project, user=owner, role=role, now=NOW)
        assert roles(project)["olga"] == "owner"

    def test_an_owner_may_go_once_there_is_another(self, project, owner):
        make_member(project, Role.OWNER, "mia")
        set_role(project=project, user=owner, role=None, now=NOW)
        assert roles(project) == {"mia": "owner"}

    def test_the_last_owner_may_be_made_owner_again(self, project, owner):
        set_role(project=project, user=owner, role=Role.OWNER, now=NOW)
        assert roles(project) == {"olga": "owner"}

    def test_an_owner_elsewhere_does_not_count(self, project, owner):
        make_project(owner=owner)
        with pytest.raises(NotAllowed):
            set_role(project=project, user=owner, role=Role.VIEWER, now=NOW)

    @pytest.mark.usefixtures("project")
    def test_the_database_refuses_a_role_that_does_not_exist(self):
        with (
            pytest.raises(IntegrityError, match="membership_role_known"),
            transaction.atomic(),
        ):
            Membership.objects.update(role="emperor")

    @pytest.mark.django_db(transaction=True)
    def test_two_owners_who_leave_at_once_leave_one_owner(self, project, owner):
        other = make_member(project, Role.OWNER, "mia")
        start = threading.Barrier(2)

        def leave(user) -> bool:
            start.wait()
            try:
                set_role(project=project, user=user, role=None, now=NOW)
            except NotAllowed:
                return False
            finally:
                connection.close()
            return True

        with ThreadPoolExecutor(2) as pool:
            left = list(pool.map(leave, [owner, other]))
        assert sorted(left) == [False, True]
        assert list(roles(project).values()) == ["owner"]


class TestTokens:
    """A secret is shown once; what is kept cannot be turned back into it."""

    def test_only_a_digest_is_kept(self, project, owner):
        token, secret = create_token(
            project=project, name="ci", scopes=READ, user=owner, now=NOW
        )
        kept = ApiToken.objects.filter(pk=token.pk).values()[0]
        assert secret not in str(kept)
        assert len(secret) > 40
        assert secret.startswith(token.prefix)
        assert live_token(secret) == token
        assert live_token(secret[:-1]) is None
        assert live_token(token.digest) is None

    def test_a_revoked_token_is_dead_and_stays_in_the_list(self, project, owner):
        token, secret = create_token(
            project=project, name="ci", scopes=READ, user=owner, now=NOW
        )
        revoke_token(token=token, now=NOW)
        revoke_token(token=token, now=NOW + timedelta(days=1))
        assert live_token(secret) is None
        assert [row.revoked_at for row in tokens_of(project)] == [NOW]

    def test_a_name_is_free_again_after_its_token_was_revoked(self, project, owner):
        facts = {"project": project, "scopes": READ, "user": owner, "now": NOW}
        token, _ = create_token(name="ci", **facts)
        with pytest.raises(NotAllowed, match="live token called “CI”"):
            create_token(name="CI", **facts)
        revoke_token(token=token, now=NOW)
        create_token(name="CI", **facts)

    def test_a_token_that_may_do_nothing_is_refused(self, project, owner):
        with pytest.raises(NotAllowed, match="at least one thing"):
            create_token(project=project, name="ci", scopes=[], user=owner, now=NOW)

    def test_its_last_use_is_kept_to_the_minute(self, project, owner):
        token, _ = create_token(
            project=project, name="ci", scopes=READ, user=owner, now=NOW
        )
        for seconds, expected in ((0, 0), (59, 0), (60, 60)):
            note_token_use(token=token, now=NOW + timedelta(seconds=seconds))
            token.refresh_from_db()
            assert token.last_used_at == NOW + timedelta(seconds=expected)


class TestSignInLinks:
    """A link signs in one user, once, for a while."""

    def test_it_works_once(self):
        ada = make_user("ada")
        secret = create_sign_in_link(user=ada, now=NOW)
        assert use_sign_in_link(secret=secret, now=NOW) == ada
        assert use_sign_in_link(secret=secret, now=NOW) is None

    def test_it_expires_after_a_while(self):
        secret = create_sign_in_link(user=make_user(), now=NOW)
        assert use_sign_in_link(secret=secret, now=NOW + LINK_LIFETIME) is None
        almost = NOW + LINK_LIFETIME - timedelta(seconds=1)
        assert use_sign_in_link(secret=secret, now=almost) is not None

    def test_only_a_digest_is_kept(self):
        secret = create_sign_in_link(user=make_user(), now=NOW)
        kept = SignInLink.objects.values()[0]
        assert secret not in str(kept)
        assert use_sign_in_link(secret=kept["digest"], now=NOW) is None

    def test_it_is_worth_nothing_to_a_user_who_was_deactivated(self):
        ada = make_user("ada")
        secret = create_sign_in_link(user=ada, now=NOW)
        ada.is_active = False
        ada.save()
        assert use_sign_in_link(secret=secret, now=NOW) is None

    @pytest.mark.django_db(transaction=True)
    def test_it_works_once_for_eight_at_the_same_time(self):
        secret = create_sign_in_link(user=make_user("ada"), now=NOW)
        start = threading.Barrier(8)

        def use(_: int) -> bool:
            start.wait()
            try:
                return use_sign_in_link(secret=secret, now=NOW) is not None
            finally:
                connection.close()

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(use, range(8))) == 1


def test_a_stranger_has_no_membership(project):
    assert membership(user=make_user("stranger"), slug=project.slug) is None
    assert membership(user=make_user("lost"), slug="no-such-project") is None
    assert Project.objects.count() == 1
