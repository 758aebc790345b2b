"""Contracts in a browser: the preview follows the form, and the form works without it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from apps.screening.models import Definition, Screening
from tests.factories import tools_trace, upload_traces


@pytest.fixture
def desk(project):
    upload_traces(
        project,
        tools_trace("refund", "lookup", name="rash"),
        tools_trace("lookup", "refund", name="careful"),
    )
    return project


def write(page) -> None:
    page.get_by_label("Name", exact=True).fill("Look first")
    steps = page.get_by_role("group", name="Which steps")
    steps.get_by_label("Tool or step name").fill("refund")
    before = page.get_by_role("group", name="Which step must come before")
    before.get_by_label("Tool or step name").fill("lookup")


def test_the_preview_follows_what_is_typed_and_saving_checks_everything(page, desk):
    page.goto(f"/projects/{desk.slug}/contracts/new/")
    write(page)
    preview = page.locator("#preview")
    expect(preview).to_contain_text("1 breaks it", timeout=10_000)
    expect(preview).to_contain_text("1 holds")
    expect(preview.get_by_role("link", name="rash")).to_be_visible()
    page.get_by_label("What must hold").select_option("never")
    expect(page.get_by_role("group", name="Which step must come before")).to_be_hidden()
    expect(preview).to_contain_text("2 break it", timeout=10_000)
    assert not Definition.objects.filter(project=desk).exists()
    page.get_by_label("What must hold").select_option("precedes")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("h1")).to_have_text("Look first")
    expect(page.locator("#messages")).to_contain_text("Saved.")
    for _ in range(100):
        if Screening.objects.filter(check_slug="contract-look-first").count() == 2:
            break
        page.wait_for_timeout(100)
    page.goto(f"/projects/{desk.slug}/contracts/")
    expect(page.locator("tbody tr")).to_contain_text("there must be an earlier step")
    assert Screening.objects.get(answer="signal", check_slug="contract-look-first")


def test_what_is_wrong_is_said_in_a_line_not_in_a_column_of_letters(page, desk):
    page.goto(f"/projects/{desk.slug}/contracts/new/")
    page.get_by_label("What must hold").select_option("at_most")
    page.get_by_label("Name", exact=True).fill("Few refunds")
    note = page.locator("#preview .notes li", has_text="needs a number")
    expect(note).to_be_visible(timeout=10_000)
    box = note.bounding_box()
    assert box["width"] > 2 * box["height"]


def test_it_is_written_and_tried_without_scripts(open_page, owner, desk):
    page = open_page(owner, java_script_enabled=False)
    page.goto(f"/projects/{desk.slug}/contracts/new/")
    write(page)
    page.get_by_role("button", name="Try it").click()
    expect(page.locator("#preview")).to_contain_text("1 breaks it")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Look first")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("h1")).to_have_text("Look first")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".page-head")).to_contain_text("paused")
