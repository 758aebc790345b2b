"""Error pages: one sentence each, as HTML for people and as JSON for scripts."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

TITLES = {
    400: "That request does not work",
    403: "Not yours to do",
    404: "Nothing here",
    409: "Someone was faster",
    413: "Too large",
    500: "Something broke on our side",
    503: "Back in a moment",
}


def refusal(request: HttpRequest, *, status: int, sentence: str) -> HttpResponse:
    """An answer that says in one sentence why something did not happen."""
    accept = request.headers.get("Accept", "")
    if request.path.startswith("/api/") or accept.startswith("application/json"):
        return JsonResponse(
            {"state": "failed", "sentence": sentence, "detail": sentence}, status=status
        )
    body = render_to_string(
        "web/error.html",
        {
            "status": status,
            "title": TITLES.get(status, "Not now"),
            "sentence": sentence,
        },
        request=request,
    )
    return HttpResponse(body, status=status)


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
    """500: we broke, the user did not."""
    return refusal(
        request,
        status=500,
        sentence="This was our fault, not yours. What you had stored is untouched.",
    )


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001
    """403 for a form whose token is stale."""
    return refusal(
        request,
        status=403,
        sentence="This form is too old to be trusted. Reload the page and try again.",
    )
