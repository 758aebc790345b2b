"""Targets and cases of the furnished project, and both planners of batches."""

from __future__ import annotations

from django.urls import reverse

from apps.accounts.models import Project
from apps.replays.models import ReplayCase, Target
from tests.browser.making import Scene


def target_scenes(project: Project) -> list[Scene]:
    """The lists, one of each, and the planners for the case; replays were furnished."""

    def of(name: str, *more: object) -> str:
        return reverse(name, args=[project.slug, *more])

    target = Target.objects.filter(project=project, is_retired=False).first()
    case = ReplayCase.objects.filter(project=project).first()
    assert target is not None
    assert case is not None
    return [
        Scene("replay-targets", of("replay-targets")),
        Scene("replay-target", of("replay-target", target.pk)),
        Scene("replay-cases", of("replay-cases")),
        Scene("replay-case", of("replay-case", case.pk)),
        Scene("replay-plan", of("replay-plan") + f"?case={case.pk}"),
        Scene("replay-memory", of("replay-memory") + f"?agent={case.agent_id}"),
    ]
