"""Health for supervisors and load balancers: alive, and ready to work."""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, InterfaceError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe


@login_not_required
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:  # noqa: ARG001
    """200 while this process answers at all."""
    return JsonResponse({"alive": True})


@login_not_required
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:  # noqa: ARG001
    """200 when the database answers, else 503."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (DatabaseError, InterfaceError):
        return JsonResponse({"database": False}, status=503)
    return JsonResponse({"database": True})
