"""Reading live traces: their spans, how far workers are behind, what was refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec
from django.conf import settings
from django.db.models import Max, Min, Q, QuerySet, Sum

from apps.accounts.models import Project
from apps.live.models import LiveSpan, LiveTrace, Refusal
from apps.traces.encryption import open_bytes
from apps.traces.storage import size_in_words

TOO_MANY_REQUESTS = 429
UNAVAILABLE = 503
_SITE_PAUSE = 5
_PROJECT_PAUSE = 2


class Pressure(msgspec.Struct, frozen=True):
    """Why senders have to wait: a status, seconds for Retry-After, a sentence."""

    status: int
    seconds: int
    sentence: str


def pressure(*, project_id: int, now: datetime) -> Pressure | None:
    """What keeps more spans of a project from being taken now; None when nothing does.

    429 is about the project alone, 503 about the whole site.
    """
    row = LiveTrace.objects.filter(due_at__isnull=False).aggregate(
        site=Sum("byte_count", default=0),
        project=Sum("byte_count", default=0, filter=Q(project_id=project_id)),
        # One that is being assembled, or ends its worker, says nothing of the others.
        oldest=Min("due_at", filter=Q(tries=0)),
    )
    behind = (now - row["oldest"]).total_seconds() if row["oldest"] else 0.0
    if behind > settings.LIVE_MAX_DELAY_SECONDS:
        return Pressure(
            UNAVAILABLE,
            _SITE_PAUSE,
            f"Complete traces have waited for a worker for {behind:.0f} seconds. Nothing "
            "that was taken is lost; send this again later.",
        )
    if row["site"] > settings.LIVE_MAX_WAITING_BYTES:
        return Pressure(UNAVAILABLE, _SITE_PAUSE, _waiting(row["site"], "this site"))
    if row["project"] > settings.LIVE_MAX_PROJECT_WAITING_BYTES:
        return Pressure(
            TOO_MANY_REQUESTS, _PROJECT_PAUSE, _waiting(row["project"], "this project")
        )
    return None


def _waiting(size: int, where: str) -> str:
    return (
        f"{size_in_words(size)} of spans of {where} wait to become traces. Nothing that "
        "was taken is lost; send this again later."
    )


def span_data(live_trace_id: int) -> Iterator[bytes]:
    """The kept spans of a live trace as ResourceSpans messages, as they came.

    Raises `CannotOpen` with a sentence when they were sealed with a key that is gone.
    """
    rows = LiveSpan.objects.filter(live_trace_id=live_trace_id).order_by("pk")
    for data in rows.values_list("data", flat=True).iterator(chunk_size=500):
        yield open_bytes(bytes(data))


def last_span_at(project: Project) -> datetime | None:
    """When the last live span of a project came; None when none ever did."""
    found: datetime | None = LiveTrace.objects.filter(project=project).aggregate(
        last=Max("last_seen")
    )["last"]
    return found


def running(project: Project) -> int:
    """How many traces of a project have spans that are no stored trace yet."""
    return LiveTrace.objects.filter(project=project, due_at__isnull=False).count()


def refusals(project: Project, *, since: datetime) -> QuerySet[Refusal]:
    """What was refused on the days from `since`, newest first."""
    rows = Refusal.objects.filter(project=project, day__gte=since.date())
    return rows.order_by("-last_at")
