"""Asking something of agents and scoring all there is, as workers would."""

from __future__ import annotations

from typing import Any

from apps.accounts.models import Project
from apps.agents.models import Agent
from apps.agents.operations import Asked, define_agent
from apps.pipeline.scoring import is_behind, score_project
from tests.factories import NOW


def scored(project: Project) -> Project:
    """The project with everything scored and settled."""
    while score_project(project_id=project.pk, clock=lambda: NOW):
        pass
    assert not is_behind(project.pk)
    return project


def asked_of(
    project: Project,
    name: str,
    *contracts: dict[str, Any],
    decision: dict[str, Any] | None = None,
) -> Agent:
    """The agent of that name, of which from now on this and nothing else is asked."""
    agent = Agent.objects.get(project=project, name=name)
    asked = Asked(decision=decision, held=contracts)
    define_agent(agent=agent, asked=asked, user_id=None, now=NOW)
    return agent
