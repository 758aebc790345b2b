"""Two small layers: refuse bodies that are too large unread, and speak in sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.core.exceptions import (
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
    TooManyFilesSent,
)
from django.http import HttpRequest, HttpResponse
from django.urls import Resolver404, resolve

from apps.accounts.permissions import NotAllowed
from apps.replays.cases import UnreadCase
from apps.replays.results import UnreadRun
from apps.reports.document import UnreadableReport
from apps.review import transitions as review
from apps.review.models import BlindLook, Signal
from apps.review.operations import Conflict
from apps.traces import transitions as traces
from apps.traces.models import Task, Trace
from apps.traces.storage import size_in_words
from apps.web.numbers import MOST_DIGITS
from apps.web.views.errors import not_just_now, refusal

# What carries its own sentence. What is stored and cannot be read is nobody's haste.
_SENTENCES: Final = (
    (403, (NotAllowed,)),
    (409, (Conflict, review.NotPossibleNow, traces.NotPossibleNow)),
    (422, (UnreadCase, UnreadRun, UnreadableReport)),
)
Answer = Callable[[HttpRequest], HttpResponse]

# Room for the other fields of the form that carries a file of exactly the limit.
FORM_OVERHEAD = 64 * 1024
# The names of the addresses that take files.
TAKE_FILES = {
    "uploads",
    "api-uploads",
    "api-project-uploads",
    "upload-part",
    "replay-cases-file",
    "api-replay-cases",
    "api-project-replay-cases",
}
# Read their own body, bounded, and answer in the words of their own protocol.
READ_THEMSELVES = {"otlp-traces", "stub-tool", "stub-mcp"}
_GONE = tuple(one.DoesNotExist for one in (Signal, BlindLook, Trace, Task))


class RefuseOversizedUploads:
    """Answer 413 before a byte of the body is read when its declared size is too big.

    Only the addresses that take files, and only with something that may turn out
    to be a sign-in, get the room of an upload; everything else gets that of a form.
    """

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        declared = request.META.get("CONTENT_LENGTH") or "0"
        if not (declared.isascii() and declared.isdigit()) or declared == "0":
            return self.get_response(request)
        name = _name_of(request)
        if name in READ_THEMSELVES:
            return self.get_response(request)
        with_files = name in TAKE_FILES and _may_be_signed_in(request)
        form: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        most = settings.MAX_UPLOAD_BYTES + FORM_OVERHEAD if with_files else form
        if len(declared) <= MOST_DIGITS and int(declared) <= most:
            return self.get_response(request)
        return refusal(
            request,
            status=413,
            sentence=(
                f"This request is larger than {size_in_words(settings.MAX_UPLOAD_BYTES)}"
                ", the most that is taken at once. Send fewer files at a time, compress "
                "them (.gz or .zst), or raise EVALSITE_MAX_UPLOAD_BYTES."
                if with_files
                else f"This request is larger than {size_in_words(form)}, the most that "
                "is taken here."
            ),
        )


def _may_be_signed_in(request: HttpRequest) -> bool:
    return (
        settings.SESSION_COOKIE_NAME in request.COOKIES
        or "Authorization" in request.headers
    )


def _name_of(request: HttpRequest) -> str | None:
    try:
        return resolve(request.path_info).url_name
    except Resolver404:
        return None


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
        for status, kinds in _SENTENCES:
            if isinstance(exception, kinds):
                return refusal(request, status=status, sentence=str(exception))
        if isinstance(exception, _GONE):
            # The page was found, and then its trace was read again or erased.
            return refusal(
                request,
                status=404,
                sentence="This is gone: its trace was read again or erased meanwhile.",
            )
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
        return not_just_now(request, exception)
