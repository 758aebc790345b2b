"""Reference pages made from the code: formats, the API, privacy."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.engine.formats import FOLDER_FORMATS, FORMATS
from apps.engine.formats.evalsite_fields import EXAMPLE, FIELDS
from apps.engine.privacy.exports import KEPT_ATTRIBUTES
from apps.engine.privacy.rules import RULES
from apps.traces.raw_bytes import UNREAD_RAW_LASTS


@require_safe
def formats(request: HttpRequest) -> HttpResponse:
    """All formats that are read, and how to write our own."""
    context = {
        "formats": sorted(FORMATS, key=lambda one: one.label.casefold()),
        "folders": sorted(FOLDER_FORMATS, key=lambda one: one.label.casefold()),
        "fields": FIELDS,
        "example": EXAMPLE,
    }
    return render(request, "web/formats.html", context)


@require_safe
def api(request: HttpRequest) -> HttpResponse:
    """How to send files without a browser: the API and the command, with examples."""
    return render(request, "web/api.html", {"address": request.build_absolute_uri("/")})


@require_safe
def privacy(request: HttpRequest) -> HttpResponse:
    """What is kept of traces, by which rules secrets are found, and the strip script."""
    context = {
        "rules": RULES,
        "kept_attributes": sorted(KEPT_ATTRIBUTES),
        "structure_bytes": settings.MAX_STRUCTURE_BYTES,
        "unread_days": UNREAD_RAW_LASTS.days,
    }
    return render(request, "web/privacy.html", context)
