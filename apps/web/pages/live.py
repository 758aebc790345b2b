"""What the section about live traces needs: what to set, and what came so far."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from django.conf import settings

from apps.live.models import Refusal
from apps.live.queries import last_span_at, refusals, running
from apps.web.access import Place

TOKEN_PLACEHOLDER = "evs_YOUR_TOKEN"  # noqa: S105 - stands where a secret goes


class LiveSection(msgspec.Struct, frozen=True):
    """The variables of an exporter, and the state of what came from exporters.

    `refusals` are those of today and yesterday.
    """

    place: Place
    variables: str
    last_span_at: datetime | None
    running: int
    refusals: list[Refusal]
    quiet_seconds: int
    settle_seconds: int


def live_section(place: Place, *, address: str, now: datetime) -> LiveSection:
    """The section for a project; `address` is the site's own, without a slash."""
    project = place.project
    return LiveSection(
        place=place,
        variables="\n".join(
            (
                f"OTEL_EXPORTER_OTLP_ENDPOINT={address}",
                "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
                "OTEL_EXPORTER_OTLP_HEADERS="
                f"Authorization=Bearer%20{TOKEN_PLACEHOLDER}",
            )
        ),
        last_span_at=last_span_at(project),
        running=running(project),
        refusals=list(refusals(project, since=now - timedelta(days=1))),
        quiet_seconds=settings.LIVE_QUIET_SECONDS,
        settle_seconds=settings.LIVE_SETTLE_SECONDS,
    )
