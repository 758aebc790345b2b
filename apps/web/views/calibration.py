"""Calibration: what each check is worth so far, and the share of blind looks."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.operations import set_blind_percent
from apps.accounts.permissions import Permission
from apps.review.blind_sample import withdraw
from apps.web.access import Place, in_project
from apps.web.forms import BlindPercentForm, first_error
from apps.web.pages.calibration import calibration_page
from apps.web.pages.calibrations import calibrations_page
from apps.web.views.errors import refusal


@require_safe
@in_project(Permission.VIEW)
def calibrations(request: HttpRequest, place: Place) -> HttpResponse:
    """All checks of the project, those that need a look first."""
    page = calibrations_page(place)
    return render(request, "web/calibrations.html", {"page": page})


@require_safe
@in_project(Permission.VIEW)
def calibration(request: HttpRequest, place: Place, check_slug: str) -> HttpResponse:
    """One key of one check: groups, precision, misses, baselines, trend."""
    page = calibration_page(place, check_slug, request.GET)
    return render(request, "web/calibration.html", {"page": page})


@require_POST
@in_project(Permission.MANAGE_CHECKS)
def change_blind_percent(request: HttpRequest, place: Place) -> HttpResponse:
    """Choose which share of the traces that come is looked at blindly."""
    form = BlindPercentForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=422, sentence=first_error(form))
    percent = form.cleaned_data["percent"]
    if set_blind_percent(project=place.project, percent=percent):
        messages.success(
            request,
            f"From now on {percent} % of the traces that come without a signal are "
            "looked at blindly, and about as many with one."
            if percent
            else "No more traces are drawn for blind looks.",
        )
    return redirect(reverse("project-settings", args=[place.project.slug]) + "#blind")


@require_POST
@in_project(Permission.MANAGE_CHECKS)
def withdraw_blind_looks(request: HttpRequest, place: Place) -> HttpResponse:
    """Take back the blind looks that nobody has decided."""
    number = withdraw(project=place.project, user=place.user)
    messages.success(request, f"Blind looks taken back: {number}.")
    return redirect(reverse("project-settings", args=[place.project.slug]) + "#blind")
