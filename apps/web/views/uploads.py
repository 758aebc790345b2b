"""Uploads: send files, watch them being read, read the receipt."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
)
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from apps.accounts.permissions import Permission, check_allowed
from apps.pipeline.flow import EmptyUpload, submit_upload
from apps.pipeline.flow import read_again as read_upload_again
from apps.traces.encryption import CannotOpen
from apps.traces.models import Upload
from apps.traces.parts import find
from apps.traces.storage import (
    HashedUpload,
    open_raw,
    too_large_sentence,
    was_too_large,
)
from apps.web.access import Place, in_project
from apps.web.forms import ReadAgainForm, format_choices
from apps.web.pages.live import live_section
from apps.web.pages.receipt import receipt_page
from apps.web.pages.uploads import upload_row, uploads_page
from apps.web.views.errors import refusal, wants_json


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.VIEW)
def uploads(request: HttpRequest, place: Place) -> HttpResponse:
    """The drop zone and the list of uploads; POST takes one or several files."""
    if request.method == "POST":
        check_allowed(place.role, Permission.UPLOAD)
        return _take_files(request, place)
    context = {
        "page": uploads_page(place, before=request.GET.get("before", "")),
        "formats": format_choices(),
        "max_bytes": settings.MAX_UPLOAD_BYTES,
        "live": live_section(
            place,
            address=request.build_absolute_uri("/").rstrip("/"),
            now=timezone.now(),
        ),
    }
    return render(request, "web/uploads.html", context)


def _take_files(request: HttpRequest, place: Place) -> HttpResponse:
    files = [f for f in request.FILES.getlist("file") if isinstance(f, HashedUpload)]
    if was_too_large(request.META):
        sentence = too_large_sentence(settings.MAX_UPLOAD_BYTES)
        return refusal(request, status=413, sentence=sentence)
    override = request.POST.get("format", "")
    if override not in dict(format_choices()):
        return refusal(
            request, status=400, sentence=f"“{override[:40]}” is not a format we know."
        )
    if not files:
        return refusal(request, status=400, sentence="Choose at least one file.")
    taken: list[tuple[Upload, bool]] = []
    for file in files:
        try:
            taken.append(
                submit_upload(
                    project=place.project,
                    received=file.received,
                    user=place.user,
                    now=timezone.now(),
                    format_override=override,
                )
            )
        except EmptyUpload as error:
            if len(files) == 1:
                return refusal(request, status=400, sentence=str(error))
            messages.error(request, str(error))
    return _after_taking(request, place, taken)


def _after_taking(
    request: HttpRequest, place: Place, taken: list[tuple[Upload, bool]]
) -> HttpResponse:
    if len(taken) == 1:
        upload, is_new = taken[0]
        url = reverse("upload", args=[place.project.slug, upload.pk])
        if wants_json(request):
            row = upload_row(upload)
            return JsonResponse(
                {
                    "id": upload.pk,
                    "url": url,
                    "progress_url": url + "progress/",
                    "already_here": not is_new,
                    "state": row.state,
                    "sentence": row.sentence,
                },
                status=201 if is_new else 200,
            )
        if not is_new:
            messages.info(
                request,
                f"These bytes are here already, as {upload.name or 'unnamed'}; "
                "this is their receipt.",
            )
        return redirect(url)
    return redirect("uploads", place.project.slug)


@require_safe
@in_project(Permission.VIEW)
def upload(request: HttpRequest, place: Place, upload_id: int) -> HttpResponse:
    """The receipt of one upload, live while it is being read."""
    page = receipt_page(place, place.upload(upload_id))
    template = (
        "web/_receipt.html" if request.headers.get("HX-Request") else "web/upload.html"
    )
    return render(request, template, {"page": page, "formats": format_choices()})


@require_safe
@in_project(Permission.VIEW)
def progress(request: HttpRequest, place: Place, upload_id: int) -> JsonResponse:  # noqa: ARG001
    """How far one upload is, as JSON for the drop zone."""
    row = upload_row(place.upload(upload_id))
    return JsonResponse(
        {
            "id": row.id,
            "name": row.name,
            "state": row.state,
            "sentence": row.sentence,
            "bytes_read": row.bytes_read,
            "bytes_total": row.bytes_total,
            "traces": row.traces,
            "signals": row.signals,
        }
    )


@require_safe
@in_project(Permission.VIEW)
def raw(request: HttpRequest, place: Place, upload_id: int) -> HttpResponseBase:
    """What is kept of an upload's bytes, as an attachment: mostly as they came."""
    found = place.upload(upload_id)
    if request.method == "HEAD":
        return HttpResponse(content_type="application/octet-stream")
    try:
        stream = open_raw(found.raw_sha256)
    except FileNotFoundError:
        raise Http404 from None
    except CannotOpen as error:
        return refusal(request, status=409, sentence=str(error))
    response = FileResponse(
        stream,
        as_attachment=True,
        filename=_kept_name(found),
        content_type="application/octet-stream",
    )
    response["Content-Security-Policy"] = "sandbox"
    return response


def _kept_name(upload: Upload) -> str:
    name = upload.name or "upload"
    return name if upload.reduced is None else f"{name}.evalsite.jsonl"


@require_POST
@in_project(Permission.UPLOAD)
def forget_part(request: HttpRequest, place: Place, part_id: str) -> HttpResponse:
    """Remove what has arrived of a file of this user. Safe to run twice."""
    part = find(project_id=place.project.pk, user_id=place.user.pk, part_id=part_id)
    if part is not None and part.finished() is None:
        part.drop()
        messages.info(request, f"What had arrived of {part.about.name} is removed.")
    return redirect("uploads", place.project.slug)


@require_POST
@in_project(Permission.UPLOAD)
def read_again(request: HttpRequest, place: Place, upload_id: int) -> HttpResponse:
    """Read an upload again, maybe as another format."""
    found = place.upload(upload_id)
    form = ReadAgainForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence="That is not a format we know.")
    read_upload_again(upload=found, format_override=form.cleaned_data["format"])
    return redirect("upload", place.project.slug, upload_id)
