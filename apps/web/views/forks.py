"""The fork view of a task, and what reviewers note on its trials."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.permissions import Permission
from apps.traces.models import Task, Trace
from apps.verdicts.notes import Noted, WrongNote, note_trial, withdraw_note
from apps.web.access import Place, in_project
from apps.web.forms import TrialForm, TrialNoteForm, first_error
from apps.web.pages.forks import forks_page
from apps.web.views.errors import refusal


@require_safe
@in_project(Permission.VIEW)
def forks(request: HttpRequest, place: Place, task_id: int) -> HttpResponse:
    """Where the trials of a task part, and two of their steps side by side."""
    page = forks_page(place, place.task(task_id), request.GET)
    return render(request, "web/forks.html", {"page": page})


@require_POST
@in_project(Permission.REVIEW)
def note(request: HttpRequest, place: Place, task_id: int) -> HttpResponse:
    """Note on a trial that it was sound but wrong, or right by luck."""
    task = place.recorded_task(task_id)
    form = TrialNoteForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    data = form.cleaned_data
    step = None if data["step"] is None else data["step"] - 1
    try:
        note_trial(
            trace=_trial(place, task, data["trace"]),
            noted=Noted(data["kind"], step, data["note"]),
            user_id=place.user.pk,
            now=timezone.now(),
        )
    except WrongNote as error:
        return refusal(request, status=400, sentence=str(error))
    messages.success(request, "Noted.")
    return redirect(_notes_url(place, task_id))


@require_POST
@in_project(Permission.REVIEW)
def withdraw(request: HttpRequest, place: Place, task_id: int) -> HttpResponse:
    """Take back the note on a trial; its history keeps both."""
    task = place.recorded_task(task_id)
    form = TrialForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    try:
        trial = _trial(place, task, form.cleaned_data["trace"])
        withdraw_note(trace=trial, user_id=place.user.pk, now=timezone.now())
    except WrongNote as error:
        return refusal(request, status=409, sentence=str(error))
    messages.success(request, "Withdrawn. The history keeps it.")
    return redirect(_notes_url(place, task_id))


def _trial(place: Place, task: Task, trace_id: int) -> Trace:
    """A trial of this task; raises `WrongNote` or answers 404."""
    trace = place.recorded_trace(trace_id)
    if trace.task_id != task.pk:
        raise WrongNote("This trace is no trial of the task any more.")
    return trace


def _notes_url(place: Place, task_id: int) -> str:
    return f"{reverse('task', args=[place.project.slug, task_id])}#notes"
