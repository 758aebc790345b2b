"""Regression cases: keep quiet on a dismissed signal, rename, retire, restore."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.permissions import Permission
from apps.review.models import Signal
from apps.review.transitions import Verdict
from apps.screening.regression import (
    NewCase,
    make_case,
    rename_case,
    restore_case,
    retire_case,
)
from apps.traces.queries import engine_trace
from apps.web.access import Place, in_project
from apps.web.forms import CaseForm, first_error
from apps.web.pages.regression import default_name, regression_page
from apps.web.views.errors import refusal


@require_safe
@in_project(Permission.VIEW)
def regression(request: HttpRequest, place: Place) -> HttpResponse:
    """The cases of the project, each with what the key that counts says of it."""
    page = regression_page(place, request.GET)
    return render(request, "web/regression.html", {"page": page})


@require_POST
@in_project(Permission.REVIEW)
def keep_quiet(request: HttpRequest, place: Place, signal_id: int) -> HttpResponse:
    """Make a dismissed signal a case that every later key must keep quiet on."""
    signal = place.signal(signal_id)
    if signal.verdict != Verdict.DISMISS:
        return refusal(
            request, status=409, sentence="Only a dismissed signal becomes a case."
        )
    form = CaseForm({"name": request.POST.get("name") or default_name(place, signal)})
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    _, is_new = make_case(
        project_id=place.project.pk,
        new=_new_case(signal, form.cleaned_data["name"]),
        trace=engine_trace(signal.trace),
        user_id=place.user.pk,
        now=timezone.now(),
    )
    messages.success(
        request,
        "Kept as a regression case: no variant that gives a signal here can be adopted."
        if is_new
        else "It is a regression case already.",
    )
    return redirect("signal", place.project.slug, signal_id)


def _new_case(signal: Signal, name: str) -> NewCase:
    last = signal.historyentry_set.filter(act="decided").order_by("-base_version")
    return NewCase(
        check_slug=signal.check_slug,
        name=name,
        scope=signal.screening.scope,
        headline=signal.headline,
        reason=signal.reason,
        note=last.values_list("note", flat=True).first() or "",
        signal_id=signal.pk,
        trace_id=signal.trace_id,
    )


@require_POST
@in_project(Permission.REVIEW)
def rename(request: HttpRequest, place: Place, case_id: int) -> HttpResponse:
    """Give a case another name."""
    case = place.case(case_id)
    form = CaseForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    rename_case(case=case, name=form.cleaned_data["name"])
    messages.success(request, "Renamed.")
    return redirect("regression", place.project.slug)


@require_POST
@in_project(Permission.MANAGE_CHECKS)
def retire(request: HttpRequest, place: Place, case_id: int) -> HttpResponse:
    """Stop running a case; it stays in the list and can be restored."""
    if retire_case(case=place.case(case_id), now=timezone.now()):
        messages.success(request, "Retired: it stands in nobody's way any more.")
    return redirect("regression", place.project.slug)


@require_POST
@in_project(Permission.MANAGE_CHECKS)
def restore(request: HttpRequest, place: Place, case_id: int) -> HttpResponse:
    """Run a retired case again."""
    if restore_case(case=place.case(case_id)):
        messages.success(request, "Restored: it is run again.")
    else:
        messages.info(request, "It is run already, or another case of its signal is.")
    return redirect("regression", place.project.slug)
