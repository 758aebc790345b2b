from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from apps.accounts.operations import set_blind_percent
from apps.accounts.permissions import Role
from apps.engine.formats.evalsite_writer import dump
from apps.review.models import BlindLook
from tests.browser.making import upload_and_read
from tests.factories import decay_trace, make_member, make_project, make_user


@pytest.fixture
def desk(site):
    """A project with blind looks alone: nothing of it is flagged."""
    project = make_project(owner=make_user(), name="A desk to look at")
    set_blind_percent(project=project, percent=100)
    project.refresh_from_db()
    traces = [
        decay_trace(50 + number, 60, 55, 58, 61, name=f"quiet {number}")
        for number in range(3)
    ]
    upload_and_read(project, b"".join(map(dump, traces)), name="quiet.jsonl")
    assert BlindLook.objects.filter(project=project).count() == 3
    return project


@pytest.fixture
def page(open_page, desk):
    return open_page(make_member(desk, Role.REVIEWER))


def look_at(page) -> BlindLook:
    return BlindLook.objects.get(pk=page.url.rstrip("/").rpartition("/")[2])


def test_a_look_is_taken_decided_undone_and_revealed_with_the_keyboard(page, desk):
    page.goto(reverse("queue", args=[desk.slug]))
    page.keyboard.press("g")
    page.wait_for_url("**/blind/*/")
    expect(page.locator("[data-claim]")).to_contain_text("yours for")
    page.keyboard.press("1")
    expect(page.get_by_label("Kind of failure")).to_be_visible()
    page.keyboard.press("2")
    expect(page.get_by_label("Kind of failure")).to_be_hidden()
    page.keyboard.press("c")
    page.keyboard.type("It answers.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="Decided")).to_be_visible()
    assert look_at(page).verdict == "no_failure"
    page.keyboard.press("u")
    expect(page.get_by_text("Undone. The look is yours again.")).to_be_visible()
    page.keyboard.press("3")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="Decided")).to_be_visible()
    assert look_at(page).verdict == "cannot_tell"
    expect(page.get_by_text("What the checks answered")).to_be_hidden()
    page.get_by_role("button", name="Show what the checks said").click()
    expect(page.get_by_text("What the checks answered")).to_be_visible()
    first = page.url
    page.keyboard.press("Control+Enter")
    page.wait_for_function("url => location.href !== url", arg=first.split("#")[0])
    expect(page.get_by_text("Did something go wrong in this run?")).to_be_visible()


def test_without_an_answer_the_page_says_what_is_missing_and_keeps_the_note(page, desk):
    page.goto(reverse("queue", args=[desk.slug]))
    page.keyboard.press("g")
    page.wait_for_url("**/blind/*/")
    page.locator("#note").fill("half a thought")
    expect(page.locator("[data-saved]")).to_contain_text("Saved")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-refused]")).to_have_text(
        "Choose a decision first: 1 to 3."
    )
    page.reload()
    expect(page.locator("#note")).to_have_value("half a thought")


def test_without_scripts_a_look_is_decided_too(open_page, desk):
    page = open_page(make_member(desk, Role.REVIEWER), java_script_enabled=False)
    page.goto(reverse("queue", args=[desk.slug]))
    page.get_by_role("button", name="Review next").click()
    page.get_by_label("No failure").check()
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="Decided")).to_be_visible()
    page.get_by_role("button", name="Show what the checks said").click()
    expect(page.get_by_text("What the checks answered")).to_be_visible()
