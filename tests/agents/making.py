"""Agents of which something is asked, made through operations."""

from __future__ import annotations

from apps.accounts.models import Project
from apps.agents.models import Agent
from apps.agents.operations import Asked, add_agent, define_agent, define_outcome
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
