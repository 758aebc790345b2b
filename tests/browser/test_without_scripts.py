from __future__ import annotations

import pytest
from playwright.sync_api import expect

from apps.engine.formats.evalsite_writer import dump
from apps.reports.models import Report
from apps.review.models import Signal
from tests.factories import decay_trace


@pytest.fixture
def page(open_page, owner):
    return open_page(owner, java_script_enabled=False)


def read_until_done(page) -> None:
    for _ in range(100):
        if page.locator("#receipt .pill", has_text="done").count():
            return
        page.wait_for_timeout(100)
        page.reload()
    pytest.fail("The upload was not read.")


def test_upload_claim_decide_undo_and_freeze_work_without_scripts(page, project):
    lengths = (300, 250, 200, 150, 100, 60)
    traces = [
        decay_trace(*(n + add for n in lengths), name=f"run {add}") for add in (0, 1)
    ]
    page.goto(f"/projects/{project.slug}/uploads/")
    content = b"".join(map(dump, traces))
    page.set_input_files(
        "#id_file", {"name": "runs.jsonl", "mimeType": "", "buffer": content}
    )
    page.get_by_role("button", name="Upload").click()
    expect(page.locator("h1")).to_have_text("runs.jsonl")
    read_until_done(page)

    page.get_by_role("link", name="Review 2 signals").click()
    page.locator("a.row-link").first.click()
    signal = Signal.objects.get(project=project, pk=int(page.url.split("/")[6]))
    page.get_by_role("button", name="Claim").click()
    expect(page.locator("[data-claim]")).to_contain_text("yours")

    page.get_by_label("Confirm").check()
    page.locator("#note").fill("It fell.")
    page.get_by_role("button", name="Submit and next").click()
    expect(page.locator("#messages")).to_contain_text("Decided")
    signal.refresh_from_db()
    assert (signal.state, signal.verdict) == ("decided", "confirm")

    page.locator("#messages").get_by_role("button", name="Undo").click()
    expect(page.locator("#messages")).to_contain_text("Undone")
    signal.refresh_from_db()
    assert (signal.state, signal.claimed_by_id) == ("claimed", page_owner(project).pk)

    page.get_by_role("radio", name="Dismiss").check()
    page.locator("input[name=reason]").first.check()
    page.get_by_role("button", name="Submit and next").click()
    signal.refresh_from_db()
    assert (signal.state, signal.verdict) == ("decided", "dismiss")

    page.goto(f"/projects/{project.slug}/reports/")
    page.get_by_role("button", name="Freeze a report").click()
    expect(page.locator("main")).to_contain_text("Output fell")
    assert Report.objects.filter(project=project).count() == 1


def page_owner(project):
    return project.members.get()


def test_whole_steps_open_as_pages_of_their_own_without_scripts(page, project):
    page.goto(f"/projects/{project.slug}/uploads/")
    content = dump(decay_trace(30, 20, 10, name="steps"))
    page.set_input_files(
        "#id_file", {"name": "s.jsonl", "mimeType": "", "buffer": content}
    )
    page.get_by_role("button", name="Upload").click()
    read_until_done(page)
    page.get_by_role("link", name="Its traces").click()
    page.locator("a.row-link").first.click()
    page.get_by_text("Whole step").first.click()
    page.get_by_role("link", name="Open the texts of this step").first.click()
    expect(page.locator("body")).to_contain_text("prompt 0")
