"""The only Celery tasks. Each takes ids only, does one operation, and may run twice."""

from __future__ import annotations

from typing import Any

from celery import shared_task
from django.utils import timezone

from apps.isolation.sandbox.scratch import remove_abandoned as remove_abandoned_runs
from apps.live.operations import forget_spans
from apps.pipeline import baselines, experiments, lineups, replays, scoring, shadows
from apps.pipeline.heartbeat import kept_alive
from apps.pipeline.live import assemble_due, give_up_hopeless
from apps.pipeline.patterns import search_project, wake_search
from apps.pipeline.reading import read_upload
from apps.pipeline.stuck import free_upload_ids
from apps.review.blind import release_expired_looks
from apps.review.operations import release_expired_claims
from apps.screening.shadows import free_shadow_ids, give_up_stuck_shadows
from apps.traces.operations import give_up_stuck_uploads
from apps.traces.parts import remove_abandoned_parts
from apps.traces.raw_bytes import forget_old_raw
from apps.traces.storage import remove_abandoned

WAKE_REPLAYS_SECONDS = 2.0


@shared_task(name="pipeline.parse_upload")
def parse_upload(*, upload_id: int, **_later: Any) -> None:
    """Read one upload, unless someone reads it already."""
    read_upload(upload_id=upload_id, clock=timezone.now, keep_alive=kept_alive)


@shared_task(name="pipeline.resume_stuck")
def resume_stuck(**_later: Any) -> None:
    """Put back what nobody works on: lost messages, killed workers, expired leases."""
    give_up_stuck_uploads()
    for upload_id in free_upload_ids():
        parse_upload.delay(upload_id=upload_id)
    give_up_stuck_shadows()
    for shadow_id in free_shadow_ids():
        run_shadow.delay(shadow_id=shadow_id)
    for trace_set_id in baselines.waiting_baselines(now=timezone.now()):
        make_baseline.delay(trace_set_id=trace_set_id)


@shared_task(name="pipeline.catch_up")
def catch_up(*, project_id: int, **_later: Any) -> None:
    """Let the line-up of a project answer about what it has not, and go on if need be."""
    if lineups.catch_up(project_id=project_id, clock=timezone.now):
        catch_up.delay(project_id=project_id)


@shared_task(name="pipeline.wake_projects_behind")
def wake_projects_behind(**_later: Any) -> None:
    """Find the projects whose line-up has not answered about every trace."""
    lineups.wake_projects_behind()


@shared_task(name="pipeline.score")
def score(*, project_id: int, **_later: Any) -> None:
    """Score what is behind in a project, and go on if need be."""
    if scoring.score_project(project_id=project_id, clock=timezone.now):
        score.delay(project_id=project_id)
    else:
        wake_search(project_id=project_id, now=timezone.now())


@shared_task(name="pipeline.wake_projects_to_score")
def wake_projects_to_score(**_later: Any) -> None:
    """Find the projects in which something is not scored, settled or searched yet."""
    scoring.wake_projects_to_score(now=timezone.now())


@shared_task(name="pipeline.search_patterns")
def search_patterns(*, project_id: int, **_later: Any) -> None:
    """Search the runs of one project for patterns."""
    search_project(project_id=project_id, clock=timezone.now)


@shared_task(name="pipeline.run_shadow")
def run_shadow(*, shadow_id: int, **_later: Any) -> None:
    """Go on with one shadow, unless someone does already."""
    if shadows.run_shadow(shadow_id=shadow_id):
        run_shadow.delay(shadow_id=shadow_id)


@shared_task(name="pipeline.make_baseline")
def make_baseline(*, trace_set_id: int, **_later: Any) -> None:
    """Make a set the baseline of its project, if that is still wanted."""
    baselines.make_baseline(trace_set_id=trace_set_id, clock=timezone.now)


@shared_task(name="pipeline.remove_abandoned_files")
def remove_abandoned_files(**_later: Any) -> None:
    """Remove what uploads and replays left that never came to an end, and old bytes."""
    remove_abandoned()
    remove_abandoned_parts()
    remove_abandoned_runs()
    forget_old_raw(now=timezone.now())


@shared_task(name="pipeline.release_expired_claims")
def release_claims(**_later: Any) -> None:
    """Open signals and blind looks again whose reviewer went away."""
    release_expired_claims()
    release_expired_looks()


@shared_task(name="pipeline.assemble_live_traces")
def assemble_live_traces(**_later: Any) -> None:
    """Make traces of the live spans that are complete or have gone quiet."""
    give_up_hopeless()
    assemble_due(clock=timezone.now)


@shared_task(name="pipeline.forget_live_spans")
def forget_live_spans(**_later: Any) -> None:
    """Forget live spans whose traces are stored and too old for late ones."""
    while forget_spans():
        pass


@shared_task(name="pipeline.run_replays")
def run_replays(**_later: Any) -> None:
    """Run replays that wait for twenty seconds, and let another task go on if need be."""
    if replays.run_replays(clock=timezone.now):
        run_replays.apply_async(expires=replays.LONGEST_SECONDS)


@shared_task(name="pipeline.wake_replays")
def wake_replays(**_later: Any) -> None:
    """Let workers run the replays that wait, and see to batches that have ended."""
    for _ in range(replays.wanted_workers()):
        run_replays.apply_async(expires=WAKE_REPLAYS_SECONDS)
    experiments.return_signals(now=timezone.now())
