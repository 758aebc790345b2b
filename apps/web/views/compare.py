"""Two sets of traces side by side: the page, and the same as JSON and markdown."""

from __future__ import annotations

from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.permissions import Permission
from apps.traces.comparing import Compared, compare_sides, comparison_document
from apps.traces.sides import UnknownSide
from apps.web.access import Place, in_project
from apps.web.pages.compare import SAME, compare_page
from apps.web.pages.compare_text import comparison_markdown
from apps.web.views.errors import refusal


@require_safe
@in_project(Permission.VIEW)
def compare(request: HttpRequest, place: Place) -> HttpResponse:
    """Two sides to choose; with both chosen, everything that differs."""
    try:
        page = compare_page(place, request.GET)
    except UnknownSide:
        raise Http404 from None
    return render(request, "web/compare.html", {"page": page})


@require_safe
@in_project(Permission.VIEW)
def as_json(request: HttpRequest, place: Place) -> HttpResponse:
    """A comparison as JSON, in full precision."""
    return _file(request, place, _json)


@require_safe
@in_project(Permission.VIEW)
def as_markdown(request: HttpRequest, place: Place) -> HttpResponse:
    """A comparison as markdown."""
    return _file(request, place, _markdown)


def _file(
    request: HttpRequest, place: Place, draw: Callable[[Compared], HttpResponse]
) -> HttpResponse:
    first, second = request.GET.get("first", ""), request.GET.get("second", "")
    if not first or not second:
        sentence = "Choose two sides on the page first."
        return refusal(request, status=400, sentence=sentence)
    if first == second:
        return refusal(request, status=400, sentence=SAME)
    try:
        return draw(compare_sides(place.project, first=first, second=second))
    except UnknownSide:
        raise Http404 from None


def _json(found: Compared) -> HttpResponse:
    response = JsonResponse(comparison_document(found), json_dumps_params={"indent": 2})
    response["Content-Disposition"] = 'attachment; filename="comparison.json"'
    return response


def _markdown(found: Compared) -> HttpResponse:
    response = HttpResponse(
        comparison_markdown(found), content_type="text/markdown; charset=utf-8"
    )
    response["Content-Disposition"] = 'attachment; filename="comparison.md"'
    return response
