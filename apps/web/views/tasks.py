"""Tasks and their trials: the list, one task, and corrections by hand."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.permissions import Permission
from apps.traces import trials
from apps.web.access import Place, in_project
from apps.web.forms import JoinForm, PlaceForm, TaskNameForm, first_error
from apps.web.pages.tasks import task_page, tasks_page
from apps.web.views.errors import refusal

_UNDO = "task_undo"


@require_safe
@in_project(Permission.VIEW)
def tasks(request: HttpRequest, place: Place) -> HttpResponse:
    """The tasks of a project with their trials and outcomes."""
    page = tasks_page(place, request.GET)
    return render(request, "web/tasks.html", {"page": page})


@require_safe
@in_project(Permission.VIEW)
def task(request: HttpRequest, place: Place, task_id: int) -> HttpResponse:
    """One task with its trials."""
    page = task_page(place, place.task(task_id))
    return render(request, "web/task.html", {"page": page})


@require_POST
@in_project(Permission.REVIEW)
def place_trace(request: HttpRequest, place: Place, trace_id: int) -> HttpResponse:
    """Say by hand of which task a trace is, and which trial."""
    found = place.trace(trace_id)
    form = PlaceForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    try:
        before = trials.place_trace(
            trace=found,
            task=form.cleaned_data["task"],
            trial=form.cleaned_data["trial"],
        )
    except trials.WrongPlace as error:
        return refusal(request, status=400, sentence=str(error))
    request.session[_UNDO] = {
        "trace": found.pk,
        "task": before.task,
        "trial": before.trial,
        "is_set": before.is_set,
    }
    messages.success(request, "Set by hand. Later uploads do not change it.")
    return redirect("trace", place.project.slug, trace_id)


@require_POST
@in_project(Permission.REVIEW)
def undo_place(request: HttpRequest, place: Place, trace_id: int) -> HttpResponse:
    """Put a trace back to where it stood before it was moved last."""
    found = place.trace(trace_id)
    held = request.session.pop(_UNDO, None)
    if not isinstance(held, dict) or held.get("trace") != found.pk:
        return refusal(
            request, status=409, sentence="There is nothing to undo on this trace."
        )
    trials.put_back(
        trace=found,
        placed=trials.Placed(
            task=held["task"], trial=held["trial"], is_set=held["is_set"]
        ),
    )
    messages.success(request, "Put back to where it stood.")
    return redirect("trace", place.project.slug, trace_id)


@require_POST
@in_project(Permission.REVIEW)
def rename(request: HttpRequest, place: Place, task_id: int) -> HttpResponse:
    """Give a task another name."""
    found = place.task(task_id)
    form = TaskNameForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    try:
        trials.rename_task(task=found, name=form.cleaned_data["name"])
    except trials.WrongPlace as error:
        return refusal(request, status=409, sentence=str(error))
    messages.success(request, "Renamed.")
    return redirect("task", place.project.slug, task_id)


@require_POST
@in_project(Permission.REVIEW)
def join(request: HttpRequest, place: Place, task_id: int) -> HttpResponse:
    """Move all trials of a task to another one."""
    found = place.task(task_id)
    form = JoinForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    into = place.task(form.cleaned_data["into"])
    try:
        moved = trials.join_tasks(task=found, into=into)
    except trials.WrongPlace as error:
        return refusal(request, status=400, sentence=str(error))
    messages.success(
        request, f"{moved} {'trial' if moved == 1 else 'trials'} moved here."
    )
    return redirect("task", place.project.slug, into.pk)
