"""Trace sets: the list, a new one, one with its traces, and the baseline."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from apps.accounts.permissions import Permission, check_allowed
from apps.pipeline.baselines import (
    CannotBeBaseline,
    choose_baseline,
    clear_baseline,
    forget_set,
)
from apps.traces.sets import NewSet, WrongSet, make_set, rename_set
from apps.web.access import Place, in_project
from apps.web.forms import BaselineForm, TraceSetForm, first_error
from apps.web.pages.sets import chosen_from, new_set_page, set_page, sets_page
from apps.web.views.errors import refusal


@require_safe
@in_project(Permission.VIEW)
def sets(request: HttpRequest, place: Place) -> HttpResponse:
    """The trace sets of a project."""
    return render(request, "web/sets.html", {"page": sets_page(place, request.GET)})


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.MANAGE_SETS)
def new_set(request: HttpRequest, place: Place) -> HttpResponse:
    """How many traces the address means; POST freezes them under a name."""
    error = ""
    if request.method == "POST" and request.POST.get("act") != "count":
        form = TraceSetForm(request.POST)
        error = first_error(form) or _made(request, place, form)
        if not error:
            return redirect("trace-set", place.project.slug, form.cleaned_data["slug"])
    page = new_set_page(place, request.GET, request.POST, error)
    status = 422 if page.error and request.method == "POST" else 200
    return render(request, "web/set_new.html", {"page": page}, status=status)


def _made(request: HttpRequest, place: Place, form: TraceSetForm) -> str:
    """Make the set; the sentence that says why not, or nothing."""
    data = form.cleaned_data
    try:
        chosen = chosen_from(request.GET, request.POST.get("ids", ""))
        made = make_set(
            project=place.project,
            new=NewSet(data["name"], chosen, data["note"]),
            user_id=place.user.pk,
            now=timezone.now(),
        )
    except WrongSet as wrong:
        return str(wrong)
    data["slug"] = made.slug
    count = f"{made.trace_count:,} {'trace' if made.trace_count == 1 else 'traces'}"
    messages.success(request, f"{count} frozen as a set.")
    return ""


@require_safe
@in_project(Permission.VIEW)
def trace_set(request: HttpRequest, place: Place, set_slug: str) -> HttpResponse:
    """One set with its traces; for htmx only how its baseline stands."""
    page = set_page(place, place.trace_set(set_slug), request.GET)
    is_part = "HX-Request" in request.headers
    template = "web/_baseline.html" if is_part else "web/trace_set.html"
    return render(request, template, {"page": page})


@require_POST
@in_project(Permission.MANAGE_SETS)
def rename(request: HttpRequest, place: Place, set_slug: str) -> HttpResponse:
    """Give a set another name and note."""
    found = place.trace_set(set_slug)
    form = TraceSetForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    data = form.cleaned_data
    try:
        rename_set(trace_set=found, name=data["name"], note=data["note"])
    except WrongSet as error:
        return refusal(request, status=409, sentence=str(error))
    messages.success(request, "Saved.")
    return redirect("trace-set", place.project.slug, set_slug)


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.MANAGE_SETS)
def delete(request: HttpRequest, place: Place, set_slug: str) -> HttpResponse:
    """Ask before a set is deleted; POST deletes it. Its traces stay."""
    found = place.trace_set(set_slug)
    if request.method == "POST":
        if found.is_baseline:
            check_allowed(place.role, Permission.MANAGE_CHECKS)
        forget_set(trace_set=found)
        messages.success(request, "The set is deleted. Its traces are still here.")
        return redirect("sets", place.project.slug)
    page = set_page(place, found, request.GET)
    return render(request, "web/set_delete.html", {"page": page})


@require_POST
@in_project(Permission.MANAGE_CHECKS)
def baseline(request: HttpRequest, place: Place, set_slug: str) -> HttpResponse:
    """Make a set the baseline of the project, or let the project have none."""
    found = place.trace_set(set_slug)
    form = BaselineForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    if form.cleaned_data["act"] == "clear":
        if clear_baseline(trace_set=found):
            messages.success(request, "The project has no baseline now.")
        return redirect("trace-set", place.project.slug, set_slug)
    try:
        choose_baseline(trace_set=found, now=timezone.now())
    except CannotBeBaseline as error:
        return refusal(request, status=409, sentence=str(error))
    return redirect("trace-set", place.project.slug, set_slug)
