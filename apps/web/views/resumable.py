"""Uploads that survive a lost connection: the tus protocol 1.0.0.

With creation, termination and expiration (https://tus.io/protocols/resumable-upload).
Three things are ours: a file that is begun with a `fingerprint` in its metadata is found
again by the same sender; `Upload-Receipt` names the receipt once it is whole, and
`Upload-Known` says that its bytes were here before; and the
pieces of a structure-only project are sealed with the `Upload-Key` of the first answer,
which the sender sends along and the server never writes down.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable, Iterator
from functools import wraps

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.urls import reverse
from django.utils import timezone
from django.utils.http import http_date
from django.views.decorators.http import require_http_methods

from apps.accounts.permissions import Permission
from apps.pipeline.flow import EmptyUpload, submit_upload
from apps.traces.encryption import CannotOpen
from apps.traces.parts import (
    About,
    Gone,
    Part,
    TooManyParts,
    WrongOffset,
    begin,
    find,
)
from apps.traces.storage import (
    Keeping,
    keeping_of,
    new_key,
    receive,
    too_large_sentence,
)
from apps.web.access import Place, in_project
from apps.web.forms import format_choices
from apps.web.numbers import whole
from apps.web.views.errors import refusal

VERSION = "1.0.0"
# What is lost at most when this process is killed: bytes are durable from piece to piece.
PIECE = 8 * 1024 * 1024
_CHUNK = 256 * 1024
_TYPE = "application/offset+octet-stream"

View = Callable[..., HttpResponse]


class _Refusal(Exception):
    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = {
            name.replace("_", "-"): value for name, value in headers.items()
        }


def _speaks_tus(view: View) -> View:
    """Check the version, answer refusals in words, and name the version in answers."""

    @wraps(view)
    def wrapped(request: HttpRequest, place: Place, **args: object) -> HttpResponse:
        try:
            _check_version(request)
            response = view(request, place, **args)
        except _Refusal as error:
            response = refusal(request, status=error.status, sentence=str(error))
            for name, value in error.headers.items():
                response[name] = value
        response["Tus-Resumable"] = VERSION
        return response

    return wrapped


def _check_version(request: HttpRequest) -> None:
    if request.method != "OPTIONS" and request.headers.get("Tus-Resumable") != VERSION:
        raise _Refusal(
            412,
            f"This speaks tus {VERSION}; send Tus-Resumable: {VERSION}.",
            Tus_Version=VERSION,
        )


@require_http_methods(["OPTIONS", "POST"])
@in_project(Permission.UPLOAD)
@_speaks_tus
def parts(request: HttpRequest, place: Place) -> HttpResponse:
    """POST begins an upload, or finds the one that was begun with this fingerprint."""
    if request.method == "OPTIONS":
        response = HttpResponse(status=204)
        response["Tus-Version"] = VERSION
        response["Tus-Extension"] = "creation,termination,expiration"
        response["Tus-Max-Size"] = str(settings.MAX_UPLOAD_BYTES)
        return response
    about = _about(request, place)
    try:
        found, is_new = begin(about)
    except TooManyParts as error:
        raise _Refusal(429, str(error), Retry_After="3600") from error
    response = HttpResponse(status=201 if is_new else 200)
    if about.needs_key:
        response["Upload-Key"] = new_key()
    response["Location"] = reverse("upload-part", args=[place.project.slug, found.id])
    return _with_state(response, place, found)


@require_http_methods(["HEAD", "PATCH", "DELETE"])
@in_project(Permission.UPLOAD)
@_speaks_tus
def part(request: HttpRequest, place: Place, part_id: str) -> HttpResponse:
    """HEAD says how many bytes are here, PATCH adds some, DELETE forgets all."""
    found = find(project_id=place.project.pk, user_id=place.user.pk, part_id=part_id)
    if found is not None and found.about.needs_key != place.project.structure_only:
        # Its pieces lie as the project does not want them any more.
        found.drop()
        found = None
    if found is None:
        raise _Refusal(404, "There is no such unfinished upload; begin it again.")
    try:
        if request.method == "DELETE":
            found.drop()
            return HttpResponse(status=204)
        if request.method == "PATCH":
            _add(request, place, found)
            return _with_state(HttpResponse(status=204), place, found)
        return _with_state(HttpResponse(), place, found)
    except Gone as error:
        raise _Refusal(404, "This unfinished upload was given up.") from error


def _with_state(response: HttpResponse, place: Place, part: Part) -> HttpResponse:
    """Add where the upload stands, and its receipt once it is whole."""
    response["Upload-Offset"] = str(part.offset())
    response["Upload-Length"] = str(part.about.size)
    response["Upload-Expires"] = http_date(part.expires)
    response["Cache-Control"] = "no-store"
    upload_id = part.finished()
    if upload_id is not None:
        url = reverse("upload", args=[place.project.slug, upload_id])
        response["Upload-Receipt"] = url
        if part.was_here():
            response["Upload-Known"] = "yes"
    return response


def _about(request: HttpRequest, place: Place) -> About:
    size = whole(request.headers.get("Upload-Length", ""))
    if size is None:
        raise _Refusal(400, "Say the size of the file in Upload-Length.")
    if size == 0:
        raise _Refusal(400, "This file is empty: it has 0 bytes.")
    if size > settings.MAX_UPLOAD_BYTES:
        raise _Refusal(413, too_large_sentence(settings.MAX_UPLOAD_BYTES))
    said = _metadata(request.headers.get("Upload-Metadata", ""))
    override = said.get("format", "")
    if override not in dict(format_choices()):
        raise _Refusal(400, f"“{override[:40]}” is not a format we know.")
    name = "".join(
        letter for letter in said.get("filename", "") if letter.isprintable()
    )
    needs_key = place.project.structure_only
    return About(
        project_id=place.project.pk,
        user_id=place.user.pk,
        size=size,
        name=name[:255] or "unnamed",
        format=override,
        # Without the key nobody can go on, so it is never found again.
        fingerprint="" if needs_key else said.get("fingerprint", "")[:200],
        needs_key=needs_key,
    )


def _metadata(header: str) -> dict[str, str]:
    """The pairs of Upload-Metadata: `key base64, key base64`."""
    found = {}
    for pair in filter(None, map(str.strip, header.split(","))):
        key, _, encoded = pair.partition(" ")
        try:
            found[key] = b64decode(encoded, validate=True).decode()
        except (binascii.Error, ValueError) as error:
            raise _Refusal(
                400, "Upload-Metadata is pairs of a word and base64, with commas."
            ) from error
    return found


def _add(request: HttpRequest, place: Place, part: Part) -> None:
    """Add the body to a part, piece by piece, and submit it once it is whole."""
    length = whole(request.META.get("CONTENT_LENGTH") or "0") or 0
    if length and request.content_type != _TYPE:
        raise _Refusal(415, f"Send the bytes as {_TYPE}.")
    at = whole(request.headers.get("Upload-Offset", ""))
    if at is None:
        raise _Refusal(400, "Say in Upload-Offset where these bytes begin.")
    offset = part.offset()
    if at != offset:
        raise _wrong(offset)
    if at + length > part.about.size:
        raise _Refusal(413, "These are more bytes than the file was said to have.")
    keeping = _keeping(request, place)
    try:
        at = _append_all(request, part, at=at, keeping=keeping)
        if at == part.about.size:
            _submit(place, part, keeping)
    except WrongOffset as error:
        raise _wrong(error.offset) from error
    except CannotOpen as error:
        part.drop()
        raise _Refusal(409, "The pieces cannot be opened; begin it again.") from error


def _keeping(request: HttpRequest, place: Place) -> Keeping:
    key = request.headers.get("Upload-Key", "")
    if place.project.structure_only and not key:
        raise _Refusal(
            409, "Send the Upload-Key that came with the first answer, or begin again."
        )
    try:
        return keeping_of(place.project, key=key)
    except ValueError as error:
        raise _Refusal(400, str(error)) from error


def _wrong(offset: int) -> _Refusal:
    return _Refusal(
        409,
        f"The next byte that is missing is number {offset}.",
        Upload_Offset=str(offset),
    )


def _append_all(request: HttpRequest, part: Part, *, at: int, keeping: Keeping) -> int:
    while True:
        body = _Body(request)
        received = receive(
            body.chunks(), limit=PIECE, name=part.about.name, keeping=keeping
        )
        if received.size:
            at = part.append(received, at=at)
        else:
            received.drop()
        if body.is_over:
            return at


class _Body:
    """One piece of a request's body. What came before a connection broke is kept."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self.is_over = False

    def chunks(self) -> Iterator[bytes]:
        left = PIECE
        while left:
            try:
                chunk = self._request.read(min(_CHUNK, left))
            except UnreadablePostError:
                chunk = b""
            if not chunk:
                self.is_over = True
                return
            left -= len(chunk)
            yield chunk


def _submit(place: Place, part: Part, keeping: Keeping) -> None:
    """Join the pieces and hand them over as one upload; safe to run twice."""
    about = part.about
    with part.alone():
        if part.finished() is not None:
            return
        received = receive(
            part.content(keeping),
            limit=settings.MAX_UPLOAD_BYTES,
            name=about.name,
            keeping=keeping,
        )
        try:
            upload, is_new = submit_upload(
                project=place.project,
                received=received,
                user=place.user,
                now=timezone.now(),
                format_override=about.format,
            )
        except EmptyUpload as error:
            part.drop()
            raise _Refusal(400, str(error)) from error
        part.finish(upload_id=upload.pk, was_here=not is_new)
