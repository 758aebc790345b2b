"""Planning a memory test: shown and confirmed before anything starts."""

from __future__ import annotations

from functools import partial

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from apps.accounts.permissions import Permission
from apps.agents.models import Agent
from apps.replays.prices_file import known_prices
from apps.web.access import Place, in_project
from apps.web.pages.replay_asked import Asked, asked_in
from apps.web.pages.replay_estimate import EstimatePart
from apps.web.pages.replay_memory import MemoryPage, planned_test
from apps.web.pages.replay_plan import (
    choose_agent_page,
    confirm_page,
    listed_cases,
    usable_targets,
    wrong_part,
)
from apps.web.replay_memory_forms import FactForm, MemoryForm, fact_forms
from apps.web.views.replay_plan import confirmed


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.REPLAY)
def memory(request: HttpRequest, place: Place) -> HttpResponse:
    """Plan a memory test; POST shows what it may cost, asks to confirm, or starts."""
    asked = asked_in(place, request.GET)
    if asked.agent is None:
        page = choose_agent_page(place, request.GET.urlencode(), is_memory=True)
        return render(request, "web/replay_plan_agent.html", {"page": page})
    form = _form(request, asked, asked.agent)
    facts = fact_forms(request.POST if request.method == "POST" else None)
    forms = (form, facts)
    act = request.POST.get("act")
    if request.method != "POST" or act == "change":
        return _page(request, place, asked.agent, forms)
    made = planned_test(place, form, facts)
    if act == "estimate":
        part = wrong_part(form, facts) if made is None else made.estimate
        return _page(request, place, asked.agent, forms, part)
    if made is None:
        return _page(request, place, asked.agent, forms)
    shown = confirm_page(place, asked.agent, made, sent=request.POST)
    again = partial(_page, request, place, asked.agent, forms)
    return confirmed(request, shown, form, again=again)


def _form(request: HttpRequest, asked: Asked, agent: Agent) -> MemoryForm:
    first = asked.cases[0] if asked.cases else None
    return MemoryForm(
        request.POST if request.method == "POST" else None,
        targets=usable_targets(agent),
        currency=known_prices()[0].currency,
        cases=listed_cases(agent, ids=asked.cases),
        auto_id="f_%s",
        initial={
            "name": f"Memory of {agent}"[:200],
            "target": asked.target,
            "case": first,
            "signal": asked.signal,
            "depths": "0, 2, 4, 8, 16",
        },
    )


def _page(
    request: HttpRequest,
    place: Place,
    agent: Agent,
    forms: tuple[MemoryForm, list[FactForm]],
    part: EstimatePart | None = None,
) -> HttpResponse:
    """The form, or for htmx the estimate alone."""
    form, facts = forms
    is_sent = request.method == "POST" and request.POST.get("act") != "estimate"
    is_wrong = is_sent and any(one.errors for one in (form, *facts))
    for one in (form, *facts):
        one.mark_errors()
    page = MemoryPage(place, agent, form, facts, part)
    is_part = request.headers.get("HX-Request") == "true" and part is not None
    template = "web/_replay_estimate.html" if is_part else "web/replay_memory.html"
    context = {"page": page, "estimate": part}
    return render(request, template, context, status=400 if is_wrong else 200)
