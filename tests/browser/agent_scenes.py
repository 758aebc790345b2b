"""The pages of agents of the furnished project, and the forms of what is asked of them."""

from __future__ import annotations

from django.urls import reverse

from apps.accounts.models import Project
from apps.agents.models import Agent
from tests.browser.making import Scene
from tests.browser.replay_scenes import replay_scenes


def agent_scenes(project: Project, empty: Project) -> list[Scene]:
    """The list, an agent with all that can be opened, its forms, and it alone."""
    slug = project.slug
    agents = Agent.objects.filter(project=project)
    memory = agents.filter(name="memory").order_by("pk").first()
    assert memory is not None

    def of(name: str, *more: object) -> str:
        return reverse(name, args=[slug, *more])

    new = of("agent-contract-new", memory.pk)
    return [
        Scene("agents", of("agents")),
        Scene("agents-empty", reverse("agents", args=[empty.slug])),
        Scene("agent", of("agent", memory.pk) + "?recent=1"),
        Scene("agent-contract", of("agent-contract", memory.pk, 1)),
        Scene("agent-contract-when-then", new + "?kind=when_then&then=range"),
        Scene("agent-contract-temporal", new + "?kind=temporal"),
        Scene("agent-decision", of("agent-decision", memory.pk) + "?kind=regex"),
        Scene("agent-outcomes", of("agent-outcomes")),
        Scene("agent-file", of("agent-file")),
        *replay_scenes(project, empty),
    ]
