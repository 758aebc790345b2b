"""Agents in a browser: a contract is written on what the demo's memory agent did."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from apps.agents.models import Agent
from apps.agents.queries import current_definition
from apps.engine.formats.evalsite_writer import dump
from apps.pipeline.demo import desk
from apps.pipeline.scoring import is_behind
from apps.scoring.models import Conduct
from apps.verdicts.models import AgentVerdict
from tests.browser.making import upload_and_read
from tests.scored import scored


def settle(project, page) -> None:
    """Wait until this process or the worker has scored everything."""
    for _ in range(200):
        if not is_behind(project.pk):
            return
        page.wait_for_timeout(100)
    scored(project)


@pytest.fixture
def desk_project(project):
    content = b"".join(dump(trace) for trace in desk.support_desk())
    upload_and_read(project, content, name="support-desk.evalsite.jsonl")
    return project


@pytest.fixture
def memory(desk_project, page) -> Agent:
    settle(desk_project, page)
    return Agent.objects.get(project=desk_project, name="memory")


def runs_of(agent: Agent) -> int:
    """In how many of the demo's traces it acts; fewer than a preview takes."""
    return Conduct.objects.filter(agent=agent).count()


def colour(agent: Agent) -> str:
    return AgentVerdict.objects.get(agent=agent).colour


def test_a_contract_that_breaks_makes_the_agent_red_and_masked_until_it_is_taken_out(
    page, desk_project, memory
):
    page.goto(f"/projects/{desk_project.slug}/agents/")
    page.get_by_role("row", name="memory").get_by_role("link", name="memory").click()
    expect(page.locator("h1")).to_have_text("memory")
    expect(page.locator(".page-head")).to_contain_text("unknown")
    page.get_by_role("link", name="Contract", exact=True).click()
    page.get_by_role("link", name="Fits a pattern").click()
    page.get_by_label("Name", exact=True).fill("knows the number")
    page.get_by_label("Pattern").fill(r"ending \d+")
    preview = page.locator("#preview")
    runs = runs_of(memory)
    expect(preview).to_contain_text(f"{runs} break it", timeout=10_000)
    expect(preview).to_contain_text("no number for a call back")
    assert current_definition(memory) is None
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#messages")).to_contain_text("Saved as version 1.")
    settle(desk_project, page)
    assert colour(memory) == "red"
    page.goto(f"/projects/{desk_project.slug}/agents/")
    row = page.locator("tbody tr").first
    expect(row).to_contain_text("memory")
    assert AgentVerdict.objects.get(agent=memory).masked_traces > 0
    expect(row).to_contain_text("traces that passed")
    row.get_by_role("link", name="memory").click()
    expect(page.get_by_role("heading", name="Masked")).to_be_visible()
    page.get_by_role("button", name="Take out knows the number").click()
    expect(page.locator("#messages")).to_contain_text("is taken out")
    settle(desk_project, page)
    assert colour(memory) == "unknown"


def test_a_decision_is_tried_and_saved_without_scripts(
    open_page, owner, desk_project, memory
):
    page = open_page(owner, java_script_enabled=False)
    page.goto(f"/projects/{desk_project.slug}/agents/{memory.pk}/decision/")
    page.get_by_role("link", name="A label in the text").click()
    page.get_by_label("Labels").fill("no number\nthe number ends")
    page.get_by_role("button", name="Try it").click()
    preview = page.locator("#preview")
    runs = runs_of(memory)
    expect(preview).to_contain_text(f"1 distinct agent decision in {runs} runs")
    expect(preview).to_contain_text(f"{runs} of {runs}")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#messages")).to_contain_text("Saved as version 1.")
    assert current_definition(memory).decision["kind"] == "label"
