"""What of one's own files has arrived in part: the page of uploads names it."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.accounts.permissions import Role
from apps.traces.storage import size_in_words
from tests.factories import make_member, make_project
from tests.web.sending import CONTENT, Sender


@pytest.fixture
def sender(project, owner):
    return Sender(project, owner)


@pytest.fixture
def url(sender):
    return sender.begin(filename="a.jsonl")["Location"]


def page_of(sender) -> str:
    url = reverse("uploads", args=[sender.project.slug])
    return sender.client.get(url).content.decode()


def test_it_says_how_much_has_arrived_and_how_to_go_on(sender):
    assert "Not sent to their end" not in page_of(sender)
    url = sender.begin(filename="half.jsonl")["Location"]
    sender.add(url, CONTENT[:1500], 0)
    page = page_of(sender)
    assert "half.jsonl" in page
    assert f"1.5 kB of {size_in_words(len(CONTENT))} have arrived." in page
    assert "Drop the same file again to go on." in page
    sender.add(url, CONTENT[1500:], 1500)
    assert "Not sent to their end" not in page_of(sender)


def test_nobody_else_sees_or_removes_it(sender, project, url):
    sender.add(url, CONTENT[:1500], 0)
    other = Sender(project, make_member(project, Role.MAINTAINER))
    assert "a.jsonl" not in page_of(other)
    remove = url + "remove/"
    assert other.client.post(remove).status_code == 302
    assert sender.ask(url)["Upload-Offset"] == "1500"


def test_it_can_be_removed_and_removing_twice_is_the_same(sender, url):
    sender.add(url, CONTENT[:1500], 0)
    remove = url + "remove/"
    for _ in range(2):
        answer = sender.client.post(remove)
        assert answer.status_code == 302
    assert "a.jsonl" in page_of(sender)
    assert "a.jsonl" not in page_of(sender)
    assert sender.ask(url).status_code == 404


def test_the_answer_tells_bytes_that_were_here_under_another_name(sender):
    answers = []
    for name in ("first.jsonl", "second.jsonl"):
        url = sender.begin(filename=name)["Location"]
        answers.append(sender.add(url, CONTENT, 0))
    assert "Upload-Known" not in answers[0]
    assert answers[1]["Upload-Known"] == "yes"
    assert answers[0]["Upload-Receipt"] == answers[1]["Upload-Receipt"]
    progress = sender.client.get(answers[1]["Upload-Receipt"] + "progress/")
    assert progress.json()["name"] == "first.jsonl"


def test_strangers_and_those_who_may_not_upload_remove_nothing(sender, project, url):
    sender.add(url, CONTENT[:1500], 0)
    elsewhere = make_project(name="Elsewhere")
    for user, status in (
        (None, 302),
        (make_member(project, Role.REVIEWER), 403),
        (elsewhere.members.get(), 404),
    ):
        answer = Sender(project, user).client.post(url + "remove/")
        assert answer.status_code == status
    assert sender.client.get(url + "remove/").status_code == 405
    assert sender.ask(url)["Upload-Offset"] == "1500"
