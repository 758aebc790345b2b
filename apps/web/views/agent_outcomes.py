"""What is expected of outcomes, and how the decision of the whole system is found."""

from __future__ import annotations

import msgspec
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.permissions import Permission, check_allowed
from apps.agents.models import OutcomeDefinition
from apps.agents.operations import Asked, WrongAgent, define_outcome
from apps.agents.queries import outcome_definition
from apps.pipeline.scoring import score_anew
from apps.scoring.definitions import unread_of
from apps.web.access import Place, in_project
from apps.web.agent_decision_forms import DecisionForm, ExpectationForm
from apps.web.numbers import whole
from apps.web.pages.agent_editor import (
    decision_editor,
    decision_of_whole,
    tried_decision,
    wanted_decision,
)
from apps.web.pages.agent_outcomes import (
    expectations_in,
    initial_for,
    outcome_preview,
    outcomes_page,
    replaced_in,
    wanted_expectation,
)
from apps.web.views.agent_definitions import (
    SCORED_AGAIN,
    decision_form,
    stored,
    tried,
)
from apps.web.views.errors import refusal


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.VIEW)
def outcomes(request: HttpRequest, place: Place) -> HttpResponse:
    """What is expected of outcomes; POST tries or saves one more expectation."""
    current = outcome_definition(place.project.pk)
    if request.method == "POST":
        check_allowed(place.role, Permission.MANAGE_AGENTS)
        return _sent(request, place, current)
    initial = initial_for(current, request.GET.get("task", ""))
    form = ExpectationForm(initial=initial or {"task": "*"}, auto_id="f_%s")
    page = outcomes_page(place, form)
    return render(request, "web/agent_outcomes.html", {"page": page})


def _sent(
    request: HttpRequest, place: Place, current: OutcomeDefinition | None
) -> HttpResponse:
    form = ExpectationForm(request.POST, auto_id="f_%s")
    if request.POST.get("act") == "preview":
        preview = outcome_preview(place, form, current)
        page = msgspec.structs.replace(outcomes_page(place, form), preview=preview)
        is_part = request.headers.get("HX-Request") == "true"
        part = "web/_agent_outcomes_tried.html"
        template = part if is_part else "web/agent_outcomes.html"
        return render(request, template, {"page": page})
    wanted = wanted_expectation(form)
    if wanted is not None:
        held = replaced_in(current, *wanted)
        note = form.cleaned_data["note"].strip()
        decision = None if current is None else current.decision
        asked = Asked(decision=decision, held=held, note=note)
        if _defined(request, place, asked, form):
            return redirect("agent-outcomes", place.project.slug)
    page = outcomes_page(place, form)
    return render(request, "web/agent_outcomes.html", {"page": page}, status=400)


def _defined(
    request: HttpRequest,
    place: Place,
    asked: Asked,
    form: ExpectationForm | DecisionForm,
) -> bool:
    """Whether it was written down; if not, the form says why not."""
    try:
        number = _write(place, asked, form.seen())
    except WrongAgent as error:
        form.add_error(None, str(error))
        return False
    messages.success(request, f"Saved as version {number}. {SCORED_AGAIN}")
    return True


def _write(place: Place, asked: Asked, seen: int | None) -> int:
    with transaction.atomic():
        row = define_outcome(
            project_id=place.project.pk,
            asked=asked,
            user_id=place.user.pk,
            now=timezone.now(),
            seen=seen,
        )
        score_anew(project_id=place.project.pk)
    return row.number


@require_POST
@in_project(Permission.MANAGE_AGENTS)
def remove_expectation(request: HttpRequest, place: Place) -> HttpResponse:
    """Take the expectation of some tasks out."""
    current = outcome_definition(place.project.pk)
    task = request.POST.get("task", "")
    if current is None or task not in expectations_in(current):
        sentence = "Nothing is expected of tasks of that name."
        return refusal(request, status=409, sentence=sentence)
    held = replaced_in(current, task, None)
    asked = Asked(decision=current.decision, held=held)
    said = f"Taken out. Version {current.number} brings it back."
    return _replaced(request, place, asked, said)


@require_POST
@in_project(Permission.MANAGE_AGENTS)
def restore_outcomes(request: HttpRequest, place: Place) -> HttpResponse:
    """Use what an earlier version asked again, as a new version."""
    number = whole(request.POST.get("version", "")) or 0
    row = None
    if number < 2**31:
        rows = OutcomeDefinition.objects.filter(project=place.project)
        row = rows.filter(number=number).first()
    if row is None:
        sentence = "There is no version of that number."
        return refusal(request, status=400, sentence=sentence)
    note = f"As in version {number}."
    unread = unread_of(row)
    if unread:
        return refusal(request, status=409, sentence=unread[0])
    asked = Asked(decision=row.decision, held=tuple(row.held), note=note)
    return _replaced(
        request, place, asked, f"What version {number} asked counts again."
    )


def _replaced(
    request: HttpRequest, place: Place, asked: Asked, said: str
) -> HttpResponse:
    try:
        _write(place, asked, whole(request.POST.get("number", "")))
    except WrongAgent as error:
        return refusal(request, status=409, sentence=str(error))
    messages.success(request, f"{said} {SCORED_AGAIN}")
    return redirect("agent-outcomes", place.project.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.MANAGE_AGENTS)
def whole_decision(request: HttpRequest, place: Place) -> HttpResponse:
    """Say how the decision of the whole system is found, trying it on recent traces."""
    spec, number = decision_of_whole(place.project.pk)
    form = decision_form(request, spec)
    status = 200
    if request.method == "POST" and request.POST.get("act") == "preview":
        preview = tried_decision(place, None, form)
        page = decision_editor(place, None, form, number=number, stored=spec)
        return tried(request, msgspec.structs.replace(page, preview=preview))
    if request.method == "POST":
        wanted = wanted_decision(form)
        if wanted is not None:
            current = outcome_definition(place.project.pk)
            held = () if current is None else tuple(current.held)
            note = form.cleaned_data["note"].strip()
            asked = Asked(decision=stored(wanted), held=held, note=note)
            if _defined(request, place, asked, form):
                return redirect("agent-outcomes", place.project.slug)
        status = 400
    page = decision_editor(place, None, form, number=number, stored=spec)
    return render(request, "web/agent_decision.html", {"page": page}, status=status)
