"""The files of a request: fields of a form, or the body itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any
from urllib.parse import unquote

from django.conf import settings
from django.http import HttpRequest
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from apps.accounts.models import Project
from apps.api.refusals import BadRequest, FileTooLarge
from apps.engine.formats import FORMATS
from apps.traces.storage import (
    HashedUpload,
    ReceivedFile,
    TooLarge,
    keeping_of,
    receive,
    too_large_sentence,
    was_too_large,
)

CHUNK = 256 * 1024
UNNAMED = "unnamed"


class WholeBody(BaseParser):
    """Takes any body that is no form, and leaves it unread."""

    media_type = "*/*"

    def parse(self, stream: IO[Any], *_context: Any, **_more: Any) -> Any:
        """The stream itself."""
        return stream


def format_of(request: Request) -> str:
    """The slug of the format that the sender named; empty to recognise it.

    Raises `BadRequest` for one that is not known.
    """
    slug = request.query_params.get("format", "")
    if not slug and _is_form(request):
        slug = str(request.POST.get("format", ""))
    if slug and slug not in {one.slug for one in FORMATS}:
        known = ", ".join(one.slug for one in FORMATS)
        raise BadRequest(f"“{slug[:40]}” is not a format we know. One of: {known}.")
    return slug


def files_of(request: Request, project: Project) -> list[ReceivedFile]:
    """The files of a request, kept and hashed; at least one.

    Raises `BadRequest` when there is none and `FileTooLarge` over the limit.
    """
    if _is_form(request):
        return _fields(request)
    return [_body(request, project)]


def _is_form(request: Request) -> bool:
    return (request.content_type or "").startswith("multipart/")


def _fields(request: Request) -> list[ReceivedFile]:
    files = request.FILES.getlist("file")
    if was_too_large(request.META):
        raise FileTooLarge(too_large_sentence(settings.MAX_UPLOAD_BYTES))
    found = [file.received for file in files if isinstance(file, HashedUpload)]
    if not found:
        raise BadRequest(
            "Send the file in the field “file” of a multipart form, or as the body."
        )
    return found


def _body(request: Request, project: Project) -> ReceivedFile:
    if not request.META.get("CONTENT_LENGTH"):
        raise BadRequest(
            "The body is empty, or its length is not said: send a Content-Length."
        )
    try:
        return receive(
            _chunks(request._request),  # noqa: SLF001 - the body, unparsed
            limit=settings.MAX_UPLOAD_BYTES,
            name=_name_of(request),
            keeping=keeping_of(project),
        )
    except TooLarge as error:
        raise FileTooLarge(str(error)) from error


def _chunks(request: HttpRequest) -> Iterator[bytes]:
    while chunk := request.read(CHUNK):
        yield chunk


def _name_of(request: Request) -> str:
    """The name that the sender gave: percent-encoded header, or part of the address."""
    said = request.headers.get("X-File-Name", "")
    name = unquote(said) if said else request.query_params.get("name", "")
    return "".join(letter for letter in name if letter.isprintable())[:255] or UNNAMED
