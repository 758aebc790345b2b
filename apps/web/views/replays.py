"""Replays: batches, their groups and runs; cancelling a batch and letting it go on."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.permissions import Permission
from apps.pipeline.replays import wake_runs
from apps.replays.planning import Caps
from apps.replays.results import run_lines
from apps.replays.stopping import cancel_batch, resume_batch
from apps.replays.transitions import NotPossibleNow
from apps.verdicts.replayed import decisions_in_batch
from apps.web.access import Place, in_project
from apps.web.pages.replay_batch import batch_live, batch_page
from apps.web.pages.replay_batches import batches_page
from apps.web.pages.replay_group import group_page
from apps.web.pages.replay_run import run_page
from apps.web.replay_forms import CapsForm
from apps.web.views.errors import refusal


@require_safe
@in_project(Permission.VIEW)
def replays(request: HttpRequest, place: Place) -> HttpResponse:
    """The batches of a project, the newest first."""
    page = batches_page(place, request.GET)
    return render(request, "web/replay_batches.html", {"page": page})


@require_safe
@in_project(Permission.VIEW)
def batch(request: HttpRequest, place: Place, batch_id: int) -> HttpResponse:
    """One batch: how far it is, what it costs, what its groups or depths say."""
    page = batch_page(place, place.batch(batch_id), request.GET, now=timezone.now())
    return render(request, "web/replay_batch.html", {"page": page})


@require_safe
@in_project(Permission.VIEW)
def progress(request: HttpRequest, place: Place, batch_id: int) -> HttpResponse:
    """The part of a batch's page that changes while it runs."""
    live = batch_live(place, place.batch(batch_id), request.GET, now=timezone.now())
    return render(request, "web/_replay_batch_live.html", {"live": live})


@require_safe
@in_project(Permission.VIEW)
def group(
    request: HttpRequest, place: Place, batch_id: int, number: int
) -> HttpResponse:
    """The runs of one case in one regime of a batch."""
    found = place.batch(batch_id)
    page = group_page(place, found, place.group(found, number))
    return render(request, "web/replay_group.html", {"page": page})


@require_safe
@in_project(Permission.VIEW)
def run(request: HttpRequest, place: Place, run_id: int) -> HttpResponse:
    """One run: its ending, its proof, what it tried and what answered it."""
    page = run_page(place, place.run(run_id))
    return render(request, "web/replay_run.html", {"page": page})


@require_safe
@in_project(Permission.VIEW)
def as_jsonl(
    request: HttpRequest,  # noqa: ARG001
    place: Place,
    batch_id: int,
) -> StreamingHttpResponse:
    """All runs of a batch as JSON lines."""
    found = place.batch(batch_id)
    lines = run_lines(found, decisions_in_batch(found))
    response = StreamingHttpResponse(lines, content_type="application/x-ndjson")
    response["Content-Disposition"] = (
        f'attachment; filename="batch-{found.pk}-runs.jsonl"'
    )
    return response


@require_POST
@in_project(Permission.REPLAY)
def cancel(request: HttpRequest, place: Place, batch_id: int) -> HttpResponse:
    """Let no further run of a batch begin."""
    found = place.batch(batch_id)
    try:
        cancel_batch(batch=found, user_id=place.user.pk)
    except NotPossibleNow as error:
        return refusal(request, status=409, sentence=str(error))
    messages.success(
        request, "Cancelled. What was executed stays; the rest can be resumed."
    )
    return redirect("replay-batch", place.project.slug, batch_id)


@require_POST
@in_project(Permission.REPLAY)
def resume(request: HttpRequest, place: Place, batch_id: int) -> HttpResponse:
    """Let a stopped or cancelled batch go on under the caps of the form."""
    found = place.batch(batch_id)
    form = CapsForm(request.POST)
    if not form.is_valid():
        return _say_again(request, place, batch_id, form)
    try:
        waiting = resume_batch(batch=found, caps=Caps(**form.cleaned_data))
    except NotPossibleNow as error:
        form.add_error(None, str(error))
        return _say_again(request, place, batch_id, form, status=409)
    wake_runs(count=min(waiting, found.concurrency))
    runs = "1 run waits" if waiting == 1 else f"{waiting:,} runs wait"
    messages.success(request, f"It goes on: {runs} for a worker.")
    return redirect("replay-batch", place.project.slug, batch_id)


def _say_again(
    request: HttpRequest,
    place: Place,
    batch_id: int,
    form: CapsForm,
    status: int = 422,
) -> HttpResponse:
    """The page of the batch with what was typed and what is wrong with it."""
    page = batch_page(place, place.batch(batch_id), {}, now=timezone.now())
    context: dict[str, Any] = {"page": page, "form": form}
    return render(request, "web/replay_batch.html", context, status=status)
