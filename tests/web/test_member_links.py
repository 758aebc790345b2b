"""Members of a project: they come in whole or not at all, and get new links."""

from __future__ import annotations

import re

import pytest
from django.db import OperationalError
from django.db.models.signals import pre_save
from django.test import Client
from django.urls import reverse

from apps.accounts.models import Membership, SignInLink, User
from apps.accounts.operations import add_member, set_role
from apps.accounts.permissions import Role
from tests.factories import NOW, make_member, make_project

WIDE_NINA = "\uff4e\uff49\uff4e\uff41"


@pytest.fixture
def web(client, owner):
    client.force_login(owner)
    client.raise_request_exception = False
    return client


class TestSignInLinks:
    """An owner makes one for a member without a password, and nobody else's."""

    @pytest.fixture
    def invited(self, project) -> User:
        """A member who came by a link and has set no password."""
        user, _ = add_member(
            project=project, username="ines", role=Role.REVIEWER, now=NOW
        )
        return user

    def ask(self, web, project, user):
        return web.post(reverse("member-link", args=[project.slug, user.pk]))

    def test_the_link_is_shown_once_and_signs_the_member_in(
        self, web, project, invited
    ):
        text = self.ask(web, project, invited).content.decode()
        found = re.search(r"/sign-in/[\w-]+/", text)
        assert found is not None
        visitor = Client()
        assert visitor.post(found[0]).status_code == 302
        assert visitor.session["_auth_user_id"] == str(invited.pk)
        again = web.get(reverse("project-settings", args=[project.slug]))
        assert found[0] not in again.content.decode()

    def test_there_is_a_button_for_each_member(self, web, project, invited):
        page = web.get(reverse("project-settings", args=[project.slug]))
        text = page.content.decode()
        url = reverse("member-link", args=[project.slug, invited.pk])
        form = text[text.index(f'action="{url}"') :]
        assert "New sign-in link" in form[: form.index("</form>")]
        assert "disabled" not in form[: form.index("</form>")]

    def test_a_member_with_a_password_needs_none(self, web, project):
        member = make_member(project, Role.VIEWER, "paul")
        answer = self.ask(web, project, member)
        assert answer.status_code == 422
        assert "paul signs in with a password" in answer.content.decode()
        assert not SignInLink.objects.exists()

    def test_it_opens_no_project_that_the_owner_does_not_own(
        self, web, project, owner, invited
    ):
        elsewhere = make_project(name="Elsewhere")
        set_role(project=elsewhere, user=invited, role=Role.VIEWER, now=NOW)
        set_role(project=elsewhere, user=owner, role=Role.MAINTAINER, now=NOW)
        before = SignInLink.objects.count()
        answer = self.ask(web, project, invited)
        assert answer.status_code == 422
        assert "projects that you do not own" in answer.content.decode()
        assert SignInLink.objects.count() == before
        set_role(project=elsewhere, user=owner, role=Role.OWNER, now=NOW)
        assert self.ask(web, project, invited).status_code == 200

    def test_a_name_written_in_wide_letters_is_the_same_name(self, web, project):
        url = reverse("member-add", args=[project.slug])
        assert (
            web.post(url, {"username": WIDE_NINA, "role": "viewer"}).status_code == 200
        )
        assert web.post(url, {"username": "nina", "role": "viewer"}).status_code == 200
        assert User.objects.filter(username="nina").count() == 1
        assert not User.objects.filter(username=WIDE_NINA).exists()

    def test_a_name_that_is_too_long_once_written_plainly_is_refused(
        self, web, project
    ):
        url = reverse("member-add", args=[project.slug])
        answer = web.post(url, {"username": "\ufdfa" * 100, "role": "viewer"})
        assert answer.status_code == 422

    def test_adding_a_member_that_fails_leaves_no_user(self, web, project):
        def fail(**_: object) -> None:
            raise OperationalError("gone")

        pre_save.connect(fail, sender=Membership)
        try:
            url = reverse("member-add", args=[project.slug])
            answer = web.post(url, {"username": "nina", "role": "viewer"})
        finally:
            pre_save.disconnect(fail, sender=Membership)
        assert answer.status_code == 503
        assert not User.objects.filter(username="nina").exists()
        assert not SignInLink.objects.exists()
