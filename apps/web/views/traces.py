"""Traces: the list, one trace, one step's texts, and a trace as a file."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from apps.accounts.permissions import Permission
from apps.engine.formats.evalsite_writer import dump
from apps.engine.privacy.structure import NO_BODY, SENTENCE
from apps.traces.queries import body_of_step, engine_trace, steps_of
from apps.web.access import Place, in_project
from apps.web.pages.bodies import body_text
from apps.web.pages.replay_freezing import freezing_part
from apps.web.pages.tasks import placing
from apps.web.pages.trace import MAX_DOWNLOAD_STEPS, trace_page
from apps.web.pages.traces import traces_page
from apps.web.views.errors import refusal
from apps.web.views.tasks import UNDO_PLACE


@require_safe
@in_project(Permission.VIEW)
def traces(request: HttpRequest, place: Place) -> HttpResponse:
    """The traces of a project, filtered and sorted by the URL."""
    page = traces_page(place, request.GET)
    return render(request, "web/traces.html", {"page": page})


@require_safe
@in_project(Permission.VIEW)
def trace(request: HttpRequest, place: Place, trace_id: int) -> HttpResponse:
    """One trace: facts, answers of the checks, outline and transcript."""
    found = place.trace(trace_id)
    page = trace_page(place, found, request.GET)
    context = {
        "page": page,
        "freezing": freezing_part(place, found, page.invocations),
        "placing": placing(place, found, request.session.get(UNDO_PLACE)),
    }
    return render(request, "web/trace.html", context)


@require_safe
@in_project(Permission.VIEW)
def step_body(
    request: HttpRequest, place: Place, trace_id: int, seq: int
) -> HttpResponse:
    """The texts of one step: as a part of a page, or whole as plain text."""
    found = place.trace(trace_id)
    kept = body_of_step(trace_id=found.pk, seq=seq)
    if kept is None:
        raise Http404
    text = body_text(kept, next(iter(steps_of(found.pk, first=seq, last=seq)), None))
    if request.GET.get("as") == "text":
        response = HttpResponse(text.whole, content_type="text/plain; charset=utf-8")
        response["Content-Disposition"] = (
            f'attachment; filename="trace-{found.pk}-step-{seq + 1}.txt"'
        )
        return response
    return render(
        request,
        "web/_step_body.html",
        {
            "body": text,
            "url": request.path,
            "seq": seq,
            "trace": found,
            "no_body": NO_BODY if SENTENCE in found.notes else "",
        },
    )


@require_safe
@in_project(Permission.VIEW)
def download(request: HttpRequest, place: Place, trace_id: int) -> HttpResponseBase:
    """One trace as a line of Evalsite JSONL; large ones only as their raw upload."""
    found = place.trace(trace_id)
    if found.step_count > MAX_DOWNLOAD_STEPS:
        return refusal(
            request,
            status=413,
            sentence=(
                f"This trace has {found.step_count} steps; up to "
                f"{MAX_DOWNLOAD_STEPS} are exported one by one. "
                "Download the raw upload instead."
            ),
        )
    response = HttpResponse(
        dump(engine_trace(found)), content_type="application/octet-stream"
    )
    response["Content-Disposition"] = (
        f'attachment; filename="trace-{found.pk}.evalsite.jsonl"'
    )
    return response
