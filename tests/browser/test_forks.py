"""The fork view in a browser: keys, no jumps, no scripts needed, nothing sticks out."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from apps.engine.formats.evalsite_writer import dump
from apps.traces.models import Task
from tests.browser.chromium import NARROW, WIDE
from tests.browser.making import upload_and_read
from tests.browser.rules import make_ready, problems_in_another_theme, problems_of
from tests.browser.score_scenes import settle_scores
from tests.desks import FAIL, PASS, desk_trace
from tests.web.forking import forking_trials


def long_run(trial: int):
    """A run of 200 steps that parts at 60, comes back, and parts again at 120."""
    side = trial % 3
    acts = []
    for page in range(200):
        if page == 60 and side:
            acts.append(("calls", ("ask" if side == 1 else "guess", {"n": 1}, "ok")))
        if page % 37 == trial:
            acts.append(("calls", ("look", {"again": page}, "page")))
        given = {"page": page, **({"deep": side} if page >= 120 else {})}
        acts.append(("calls", ("look", given, f"page {page}")))
    outcome = PASS if side == 1 else FAIL
    return desk_trace(("planner", acts), trial=trial, task="long", outcome=outcome)


@pytest.fixture
def desk(project):
    """Tasks that this process or the worker has read and scored."""
    traces = [*forking_trials(), *map(long_run, range(1, 21))]
    upload_and_read(project, b"".join(map(dump, traces)), name="runs.jsonl")
    settle_scores(project)
    return project


def address(project, key: str, more: str = "forks/") -> str:
    task = Task.objects.get(project=project, key=key)
    return f"/projects/{project.slug}/tasks/{task.pk}/{more}"


def test_keys_lead_to_the_fork_view_and_from_fork_to_fork(page, desk):
    page.goto(address(desk, "long", ""))
    page.keyboard.press("b")
    expect(page.locator("h1")).to_have_text("Forks of long")
    heading = page.locator("#fork h2")
    expect(heading).to_contain_text("Fork 2")
    expect(page.locator("#fork")).to_contain_text("decisive")
    page.evaluate("scrollTo(0, 150)")
    before = page.evaluate("scrollY")
    page.keyboard.press("[")
    expect(heading).to_contain_text("Fork 1")
    assert "fork=1" in page.url
    assert page.evaluate("scrollY") == before
    page.keyboard.press("]")
    expect(heading).to_contain_text("Fork 2")
    page.go_back()
    expect(heading).to_contain_text("Fork 1")


def test_the_chosen_fork_is_inside_of_the_box_and_marks_can_be_pressed(page, desk):
    page.goto(address(desk, "long"))
    for number in (1, 2):
        page.locator(f'[data-fork="{number}"]').dispatch_event("click")
        expect(page.locator("#fork h2")).to_contain_text(f"Fork {number}")
        inside = page.evaluate(
            """() => {
              const mark = document.querySelector('.fork-mark.is-current').getBoundingClientRect();
              const box = document.querySelector('[data-fork-box]').getBoundingClientRect();
              return mark.left >= box.left && mark.right <= box.right
                && mark.top >= box.top && mark.bottom <= box.bottom;
            }"""
        )
        assert inside


def test_without_scripts_links_do_the_same(open_page, owner, desk):
    page = open_page(owner, java_script_enabled=False)
    page.goto(address(desk, "long"))
    page.get_by_role("link", name="Previous fork").click()
    expect(page.locator("#fork h2")).to_contain_text("Fork 1")
    page.get_by_label("Put this way on the left").last.click()
    expect(page.locator("#steps")).to_contain_text("Left: trial")
    page.goto(address(desk, "fork", ""))
    page.get_by_label("Trial", exact=True).select_option(label="trial 3, failed")
    page.get_by_label("Why").fill("The policy is out of date.")
    page.get_by_role("button", name="Note", exact=True).click()
    expect(page.locator("#trials")).to_contain_text("The policy is out of date.")
    page.locator("#notes summary").click()
    page.get_by_role("button", name="Withdraw").click()
    expect(page.locator("#notes")).to_contain_text("note withdrawn, 2 entries")


@pytest.mark.parametrize("viewport", [WIDE, NARROW], ids=["wide", "narrow"])
def test_no_page_of_tasks_breaks_a_rule_or_sticks_out(open_page, owner, desk, viewport):
    page = open_page(owner, viewport=viewport, bypass_csp=True)
    wrong = {}
    for path in (
        f"/projects/{desk.slug}/tasks/",
        address(desk, "fork", ""),
        address(desk, "fork"),
        address(desk, "long"),
    ):
        page.emulate_media(color_scheme="light")
        page.goto(path)
        make_ready(page)
        page.evaluate(
            "document.querySelectorAll('details').forEach(e => e.open = true)"
        )
        problems = problems_of(page)
        page.emulate_media(color_scheme="dark")
        problems += problems_in_another_theme(page)
        if problems:
            wrong[path] = problems
    assert wrong == {}
