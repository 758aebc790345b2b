"""What the script of a review page asks while somebody has a signal or a blind look."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse

from apps.web.views.errors import refusal

DRAFT_FIELDS = (
    "verdict",
    "reason",
    "note",
    "failure_kind",
    "where_agent",
    "where_step",
)


def lease(version: int, until: datetime | None) -> JsonResponse:
    """A claim as the page's script takes it."""
    return JsonResponse(
        {
            "version": version,
            "until": until.isoformat() if until else None,
            "seconds": settings.CLAIM_SECONDS,
        }
    )


def renewal(
    request: HttpRequest, *, version: int, until: datetime | None, what: str
) -> HttpResponse:
    """The renewed claim of `what`; 409 when it is gone and `until` is none."""
    if until is None:
        return refusal(
            request,
            status=409,
            sentence=f"Your claim has ended. Deciding claims the {what} again.",
        )
    return lease(version, until)


def typed_in(request: HttpRequest) -> dict[str, str]:
    """What stands in the form, in lengths and characters that can be kept and shown."""
    return {
        name: request.POST.get(name, "").replace("\x00", "")[:10_000]
        for name in DRAFT_FIELDS
    }
