"""Replays of the furnished project: batches that ended, a group, a run, a memory test."""

from __future__ import annotations

from django.urls import reverse

from apps.accounts.models import Project
from apps.agents.models import Agent
from apps.replays.models import Batch, Run
from apps.scoring.models import Conduct
from tests.browser.making import Scene
from tests.browser.score_scenes import settle_scores
from tests.replays.making import make_alone, make_memory_batch, stopped_batch


def furnish_replays(project: Project) -> None:
    """One batch with a breach, a memory test, and one that a cap stopped; scored."""
    memory = Agent.objects.get(project=project, name="memory")
    acted = Conduct.objects.filter(agent=memory, trace__is_replay=False)
    first = acted.select_related("trace").earliest("trace_id")
    make_alone(project, memory, first.trace, settle=settle_scores)
    make_memory_batch(project, memory, settle=settle_scores)
    stopped_batch(project)
    settle_scores(project)


def replay_scenes(project: Project, empty: Project) -> list[Scene]:
    """The list of batches and an empty one; a batch of each kind, a group, a run."""

    def of(name: str, *more: object) -> str:
        return reverse(name, args=[project.slug, *more])

    batches = Batch.objects.filter(project=project)
    alone, forgets = batches.get(name="Alone"), batches.get(name="Card number")
    breach = Run.objects.get(batch=alone, has_breach=True)
    return [
        Scene("replays", of("replays")),
        Scene("replays-empty", reverse("replays", args=[empty.slug])),
        Scene("replay-batch", of("replay-batch", alone.pk)),
        Scene("replay-stopped", of("replay-batch", stopped_batch(project).pk)),
        Scene("replay-memory-curve", of("replay-batch", forgets.pk)),
        Scene("replay-group", of("replay-group", alone.pk, 1)),
        Scene("replay-run", of("replay-run", breach.pk)),
        Scene("replay-trace", of("trace", breach.trace_id)),
    ]
