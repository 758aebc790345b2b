"""Error pages: one sentence each, as HTML for people and as JSON for scripts."""

from __future__ import annotations

import errno
import sys

from django.conf import settings
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from apps.traces.storage import CannotKeep, too_large_sentence, was_too_large

TITLES = {
    400: "That request does not work",
    403: "Not yours to do",
    404: "Nothing here",
    409: "Someone was faster",
    413: "Too large",
    500: "Something broke on our side",
    503: "Back in a moment",
    507: "No room left",
}

# What Django raises when a connection cannot be had, or breaks while it is used.
DATABASE_AWAY = (OperationalError, InterfaceError)
DISK_FULL = {errno.ENOSPC, errno.EDQUOT}


def wants_json(request: HttpRequest) -> bool:
    """Whether a script asks, which follows no redirect and reads no page."""
    return request.headers.get("Accept", "").startswith("application/json")


def refusal(request: HttpRequest, *, status: int, sentence: str) -> HttpResponse:
    """An answer that says in one sentence why something did not happen.

    Asks neither the database nor the session, so it can be given when they are away.
    """
    if request.path.startswith("/api/") or wants_json(request):
        return JsonResponse(
            {"state": "failed", "sentence": sentence, "detail": sentence}, status=status
        )
    # Without the request, because context processors ask the database.
    body = render_to_string(
        "web/error.html",
        {
            "status": status,
            "title": TITLES.get(status, "Not now"),
            "sentence": sentence,
        },
    )
    return HttpResponse(body, status=status)


def database_away(request: HttpRequest) -> HttpResponse:
    """503 with `Retry-After`, for the moments in which the database does not answer."""
    response = refusal(
        request,
        status=503,
        sentence=(
            "The database does not answer just now. Nothing is lost; "
            "try again in a moment."
        ),
    )
    response["Retry-After"] = "5"
    return response


def not_just_now(
    request: HttpRequest, error: BaseException | None
) -> HttpResponse | None:
    """503 or 507 for what is wrong with the site and may be right later, else None."""
    if isinstance(error, DATABASE_AWAY):
        return database_away(request)
    if isinstance(error, CannotKeep):
        return _cannot_keep(request, error)
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        return refusal(
            request,
            status=507,
            sentence=(
                "The disk of this site is full, so nothing of this was kept. Whoever "
                "runs the site has to make room; then send it again."
            ),
        )
    return None


def _cannot_keep(request: HttpRequest, error: CannotKeep) -> HttpResponse:
    response = refusal(
        request, status=503, sentence=f"{error} Nothing was kept; send it again later."
    )
    response["Retry-After"] = "60"
    return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """400."""
    return refusal(
        request, status=400, sentence="Part of the address or form is malformed."
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403, with the sentence of the refusal."""
    return refusal(
        request, status=403, sentence=str(exception) or "This is not allowed."
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    """404, the same words for what never was and what belongs to others."""
    return refusal(
        request,
        status=404,
        sentence="There is no such page, or it belongs to a project that is not yours.",
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """500: we broke, the user did not; 503 when it is the database that is away."""
    return not_just_now(request, sys.exc_info()[1]) or refusal(
        request,
        status=500,
        sentence="This was our fault, not yours. What you had stored is untouched.",
    )


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001
    """403 for a form whose token is stale; 413 when a large file hid the token."""
    if was_too_large(request.META):
        sentence = too_large_sentence(settings.MAX_UPLOAD_BYTES)
        return refusal(request, status=413, sentence=sentence)
    return refusal(
        request,
        status=403,
        sentence="This form is too old to be trusted. Reload the page and try again.",
    )
