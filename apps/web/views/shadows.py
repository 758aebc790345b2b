"""Trying a key of a check in shadow; adopting, going back, pausing."""

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
from apps.engine.check import Check
from apps.pipeline.shadows import (
    AdoptedMeanwhile,
    CasesFail,
    NothingToChange,
    Wish,
    adopt_key,
    begin_shadow,
    set_paused,
)
from apps.screening.lineup import lineup_of
from apps.screening.models import Shadow
from apps.screening.shadows import CannotShadow, cancel_shadow, candidate, check_of
from apps.traces.behind import behind_count
from apps.web.access import Place, in_project
from apps.web.forms import AdoptForm, PauseForm, first_error
from apps.web.pages.line_up import entry_or_404
from apps.web.pages.parameter_fields import typed_values
from apps.web.pages.shadow import (
    Said,
    adopted_check,
    shadow_of,
    shadow_page,
    shadows_page,
    version_of,
)
from apps.web.views.errors import refusal


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.VIEW)
def shadows(request: HttpRequest, place: Place, check_slug: str) -> HttpResponse:
    """The form that begins a shadow, and the history of the check; POST begins one."""
    if request.method == "POST":
        check_allowed(place.role, Permission.MANAGE_CHECKS)
        return _begin(request, place, check_slug)
    page = shadows_page(place, check_slug, version=request.GET.get("version", ""))
    is_part = "HX-Request" in request.headers
    template = "web/_check_line_up.html" if is_part else "web/shadows.html"
    return render(request, template, {"page": page, "part": page.part})


def _begin(request: HttpRequest, place: Place, slug: str) -> HttpResponse:
    chosen = version_of(place, slug, request.POST.get("version", ""))
    typed = {limit.name: request.POST.get(limit.name, "") for limit in chosen.limits}
    values, errors = typed_values(chosen, typed)
    said = Said(typed=typed, errors=errors)
    if not errors:
        try:
            check = candidate(place.lineup, slug, version=chosen.version, values=values)
            return _begun(request, place, check)
        except (CannotShadow, ValueError) as error:
            said = Said(typed=typed, error=str(error))
    page = shadows_page(place, slug, version=str(chosen.version), said=said)
    context = {"page": page, "part": page.part}
    return render(request, "web/shadows.html", context, status=422)


def _begun(request: HttpRequest, place: Place, check: Check) -> HttpResponse:
    shadow, is_new = begin_shadow(
        project=place.project,
        check=check,
        user_id=place.user.pk,
        now=timezone.now(),
    )
    if not is_new:
        messages.info(
            request, "This variant is being tried already; this is its shadow."
        )
    return redirect("shadow", place.project.slug, check.slug, shadow.pk)


@require_safe
@in_project(Permission.VIEW)
def shadow(
    request: HttpRequest, place: Place, check_slug: str, shadow_id: int
) -> HttpResponse:
    """One shadow: its progress while it runs, then what it would change."""
    found = shadow_of(place, check_slug, shadow_id)
    page = shadow_page(place, found, request.GET)
    is_part = "HX-Request" in request.headers
    template = "web/_shadow.html" if is_part else "web/shadow.html"
    return render(request, template, {"page": page})


@require_POST
@in_project(Permission.MANAGE_CHECKS)
def cancel(
    request: HttpRequest, place: Place, check_slug: str, shadow_id: int
) -> HttpResponse:
    """Stop a shadow; what it has answered stays."""
    found = shadow_of(place, check_slug, shadow_id)
    if cancel_shadow(shadow_id=found.pk):
        messages.success(request, "Cancelled. What it has answered stays.")
    return redirect("shadow", place.project.slug, check_slug, shadow_id)


@require_POST
@in_project(Permission.MANAGE_CHECKS)
def adopt_shadow(
    request: HttpRequest, place: Place, check_slug: str, shadow_id: int
) -> HttpResponse:
    """Make the key of a shadow the one that counts."""
    found = shadow_of(place, check_slug, shadow_id)
    check = check_of(found, place.lineup)
    if check is None:
        return refusal(
            request, status=409, sentence="This version is not here any more."
        )
    said = _adopt(request, place, check)
    if isinstance(said, HttpResponse):
        return said
    return _refused_shadow(request, place, found, said)


def _refused_shadow(
    request: HttpRequest, place: Place, found: Shadow, said: Said
) -> HttpResponse:
    page = shadow_page(place, found, request.GET, said)
    return render(request, "web/shadow.html", {"page": page}, status=409)


@require_POST
@in_project(Permission.MANAGE_CHECKS)
def adopt_again(request: HttpRequest, place: Place, check_slug: str) -> HttpResponse:
    """Make the key of an earlier adoption count again."""
    entry_or_404(place, check_slug)
    check = adopted_check(place, check_slug, request.POST.get("number", ""))
    if check is None:
        return refusal(
            request,
            status=400,
            sentence="That variant is not in the history of this check.",
        )
    said = _adopt(request, place, check)
    if isinstance(said, HttpResponse):
        return said
    page = shadows_page(place, check_slug, said=said)
    context = {"page": page, "part": page.part}
    return render(request, "web/shadows.html", context, status=409)


def _adopt(request: HttpRequest, place: Place, check: Check) -> HttpResponse | Said:
    """Adopt and go to the history, or what stands against it."""
    form = AdoptForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    data = form.cleaned_data
    try:
        adopt_key(
            project_id=place.project.pk,
            wish=Wish(check, note=data["note"].strip(), seen=data["seen"]),
            user_id=place.user.pk,
            now=timezone.now(),
        )
    except CasesFail as error:
        return Said(refused=str(error), failures=error.failures)
    except (NothingToChange, AdoptedMeanwhile) as error:
        return Said(refused=str(error))
    messages.success(request, f"Adopted. {_what_happens(place)}")
    return redirect("shadows", place.project.slug, check.slug)


def _what_happens(place: Place) -> str:
    name = lineup_of(place.project.pk).name
    count = behind_count(place.project.pk, name)
    traces = (
        "1 trace is" if count == 1 else f"{count:,} traces are".replace(",", "\u202f")
    )
    return (
        f"{traces} brought up to date in the background, and the queue with them: "
        "decisions stay, and what nobody decided follows."
    )


@require_POST
@in_project(Permission.MANAGE_CHECKS)
def pause(request: HttpRequest, place: Place, check_slug: str) -> HttpResponse:
    """Pause a check or let it go on."""
    entry_or_404(place, check_slug)
    form = PauseForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    is_paused = form.cleaned_data["act"] == "pause"
    try:
        set_paused(
            project_id=place.project.pk,
            slug=check_slug,
            is_paused=is_paused,
            user_id=place.user.pk,
            now=timezone.now(),
        )
    except (NothingToChange, AdoptedMeanwhile) as error:
        return refusal(request, status=409, sentence=str(error))
    done = "Paused" if is_paused else "Resumed"
    messages.success(request, f"{done}. {_what_happens(place)}")
    return redirect("shadows", place.project.slug, check_slug)
