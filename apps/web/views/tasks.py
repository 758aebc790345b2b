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
from apps.web.pages.task import task_page
from apps.web.pages.tasks import tasks_page
from apps.web.views.errors import refusal

UNDO_PLACE = "undo_place"
UNDO_JOIN = "undo_join"
_MOST_UNDONE = 20


@require_safe
@in_project(Permission.VIEW)
def tasks(request: HttpRequest, place: Place) -> HttpResponse:
    """The tasks of a project, filtered and sorted by the URL."""
    page = tasks_page(place, request.GET)
    return render(request, "web/tasks.html", {"page": page})


@require_safe
@in_project(Permission.VIEW)
def task(request: HttpRequest, place: Place, task_id: int) -> HttpResponse:
    """One task: its trials, agents and forks."""
    undo = request.session.get(UNDO_JOIN)
    page = task_page(place, place.task(task_id), request.GET, undo)
    return render(request, "web/task.html", {"page": page})


@require_POST
@in_project(Permission.REVIEW)
def place_trace(request: HttpRequest, place: Place, trace_id: int) -> HttpResponse:
    """Say by hand of which task a trace is, and which trial."""
    found = place.recorded_trace(trace_id)
    form = PlaceForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    try:
        before, since = trials.place_trace(
            trace=found,
            task=form.cleaned_data["task"],
            trial=form.cleaned_data["trial"],
        )
    except trials.WrongPlace as error:
        return refusal(request, status=400, sentence=str(error))
    if before != since:
        # Sent twice, it moves nothing, and what is undone stays the first time.
        undo = dict(request.session.get(UNDO_PLACE, {}))
        undo.pop(str(found.pk), None)
        moved = [[one.task, one.trial, one.is_set] for one in (before, since)]
        undo[str(found.pk)] = moved
        request.session[UNDO_PLACE] = dict(list(undo.items())[-_MOST_UNDONE:])
    messages.success(request, _placed_in_words(form.cleaned_data["task"]))
    return redirect("trace", place.project.slug, trace_id)


@require_POST
@in_project(Permission.REVIEW)
def undo_place(request: HttpRequest, place: Place, trace_id: int) -> HttpResponse:
    """Put a trace back to where it stood before it was moved last."""
    found = place.recorded_trace(trace_id)
    undo = dict(request.session.get(UNDO_PLACE, {}))
    held = undo.pop(str(found.pk), None)
    if held is None:
        return refusal(
            request, status=409, sentence="There is nothing to undo on this trace."
        )
    request.session[UNDO_PLACE] = undo
    before, since = (trials.Placed(*one) for one in held)
    try:
        trials.put_back(trace=found, placed=before, since=since)
    except trials.WrongPlace as error:
        return refusal(request, status=409, sentence=str(error))
    messages.success(request, "Put back to where it stood.")
    return redirect("trace", place.project.slug, trace_id)


@require_POST
@in_project(Permission.REVIEW)
def rename(request: HttpRequest, place: Place, task_id: int) -> HttpResponse:
    """Give a task another name."""
    found = place.recorded_task(task_id)
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
    found = place.recorded_task(task_id)
    form = JoinForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    name = form.cleaned_data["into"]
    into = trials.task_called(project=place.project, name=name)
    if into is None:
        sentence = f"No task of this project is called “{name[:80]}”."
        return refusal(request, status=400, sentence=sentence)
    try:
        moved = trials.join_tasks(task=found, into=into)
    except trials.WrongPlace as error:
        return refusal(request, status=400, sentence=str(error))
    request.session[UNDO_JOIN] = {
        "from": found.pk,
        "into": into.pk,
        "moved": [[one.trace, one.trial, one.is_set] for one in moved],
    }
    messages.success(request, f"{_trials_in_words(len(moved))} moved here.")
    return redirect("task", place.project.slug, into.pk)


@require_POST
@in_project(Permission.REVIEW)
def part(request: HttpRequest, place: Place, task_id: int) -> HttpResponse:
    """Undo the last joining of tasks: the trials go back to where they stood."""
    into = place.recorded_task(task_id)
    held = request.session.pop(UNDO_JOIN, None)
    if not isinstance(held, dict) or held.get("into") != into.pk:
        return refusal(
            request, status=409, sentence="There is nothing to undo on this task."
        )
    before = place.recorded_task(held["from"])
    count = trials.part_tasks(
        task=before, into=into, moved=[trials.Moved(*one) for one in held["moved"]]
    )
    messages.success(request, f"{_trials_in_words(count)} moved back.")
    return redirect("task", place.project.slug, before.pk)


def _trials_in_words(count: int) -> str:
    return f"{count} {'trial' if count == 1 else 'trials'}"


def _placed_in_words(task: str) -> str:
    if task.strip():
        return "Set by hand. Later uploads do not change it."
    return "Taken out of every task by hand. Later uploads do not change it."
