"""Two small layers: refuse bodies that are too large unread, and speak in sentences."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import (
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse

from apps.accounts.permissions import NotAllowed
from apps.review import transitions as review
from apps.review.operations import Conflict
from apps.traces import transitions as traces
from apps.traces.storage import too_large_sentence
from apps.web.views.errors import refusal

Answer = Callable[[HttpRequest], HttpResponse]

# Room for the other fields of the form that carries a file of exactly the limit.
FORM_OVERHEAD = 64 * 1024


class RefuseOversizedUploads:
    """Answer 413 before a byte of the body is read when its declared size is too big."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        declared = request.META.get("CONTENT_LENGTH") or "0"
        limit = settings.MAX_UPLOAD_BYTES
        if declared.isdecimal() and int(declared) > limit + FORM_OVERHEAD:
            return refusal(request, status=413, sentence=too_large_sentence(limit))
        return self.get_response(request)


class SpeakInSentences:
    """Turn refusals of the domain into answers whose body is the refusal's sentence."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponse | None:
        """Answer for the exceptions that carry a sentence; None for all others."""
        if isinstance(exception, NotAllowed):
            return refusal(request, status=403, sentence=str(exception))
        if isinstance(
            exception, (Conflict, review.NotPossibleNow, traces.NotPossibleNow)
        ):
            return refusal(request, status=409, sentence=str(exception))
        if isinstance(exception, OperationalError):
            return self._database_away(request)
        if isinstance(
            exception, (RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent)
        ):
            return refusal(
                request,
                status=413,
                sentence="That was too much for one form: fewer files or fields, please.",
            )
        if isinstance(exception, SuspiciousOperation):
            return refusal(
                request, status=400, sentence="This request makes no sense to us."
            )
        return None

    def _database_away(self, request: HttpRequest) -> HttpResponse:
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
