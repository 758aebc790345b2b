"""Agents of a project: the list, one of them, their names, tools and descriptions."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.permissions import Permission
from apps.agents import operations
from apps.agents.models import Agent
from apps.agents.operations import AskedMeanwhile, WrongAgent
from apps.pipeline.scoring import score_anew
from apps.scoring.models import Conduct
from apps.web.access import Place, in_project
from apps.web.agent_decision_forms import AgentNameForm, ToolsForm
from apps.web.forms import first_error
from apps.web.numbers import whole
from apps.web.pages.agent import agent_page
from apps.web.pages.agents import agents_page
from apps.web.views.errors import refusal


@require_safe
@in_project(Permission.VIEW)
def agents(request: HttpRequest, place: Place) -> HttpResponse:
    """The agents of a project, masked ones first, and what is not covered."""
    page = agents_page(place, request.GET)
    return render(request, "web/agents.html", {"page": page})


@require_safe
@in_project(Permission.VIEW)
def agent(request: HttpRequest, place: Place, agent_id: int) -> HttpResponse:
    """One agent: its verdict, what it did, and what is asked of it."""
    page = agent_page(place, place.agent(agent_id), request.GET)
    is_part = request.headers.get("HX-Request") == "true" and page.recent is not None
    template = "web/_agent_recent.html" if is_part else "web/agent.html"
    return render(request, template, {"page": page})


@require_POST
@in_project(Permission.MANAGE_AGENTS)
def new_agent(request: HttpRequest, place: Place) -> HttpResponse:
    """Name an agent that no trace names yet."""
    form = AgentNameForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    name = form.cleaned_data["name"]
    try:
        made = _settled_again(
            place,
            lambda: operations.add_agent(
                project_id=place.project.pk, name=name, now=timezone.now()
            ),
        )
    except WrongAgent as error:
        return refusal(request, status=409, sentence=str(error))
    messages.success(request, "Added. It is unknown until a trace names it.")
    return redirect("agent", place.project.slug, made.pk)


def _settled_again(place: Place, act: Callable[[], Agent]) -> Agent:
    """Do something that verdicts show, and have them settled again with it."""
    with transaction.atomic():
        done = act()
        score_anew(project_id=place.project.pk)
    return done


@require_POST
@in_project(Permission.MANAGE_AGENTS)
def rename(request: HttpRequest, place: Place, agent_id: int) -> HttpResponse:
    """Give an agent another name and description for people."""
    found = place.agent(agent_id)
    form = AgentNameForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))

    def act() -> Agent:
        operations.rename_agent(agent=found, **form.cleaned_data)
        return found

    try:
        _settled_again(place, act)
    except WrongAgent as error:
        status = 409 if isinstance(error, AskedMeanwhile) else 400
        return refusal(request, status=status, sentence=str(error))
    messages.success(request, "Saved. Traces keep the names that they record.")
    return redirect("agent", place.project.slug, agent_id)


@require_POST
@in_project(Permission.MANAGE_AGENTS)
def name_tools(request: HttpRequest, place: Place, agent_id: int) -> HttpResponse:
    """Say which tools of an agent change something."""
    found = place.agent(agent_id)
    form = ToolsForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    ticked = [one.replace("\x00", "") for one in request.POST.getlist("tool")[:1_000]]
    tools = [*ticked, *form.cleaned_data["tools"].splitlines()]
    try:
        with transaction.atomic():
            operations.name_writing_tools(
                agent=found, tools=tools, seen=form.cleaned_data["seen"]
            )
            score_anew(project_id=place.project.pk)
    except WrongAgent as error:
        return refusal(request, status=409, sentence=str(error))
    messages.success(request, "Saved. Traces are scored again in the background.")
    return redirect("agent", place.project.slug, agent_id)


@require_POST
@in_project(Permission.MANAGE_AGENTS)
def remove(request: HttpRequest, place: Place, agent_id: int) -> HttpResponse:
    """Take an agent that no trace names out of the inventory again."""
    found = place.agent(agent_id)
    if Conduct.objects.filter(agent=found).exists():
        sentence = f"Traces name “{found}”, so it stays. Merge it instead."
        return refusal(request, status=409, sentence=sentence)
    try:
        with transaction.atomic():
            operations.remove_agent(agent=found)
            score_anew(project_id=place.project.pk)
    except WrongAgent as error:
        return refusal(request, status=409, sentence=str(error))
    messages.success(
        request,
        f"“{found}” is out of the inventory. Adding it again brings back what was asked "
        "of it.",
    )
    return redirect("agents", place.project.slug)


@require_POST
@in_project(Permission.MANAGE_AGENTS)
def merge(request: HttpRequest, place: Place, agent_id: int) -> HttpResponse:
    """Let every recorded name of an agent stand for another one."""
    found = place.agent(agent_id)
    chosen = whole(request.POST.get("into", ""))
    if chosen is None:
        return refusal(request, status=400, sentence="Choose another agent.")
    into = place.agent(chosen)
    try:
        with transaction.atomic():
            keys = operations.merge_agents(
                agent=found, into=into, user_id=place.user.pk, now=timezone.now()
            )
            score_anew(project_id=place.project.pk)
    except WrongAgent as error:
        return refusal(request, status=409, sentence=str(error))
    names = "1 name of" if len(keys) == 1 else f"{len(keys)} names of"
    stand = "stands" if len(keys) == 1 else "stand"
    messages.success(
        request,
        f"{names} “{found}” now {stand} for “{into}”. “Names that were given away or "
        "taken” below gives back what was merged.",
    )
    return redirect("agent", place.project.slug, into.pk)


@require_POST
@in_project(Permission.MANAGE_AGENTS)
def give_name(request: HttpRequest, place: Place, agent_id: int) -> HttpResponse:
    """Give one recorded name to another agent, or let it be one of its own again."""
    place.agent(agent_id)
    key, to = request.POST.get("key", ""), request.POST.get("to", "")
    if "\x00" in key:
        return refusal(request, status=400, sentence="No agent has such a name.")
    try:
        with transaction.atomic():
            after = _given(place, key, to)
            score_anew(project_id=place.project.pk)
    except WrongAgent as error:
        return refusal(request, status=409, sentence=str(error))
    messages.success(request, f"“{key or 'no name'}” now stands for “{after}”.")
    return redirect("agent", place.project.slug, after.pk)


def _given(place: Place, key: str, to: str) -> Agent:
    """Move a name to the agent with the id `to`, to its own where that is "own"."""
    project_id, user_id, now = place.project.pk, place.user.pk, timezone.now()
    if to == "own":
        return operations.split_name(
            project_id=project_id, key=key, user_id=user_id, now=now
        )
    chosen = whole(to)
    if chosen is None:
        raise WrongAgent("Choose the agent that the name is given to.")
    after = place.agent(chosen)
    operations.give_name(
        project_id=project_id, key=key, to=after, user_id=user_id, now=now
    )
    return after
