"""Create the demo project with its sample traces, once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.accounts.operations import create_project
from apps.engine.formats.evalsite_writer import dump
from apps.pipeline.demo import desk, doubtful
from apps.pipeline.demo.asked import ask
from apps.pipeline.demo.replays import start_replays
from apps.pipeline.flow import submit_upload
from apps.pipeline.reading import read_upload
from apps.pipeline.replays import wake_runs
from apps.traces.storage import receive

SLUG = "demo"
OWNER = "owner"
TRIALS = "escalation-trials.evalsite.jsonl"


def sample_files() -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each sample file."""
    yield (
        "support-desk.evalsite.jsonl",
        b"".join(dump(trace) for trace in desk.support_desk()),
    )
    yield (
        "delayed-parcel.evalsite.jsonl",
        b"".join(dump(trace) for trace in desk.delayed_parcel()),
    )
    yield (
        "long-runs.evalsite.jsonl",
        b"".join(dump(trace) for trace in desk.long_runs()),
    )
    yield (
        TRIALS,
        b"".join(dump(trace) for trace in doubtful.escalation_trials()),
    )
    yield "night-desk.chat.jsonl", desk.usage_missing()


class Command(BaseCommand):
    """Does nothing when any user exists: a team's own database is left alone."""

    help = "Create the first user and the demo project, unless there is any user."

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Create the owner and the project, ask its agents, submit the sample files."""
        if User.objects.exists():
            return
        now = timezone.now()
        owner = User.objects.create_user(username=OWNER)
        if Project.objects.filter(slug=SLUG).exists():
            return
        project = create_project(
            name="Support desk (demo)",
            slug=SLUG,
            owner=owner,
            now=now,
            description="An invented support desk. Its memory agent forgets, and the "
            "pipeline passes all the same.",
        )
        ask(project_id=project.pk, user_id=owner.pk, now=now)
        for name, content in sample_files():
            received = receive([content], limit=settings.MAX_UPLOAD_BYTES, name=name)
            upload, _ = submit_upload(
                project=project, received=received, user=owner, now=now
            )
            if name == TRIALS:
                # The replays below are of cases that are frozen from its traces.
                read_upload(upload_id=upload.pk, clock=timezone.now)
        batches = start_replays(project_id=project.pk, user_id=owner.pk, now=now)
        wake_runs(count=sum(batch.run_count for batch in batches))
        self.stdout.write("The demo project is ready.")
