"""Freezing agent invocations as cases: from a trace, and from all trials of a task."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from apps.accounts.permissions import Permission
from apps.replays.cases import WrongCase
from apps.replays.freezing import freeze_invocation, freeze_task
from apps.web.access import Place, in_project
from apps.web.numbers import whole
from apps.web.views.errors import refusal


@require_POST
@in_project(Permission.REPLAY)
def freeze_one(request: HttpRequest, place: Place, trace_id: int) -> HttpResponse:
    """Freeze what one agent invocation of a trace was given."""
    found = place.trace(trace_id)
    if found.is_replay:
        sentence = "This is the recording of a replay: its case is frozen already."
        return refusal(request, status=409, sentence=sentence)
    sent = request.POST.get("invocation", "")
    number = whole(sent)
    if sent and number is None:
        return refusal(
            request, status=400, sentence="This trace has no such agent invocation."
        )
    try:
        kept = freeze_invocation(
            trace=found, invocation=number, user_id=place.user.pk, now=timezone.now()
        )
    except WrongCase as error:
        return refusal(request, status=400, sentence=str(error))
    messages.success(
        request,
        "Frozen as a case. Retiring it takes it back."
        if kept.is_new
        else "The same input was frozen before: here it is.",
    )
    if request.POST.get("back") == "trace":
        return redirect(
            reverse("trace", args=[place.project.slug, trace_id]) + "#freezing"
        )
    return redirect("replay-case", place.project.slug, kept.case.pk)


@require_POST
@in_project(Permission.REPLAY)
def freeze_all(request: HttpRequest, place: Place, task_id: int) -> HttpResponse:
    """Freeze what one agent was given in every trial of a task."""
    found = place.task(task_id)
    chosen = whole(request.POST.get("agent", ""))
    if chosen is None:
        return refusal(
            request, status=400, sentence="Choose the agent whose inputs are frozen."
        )
    agent = place.agent(chosen)
    try:
        frozen = freeze_task(
            task=found, agent=agent, user_id=place.user.pk, now=timezone.now()
        )
    except WrongCase as error:
        return refusal(request, status=400, sentence=str(error))
    distinct = len({one.case.pk for one in frozen.kept})
    inputs = f"{len(frozen.kept):,} {'input' if len(frozen.kept) == 1 else 'inputs'}"
    cases = "1 case" if distinct == 1 else f"{distinct:,} cases"
    messages.success(
        request, f"{inputs} of “{agent}” frozen: {cases}, {frozen.new:,} of them new."
    )
    for sentence in frozen.left_out[:10]:
        messages.warning(request, sentence)
    query = f"?task={found.pk}&agent={agent.pk}"
    return redirect(reverse("replay-cases", args=[place.project.slug]) + query)
