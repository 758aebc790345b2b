"""Patterns: short rules that say in which runs something is more frequent."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from apps.accounts.permissions import Permission
from apps.web.access import Place, in_project
from apps.web.pages.patterns import patterns_page


@require_safe
@in_project(Permission.VIEW)
def patterns(request: HttpRequest, place: Place) -> HttpResponse:
    """What unstable, failing and signalled runs have in common."""
    page = patterns_page(place, timezone.now())
    return render(request, "web/patterns.html", {"page": page, "place": place})
