"""Reference pages made from the code: every check's four texts, every format."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.engine.checks import CHECKS
from apps.engine.checks import by_slug as check_by_slug
from apps.engine.formats import FORMATS
from apps.engine.formats.evalsite_fields import EXAMPLE, FIELDS


@require_safe
def checks(request: HttpRequest) -> HttpResponse:
    """All checks with their four texts."""
    return render(request, "web/checks.html", {"checks": CHECKS})


@require_safe
def check(request: HttpRequest, check_slug: str) -> HttpResponse:
    """One check: its four texts, version, parameters."""
    try:
        found = check_by_slug(check_slug)
    except KeyError:
        raise Http404 from None
    return render(request, "web/check.html", {"check": found})


@require_safe
def formats(request: HttpRequest) -> HttpResponse:
    """All formats that are read, and how to write our own."""
    context = {"formats": FORMATS, "fields": FIELDS, "example": EXAMPLE}
    return render(request, "web/formats.html", context)
