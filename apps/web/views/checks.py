"""Checks: what each of them is, and how they answered in a project."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.permissions import Permission
from apps.engine.checks import CHECKS, by_slug
from apps.engine.nulls import NULL_MODELS
from apps.web.access import Place, in_project, signed_in
from apps.web.pages.check import (
    check_page,
    null_models_of,
    parameter_rows,
    projects_with_checks,
)
from apps.web.pages.checks import checks_page
from apps.web.pages.line_up import line_up_part


@require_safe
def checks(request: HttpRequest) -> HttpResponse:
    """All checks with their four texts."""
    return render(
        request, "web/checks.html", {"checks": CHECKS, "null_models": NULL_MODELS}
    )


@require_safe
def check(request: HttpRequest, check_slug: str) -> HttpResponse:
    """One check: its four texts, version, parameters, and the projects to see it in."""
    try:
        found = by_slug(check_slug)
    except KeyError:
        raise Http404 from None
    context = {
        "check": found,
        "parameters": parameter_rows(found),
        "null_models": null_models_of(found),
        "projects": projects_with_checks(signed_in(request)),
    }
    return render(request, "web/check.html", context)


@require_safe
@in_project(Permission.VIEW)
def project_checks(request: HttpRequest, place: Place) -> HttpResponse:
    """Every check of the project's line-up with what it gave there."""
    return render(request, "web/project_checks.html", {"page": checks_page(place)})


@require_safe
@in_project(Permission.VIEW)
def project_check(request: HttpRequest, place: Place, check_slug: str) -> HttpResponse:
    """One check with the figures of this project."""
    context = {
        "page": check_page(place, check_slug),
        "part": line_up_part(place, check_slug),
    }
    return render(request, "web/project_check.html", context)
