"""Names of hundreds of characters without a blank, in a window of 390 pixels."""

from __future__ import annotations

from django.urls import reverse
from django.utils import timezone

from apps.agents.models import Agent
from apps.agents.operations import Asked, define_agent
from apps.engine.formats.evalsite_writer import dump
from apps.review.models import Signal
from apps.traces.models import Task, Trace
from tests.browser.rules import cut_off, too_wide
from tests.browser.scenes import upload_and_read
from tests.browser.score_scenes import settle_scores
from tests.desks import FAIL, PASS, desk_trace
from tests.factories import make_project, make_user
from tests.masked_desks import KNOWS, falling

AGENT, TOOL, TASK = "agentname" * 30, "a_tool_without_any_blank_" * 40, "T" * 200
CONTRACTS = (
    {**KNOWS, "name": "C" * 79, "sentence": "S" * 300},
    {"name": "D" * 79, "kind": "equality", "expected": "E" * 900},
)


def runs():
    """Trials of one task that fork at a tool, and a run with a signal."""
    for trial in range(1, 5):
        calls = f"{TOOL}{trial % 2}", {"k" * 500: "v" * 5_000}, "ok" * 3_000
        yield desk_trace(
            (AGENT, [("says", {"route": f"{'R' * 400}{trial % 2}"}), ("calls", calls)]),
            ("\u202eevil\u202c", [("says", {"route": "x" * trial})]),
            task=TASK,
            trial=trial,
            outcome=PASS if trial % 2 else FAIL,
        )
    yield falling(1, AGENT, task="z" * 190, trial=1)


def test_names_without_a_blank_widen_no_page(open_page, site):
    owner = make_user("longnames")
    project = make_project(owner=owner, name="N" * 90)
    upload_and_read(project, b"".join(map(dump, runs())), name=f"{'f' * 150}.jsonl")
    settle_scores(project)
    agent = Agent.objects.get(project=project, name=AGENT)
    now = timezone.now()
    define_agent(agent=agent, asked=Asked(held=CONTRACTS), user_id=owner.pk, now=now)
    settle_scores(project)
    task = Task.objects.get(project=project, key=TASK)
    signal = Signal.objects.filter(project=project).earliest("pk")
    page = open_page(owner, viewport={"width": 390, "height": 844})
    wrong = {}
    for name, *where in (
        ("overview",),
        ("queue",),
        ("tasks",),
        ("agents",),
        ("task", task.pk),
        ("task-forks", task.pk),
        ("agent", agent.pk),
        ("agent-contract", agent.pk, 1),
        ("trace", Trace.objects.filter(task=task).earliest("pk").pk),
        ("signal", signal.pk),
    ):
        page.goto(reverse(name, args=[project.slug, *where]))
        found = too_wide(page) + cut_off(page)
        if found:
            wrong[name] = found
    assert wrong == {}
