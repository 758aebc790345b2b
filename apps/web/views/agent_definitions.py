"""What an agent decides and must hold: writing it, trying it, going back to a version."""

from __future__ import annotations

from typing import Any

import msgspec
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.permissions import Permission
from apps.agents.models import Agent, AgentDefinition
from apps.agents.operations import Asked, WrongAgent, define_agent
from apps.agents.queries import current_definition
from apps.engine.agent_contracts import Kind, Unread, canonical, named
from apps.engine.extraction import AUTOMATIC, DecisionKind, DecisionSpec
from apps.pipeline.scoring import score_anew
from apps.scoring.definitions import unread_of
from apps.web.access import Place, in_project
from apps.web.agent_decision_forms import DecisionForm, decision_initial
from apps.web.agent_fields import THEN_KINDS
from apps.web.agent_forms import HeldForm, held_initial
from apps.web.numbers import whole
from apps.web.pages.agent_editor import (
    ContractEditor,
    DecisionEditor,
    contract_at,
    contract_editor,
    decision_editor,
    decision_in,
    tried_contract,
    tried_decision,
    wanted_contract,
    wanted_decision,
)
from apps.web.views.errors import refusal

SCORED_AGAIN = "Traces are scored again in the background."


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.MANAGE_AGENTS)
def new_contract(request: HttpRequest, place: Place, agent_id: int) -> HttpResponse:
    """Write a contract of an agent, trying it on what the agent did."""
    agent = place.agent(agent_id)
    form = _held_form(request, None)
    current = current_definition(agent)
    if request.method == "POST":
        return _contract_sent(request, place, agent, form, (current, None))
    page = contract_editor(place, agent, form, current=current)
    return render(request, "web/agent_contract.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.MANAGE_AGENTS)
def edit_contract(
    request: HttpRequest, place: Place, agent_id: int, at: int
) -> HttpResponse:
    """Change a contract of an agent; the version before stays in the history."""
    agent = place.agent(agent_id)
    current = current_definition(agent)
    spec = contract_at(current, at)
    if spec is None:
        raise Http404
    form = (
        _held_form(request, {"name": named(spec.stored)})
        if isinstance(spec, Unread)
        else _held_form(request, held_initial(spec), spec.kind, spec.then)
    )
    if request.method == "POST":
        return _contract_sent(request, place, agent, form, (current, at))
    page = contract_editor(place, agent, form, current=current, at=at)
    return render(request, "web/agent_contract.html", {"page": page})


def _held_form(
    request: HttpRequest,
    initial: dict[str, Any] | None,
    usual: Kind = Kind.EQUALITY,
    then: Any = None,
) -> HeldForm:
    """The form of the kind that the address names; 404 for a kind that is none."""
    usual_then = Kind.EQUALITY if then is None else then.kind
    try:
        kind = Kind(request.GET.get("kind", usual))
        inner = Kind(request.GET.get("then", usual_then))
    except ValueError:
        raise Http404 from None
    if inner not in THEN_KINDS:
        raise Http404
    sent = request.POST if request.method == "POST" else None
    return HeldForm(sent, initial=initial, auto_id="f_%s", kind=kind, then=inner)


def _contract_sent(
    request: HttpRequest,
    place: Place,
    agent: Agent,
    form: HeldForm,
    where: tuple[AgentDefinition | None, int | None],
) -> HttpResponse:
    """The preview of what was sent, or its saving."""
    current, at = where
    if request.POST.get("act") == "preview":
        preview = tried_contract(place, agent, form, current)
        page = contract_editor(place, agent, form, current=current, at=at)
        return tried(request, msgspec.structs.replace(page, preview=preview))
    spec = wanted_contract(form)
    held = [] if current is None else list(current.held)
    if spec is not None:
        held[len(held) if at is None else at - 1 : at or len(held)] = [canonical(spec)]
        decision = None if current is None else current.decision
        asked = Asked(decision=decision, held=tuple(held), note=_note(form))
        if _defined(request, place, agent, asked, form):
            return redirect("agent", place.project.slug, agent.pk)
    page = contract_editor(place, agent, form, current=current, at=at)
    return render(request, "web/agent_contract.html", {"page": page}, status=400)


def tried(request: HttpRequest, page: ContractEditor | DecisionEditor) -> HttpResponse:
    """A page with its preview, or for htmx the preview alone."""
    is_part = request.headers.get("HX-Request") == "true"
    name = "contract" if isinstance(page, ContractEditor) else "decision"
    part = f"web/_agent_{name}_tried.html"
    template = part if is_part else f"web/agent_{name}.html"
    return render(request, template, {"page": page})


def _note(form: HeldForm | DecisionForm) -> str:
    return str(form.cleaned_data["note"]).strip()


def _defined(
    request: HttpRequest,
    place: Place,
    agent: Agent,
    asked: Asked,
    form: HeldForm | DecisionForm,
) -> bool:
    """Whether it was written down; if not, the form says why not."""
    try:
        with transaction.atomic():
            row = define_agent(
                agent=agent,
                asked=asked,
                user_id=place.user.pk,
                now=timezone.now(),
                seen=form.seen(),
            )
            score_anew(project_id=place.project.pk)
    except WrongAgent as error:
        form.add_error(None, str(error))
        return False
    messages.success(request, f"Saved as version {row.number}. {SCORED_AGAIN}")
    return True


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.MANAGE_AGENTS)
def decision(request: HttpRequest, place: Place, agent_id: int) -> HttpResponse:
    """Say how the decision of an agent is found, trying it on what the agent did."""
    agent = place.agent(agent_id)
    current = current_definition(agent)
    spec_now = decision_in(current)
    form = decision_form(request, spec_now)
    number = 0 if current is None else current.number
    status = 200
    if request.method == "POST" and request.POST.get("act") == "preview":
        preview = tried_decision(place, agent, form)
        page = decision_editor(place, agent, form, number=number, stored=spec_now)
        return tried(request, msgspec.structs.replace(page, preview=preview))
    if request.method == "POST":
        spec = wanted_decision(form)
        if spec is not None:
            held = () if current is None else tuple(current.held)
            asked = Asked(decision=stored(spec), held=held, note=_note(form))
            if _defined(request, place, agent, asked, form):
                return redirect("agent", place.project.slug, agent_id)
        status = 400
    page = decision_editor(place, agent, form, number=number, stored=spec_now)
    return render(request, "web/agent_decision.html", {"page": page}, status=status)


def decision_form(request: HttpRequest, found: DecisionSpec | Unread) -> DecisionForm:
    """The form of the kind that the address names; 404 for a kind that is none.

    What cannot be read begins with the automatic rules.
    """
    spec = AUTOMATIC if isinstance(found, Unread) else found
    try:
        kind = DecisionKind(request.GET.get("kind", spec.kind))
    except ValueError:
        raise Http404 from None
    sent = request.POST if request.method == "POST" else None
    return DecisionForm(sent, initial=decision_initial(spec), auto_id="f_%s", kind=kind)


def stored(spec: DecisionSpec) -> dict[str, Any] | None:
    """A definition as it is stored: nothing for the automatic one."""
    return None if spec == AUTOMATIC else canonical(spec)


@require_POST
@in_project(Permission.MANAGE_AGENTS)
def remove_contract(
    request: HttpRequest, place: Place, agent_id: int, at: int
) -> HttpResponse:
    """Take a contract out; the version before can be used again."""
    agent = place.agent(agent_id)
    current = current_definition(agent)
    if current is None or not 1 <= at <= len(current.held):
        raise Http404
    name = named(current.held[at - 1]) or f"Contract {at}"
    held = (*current.held[: at - 1], *current.held[at:])
    asked = Asked(decision=current.decision, held=held)
    said = f"“{name}” is taken out. Version {current.number} brings it back."
    return _replaced(request, place, agent, asked, said)


@require_POST
@in_project(Permission.MANAGE_AGENTS)
def restore(request: HttpRequest, place: Place, agent_id: int) -> HttpResponse:
    """Use what an earlier version asked again, as a new version."""
    agent = place.agent(agent_id)
    number = whole(request.POST.get("version", "")) or 0
    row = None
    if number < 2**31:
        row = AgentDefinition.objects.filter(agent=agent, number=number).first()
    if row is None:
        sentence = "This agent has no version of that number."
        return refusal(request, status=400, sentence=sentence)
    unread = unread_of(row)
    if unread:
        return refusal(request, status=409, sentence=unread[0])
    note = f"As in version {number}."
    asked = Asked(decision=row.decision, held=tuple(row.held), note=note)
    said = f"What version {number} asked counts again."
    return _replaced(request, place, agent, asked, said)


def _replaced(
    request: HttpRequest, place: Place, agent: Agent, asked: Asked, said: str
) -> HttpResponse:
    """Write a version that was based on what the page showed, and go back to it."""
    try:
        with transaction.atomic():
            define_agent(
                agent=agent,
                asked=asked,
                user_id=place.user.pk,
                now=timezone.now(),
                seen=whole(request.POST.get("number", "")),
            )
            score_anew(project_id=place.project.pk)
    except WrongAgent as error:
        return refusal(request, status=409, sentence=str(error))
    messages.success(request, f"{said} {SCORED_AGAIN}")
    return redirect("agent", place.project.slug, agent.pk)
