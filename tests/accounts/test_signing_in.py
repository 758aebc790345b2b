"""Signing in by password and by link, and sessions that end when they should."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.accounts.operations import LINK_LIFETIME, create_sign_in_link, set_role
from apps.accounts.permissions import Role
from tests.factories import NOW, make_member, make_user

PASSWORD = "correct horse battery"
NEW = "another staple 9142"


def sign_in(name: str, password: str, **more: str) -> Client:
    client = Client()
    client.post(reverse("sign-in"), {"username": name, "password": password, **more})
    return client


def is_in(client: Client) -> bool:
    return client.get(reverse("account")).status_code == 200


def link_for(user, *, age: timedelta = timedelta(0)) -> str:
    secret = create_sign_in_link(user=user, now=timezone.now() - age)
    return reverse("sign-in-link", args=[secret])


class TestALink:
    """Looking at it costs nothing; using it uses it up."""

    def test_a_preview_does_not_use_it_up(self, owner):
        url = link_for(owner)
        for _ in range(3):
            answer = Client().get(url)
            assert answer.status_code == 200
            assert "sessionid" not in answer.cookies
        client = Client()
        assert client.post(url).status_code == 302
        assert is_in(client)

    def test_the_second_use_is_told_so_and_lets_nobody_in(self, owner):
        url = link_for(owner)
        Client().post(url)
        late = Client()
        answer = late.post(url)
        assert answer.status_code == 410
        assert not is_in(late)

    def test_an_old_one_lets_nobody_in(self, owner):
        client = Client()
        assert client.post(link_for(owner, age=LINK_LIFETIME)).status_code == 410
        assert not is_in(client)

    def test_it_is_kept_by_no_cache_and_sent_to_no_other_site(self, owner):
        answer = Client().get(link_for(owner))
        assert "no-store" in answer["Cache-Control"]
        assert answer["Referrer-Policy"] == "same-origin"

    def test_a_session_of_before_is_not_taken_over(self, owner):
        client = Client()
        client.get(reverse("sign-in"))
        session = client.session
        session["planted"] = "yes"
        session.save()
        client.cookies["sessionid"] = planted = session.session_key
        client.post(link_for(owner))
        assert client.cookies["sessionid"].value != planted
        stolen = Client()
        stolen.cookies["sessionid"] = planted
        assert not is_in(stolen)


@pytest.mark.usefixtures("owner")
class TestAPassword:
    """Set once signed in; ends every other session."""

    def change(self, client: Client, first: str, second: str):
        return client.post(
            reverse("account-password"),
            {"new_password1": first, "new_password2": second},
        )

    def test_it_is_set_and_works(self, owner):
        client = Client()
        client.post(link_for(owner))
        assert self.change(client, NEW, NEW).status_code == 302
        assert is_in(client)
        assert is_in(sign_in("olga", NEW))
        assert not is_in(sign_in("olga", PASSWORD))

    def test_other_sessions_end_with_it(self):
        here, there = sign_in("olga", PASSWORD), sign_in("olga", PASSWORD)
        assert is_in(there)
        self.change(here, NEW, NEW)
        assert is_in(here)
        assert not is_in(there)

    @pytest.mark.parametrize(
        ("first", "second", "words"),
        [
            (NEW, NEW + "x", "match"),
            ("short", "short", "too short"),
            ("password123", "password123", "too common"),
            ("", "", "required"),
            ("a\x00" + NEW, "a\x00" + NEW, "ull characters"),
        ],
    )
    def test_a_poor_one_is_refused_in_words(self, first, second, words):
        client = sign_in("olga", PASSWORD)
        answer = self.change(client, first, second)
        assert answer.status_code == 422
        assert words in answer.content.decode()
        assert is_in(sign_in("olga", PASSWORD))

    def test_one_of_a_hundred_thousand_characters_is_no_failure(self):
        client = sign_in("olga", PASSWORD)
        long = "long" * 25_000
        assert self.change(client, long, long).status_code in {302, 422}


@pytest.mark.usefixtures("owner")
class TestASession:
    """Dead at the next request once its reason is gone."""

    def test_it_ends_at_sign_out_even_for_a_copied_cookie(self):
        client = sign_in("olga", PASSWORD)
        copied = Client()
        copied.cookies["sessionid"] = client.cookies["sessionid"].value
        assert is_in(copied)
        client.post(reverse("sign-out"))
        assert not is_in(client)
        assert not is_in(copied)

    def test_signing_out_takes_a_post(self):
        client = sign_in("olga", PASSWORD)
        assert client.get(reverse("sign-out")).status_code == 405
        assert is_in(client)

    def test_it_ends_when_the_user_is_deactivated(self, owner):
        client = sign_in("olga", PASSWORD)
        owner.is_active = False
        owner.save()
        assert not is_in(client)

    def test_a_removed_member_finds_nothing_at_the_next_request(self, project):
        member = make_member(project, Role.VIEWER, "mia")
        client = sign_in("mia", PASSWORD)
        url = reverse("overview", args=[project.slug])
        assert client.get(url).status_code == 200
        set_role(project=project, user=member, role=None, now=NOW)
        assert client.get(url).status_code == 404

    def test_its_cookie_is_closed_to_scripts_and_other_sites(self):
        cookie = sign_in("olga", PASSWORD).cookies["sessionid"]
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"


def test_a_wrong_name_and_a_wrong_password_read_the_same(owner):
    texts = []
    for name, password in (("olga", "wrong"), ("nobody", PASSWORD)):
        answer = Client().post(
            reverse("sign-in"), {"username": name, "password": password}
        )
        assert answer.status_code == 200
        text = answer.content.decode()
        texts.append(text[text.index("<main") :].replace(name, "NAME"))
    assert _without_tokens(texts[0]) == _without_tokens(texts[1])


def _without_tokens(text: str) -> str:
    return "".join(
        line
        for line in text.splitlines(keepends=True)
        if "csrfmiddlewaretoken" not in line
    )


@pytest.mark.parametrize(
    "target", ["https://elsewhere.example/", "//elsewhere.example", "javascript:x"]
)
def test_signing_in_leads_to_no_other_site(owner, target):
    answer = Client().post(
        reverse("sign-in"),
        {"username": "olga", "password": PASSWORD, "next": target},
    )
    assert answer.status_code == 302
    assert "elsewhere" not in answer["Location"]
    assert "javascript" not in answer["Location"]


@pytest.mark.parametrize("field", ["username", "password", "next"])
@pytest.mark.parametrize("value", ["a\x00b", "x" * 200_000, "\ud83d", "<script>"])
def test_odd_values_at_the_door_are_no_failure(owner, field, value):
    fields = {"username": "olga", "password": "no", "next": "/"}
    fields[field] = value.encode("utf-8", "surrogatepass").decode("latin-1")
    assert Client().post(reverse("sign-in"), fields).status_code == 200


def test_a_user_without_a_password_signs_in_by_link_only(db):
    user = make_user("new")
    user.set_unusable_password()
    user.save()
    assert not is_in(sign_in("new", ""))
    client = Client()
    client.post(link_for(user))
    assert is_in(client)


def test_a_form_without_its_token_is_refused_in_words(owner):
    client = Client(enforce_csrf_checks=True)
    client.force_login(owner)
    answer = client.post(reverse("sign-out"))
    assert answer.status_code == 403
    assert "too old to be trusted" in answer.content.decode()
    assert is_in(client)
