"""Agents of which something is asked, made through operations."""

from __future__ import annotations

from apps.accounts.models import Project
from apps.agents.models import Agent
from apps.agents.operations import Asked, add_agent, define_agent, define_outcome
from apps.pipeline.scoring import is_behind, score_project
from tests.factories import NOW

KNOWS_27 = {"name": "knows the number", "kind": "regex", "pattern": "ending 27"}
PASSES = {"task": "refund*", "expect": "pass"}


def make_agent(project: Project, name: str = "memory", *contracts) -> Agent:
    """An agent that no trace names, with two versions of what is asked of it."""
    agent = add_agent(project_id=project.pk, name=name, now=NOW)
    for held in ((), contracts or (KNOWS_27,)):
        define_agent(agent=agent, asked=Asked(held=held), user_id=None, now=NOW)
    return agent


def expect_passes(project: Project) -> None:
    """An expectation of some tasks."""
    define_outcome(
        project_id=project.pk, asked=Asked(held=(PASSES,)), user_id=None, now=NOW
    )


def ask(project: Project, name: str, *contracts, decision=None) -> Agent:
    """Have an agent that a trace names hold these contracts, and nothing else."""
    agent = Agent.objects.get(project=project, name=name)
    asked = Asked(decision=decision, held=contracts)
    define_agent(agent=agent, asked=asked, user_id=None, now=NOW)
    return agent


def score_all(project: Project) -> None:
    """Score until nothing is behind."""
    while score_project(project_id=project.pk, clock=lambda: NOW):
        pass
    assert not is_behind(project.pk)
