"""Planning a batch in a browser: freeze with a click, and see the cost as it is typed."""

from __future__ import annotations

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from apps.agents.models import Agent
from apps.engine.formats.evalsite_writer import dump
from apps.pipeline.demo import desk
from apps.replays.models import Batch, ReplayCase
from apps.traces.models import Trace
from tests.browser.making import upload_and_read
from tests.browser.test_agents import settle
from tests.replays.rows import make_target


@pytest.fixture
def desk_project(project, page):
    content = dump(next(iter(desk.support_desk())))
    upload_and_read(project, content, name="ticket.evalsite.jsonl")
    settle(project, page)
    return project


def test_a_click_freezes_and_the_estimate_follows_what_is_typed(page, desk_project):
    slug = desk_project.slug
    memory = Agent.objects.get(project=desk_project, name="memory")
    make_target(memory, "Small model")
    trace = Trace.objects.get(project=desk_project)
    page.goto(reverse("trace", args=[slug, trace.pk]))
    page.locator("#freezing summary").click()
    page.locator("#freezing li", has_text="memory").get_by_role("button").click()
    expect(page.locator("#messages")).to_contain_text("Frozen as a case")
    page.locator("#freezing").get_by_role("link", name="frozen").click()
    case = ReplayCase.objects.get(project=desk_project)
    page.get_by_role("link", name="Plan a batch").click()
    estimate = page.locator("#estimate")
    expect(estimate).to_contain_text("5 runs")
    page.get_by_label("Runs of each case").fill("7")
    expect(estimate).to_contain_text("7 runs")
    page.get_by_role("button", name="Tick none").click()
    expect(estimate).to_contain_text("Tick at least one case")
    page.get_by_role("button", name="Tick all").click()
    page.get_by_text("Tool by tool").click()
    page.get_by_label("Answered", exact=True).first.select_option("expression")
    page.get_by_label("A CEL expression").first.fill("1 +")
    expect(estimate).to_contain_text("it ends too early")
    page.get_by_label("A CEL expression").first.fill("[]")
    expect(estimate).to_contain_text("7 runs")
    page.get_by_role("button", name="Look at it before it starts").click()
    expect(page.locator("h1")).to_contain_text("Start “memory alone”?")
    assert not Batch.objects.filter(project=desk_project).exists()
    assert case.agent_id == memory.pk
