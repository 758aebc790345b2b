"""A project with one of everything, for walks over every address."""

from __future__ import annotations

from django.utils import timezone

from apps.accounts.operations import create_token
from apps.accounts.permissions import Role, Scope
from apps.reports.operations import freeze
from apps.review.models import BlindLook, Signal
from apps.review.queries import QueueFilter
from apps.traces.models import Task, Trace
from apps.traces.trials import place_trace
from tests.adopting import make_regression_case, shadowed
from tests.agents.making import expect_passes, make_agent
from tests.factories import (
    NOW,
    decay_trace,
    make_contract,
    make_member,
    make_project,
    make_trace_set,
    make_user,
    upload_traces,
)
from tests.replays.making import make_frozen_case, new_batch


def make_rooms() -> dict[str, object]:
    """One of everything in a project of Olga's, and the arguments of every URL."""
    owner = make_user("olga")
    project = make_project(owner=owner, name="Support desk")
    upload = upload_traces(project, decay_trace(100, 90, 80, 70, 60))
    look = BlindLook.objects.create(
        project=project,
        trace=Trace.objects.get(),
        was_flagged=True,
        place=0.5,
        created_at=NOW,
    )
    now = timezone.now()
    token, _ = create_token(
        project=project, name="ci", scopes=[Scope.READ], user=owner, now=now
    )
    report = freeze(
        project=project, user=owner, title="Weekly", where=QueueFilter(), now=now
    )
    member = make_member(project, Role.VIEWER, "member")
    trace = Trace.objects.get()
    place_trace(trace=trace, task="refund", trial=1)
    expect_passes(project)
    agent = make_agent(project)
    frozen = make_frozen_case(agent, trace)
    batch = new_batch(agent, frozen, repeats=1)
    return {
        "slug": project.slug,
        "upload_id": upload.pk,
        "trace_id": trace.pk,
        "task_id": Task.objects.get().pk,
        "signal_id": Signal.objects.get().pk,
        "look_id": look.pk,
        "report_id": report.pk,
        "token_id": token.pk,
        "user_id": member.pk,
        "seq": 0,
        "secret": "no-such-secret",
        "check_slug": "output-decay",
        "shadow_id": shadowed(project, last_percent=30).pk,
        "case_id": make_regression_case(project).pk,
        "definition_slug": make_contract(project).slug,
        "set_slug": make_trace_set(project).slug,
        "agent_id": agent.pk,
        "target_id": batch.target_version.target_id,
        "frozen_id": frozen.pk,
        "batch_id": batch.pk,
        "number": 1,
        "run_id": batch.run_set.get().pk,
        "at": 1,
    }
