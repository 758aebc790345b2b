"""Planning a batch of replays: what it may cost is shown, and confirmed, before it starts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from apps.accounts.permissions import Permission
from apps.agents.models import Agent
from apps.pipeline.replays import wake_runs
from apps.replays.models import Batch, ReplayCase
from apps.replays.planning import WrongPlan, start_batch
from apps.replays.prices_file import known_prices
from apps.review.models import Signal
from apps.web.access import Place, in_project
from apps.web.numbers import whole
from apps.web.pages.replay_asked import Asked, asked_in
from apps.web.pages.replay_plan import (
    MOST_LISTED,
    ConfirmPage,
    Planned,
    PlanPage,
    choose_agent_page,
    confirm_page,
    listed_cases,
    planned_of,
    tools_of_cases,
    usable_targets,
    wrong_part,
)
from apps.web.replay_batch_forms import BatchForm
from apps.web.replay_plan_forms import PlanForm, StubForm, stub_forms

CHANGED = "Something changed since this was shown: look at it again before it starts."


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.REPLAY)
def plan(request: HttpRequest, place: Place) -> HttpResponse:
    """Plan a batch; POST shows what it may cost, asks to confirm it, or starts it."""
    asked = asked_in(place, request.GET)
    if asked.agent is None:
        page = choose_agent_page(place, request.GET.urlencode())
        return render(request, "web/replay_plan_agent.html", {"page": page})
    form, stubs = _forms(request, asked, asked.agent)
    if request.method != "POST" or request.POST.get("act") in {"change", "tools"}:
        return _form_page(request, place, asked.agent, form, stubs)
    made = planned_of(form, stubs)
    if request.POST.get("act") == "estimate":
        return _estimate(request, place, asked.agent, (form, stubs, made))
    if made is not None:
        shown = confirm_page(place, asked.agent, made, sent=request.POST)
        again = partial(_form_page, request, place, asked.agent, form, stubs)
        return confirmed(request, shown, form, again=again)
    return _form_page(request, place, asked.agent, form, stubs)


def _forms(
    request: HttpRequest, asked: Asked, agent: Agent
) -> tuple[PlanForm, list[StubForm]]:
    sent = request.POST if request.method == "POST" else None
    ids = _ids(sent) if sent is not None else asked.cases
    cases = listed_cases(agent, ids=ids, trace=asked.trace)
    targets = usable_targets(agent)
    chosen = [
        one
        for one in cases
        if one.pk in ids or (asked.trace is not None and one.trace_id == asked.trace)
    ]
    form = PlanForm(
        sent,
        targets=targets,
        currency=known_prices()[0].currency,
        cases=cases,
        auto_id="f_%s",
        initial={
            "name": f"{agent} alone"[:200],
            "target": asked.target,
            "case": [str(one.pk) for one in chosen],
            "determinism": True,
            "signal": asked.signal,
        },
    )
    return form, stub_forms(sent, tools_of_cases(chosen or cases))


def _ids(sent: QueryDict) -> list[int]:
    found = (whole(text) for text in sent.getlist("case")[:MOST_LISTED])
    return [one for one in found if one is not None]


def _form_page(
    request: HttpRequest,
    place: Place,
    agent: Agent,
    form: PlanForm,
    stubs: list[StubForm],
) -> HttpResponse:
    is_sent = request.method == "POST" and request.POST.get("act") != "tools"
    is_wrong = is_sent and any(one.errors for one in (form, *stubs))
    form.mark_errors()
    for one in stubs:
        one.mark_errors()
    page = PlanPage(
        place=place,
        agent=agent,
        form=form,
        stubs=stubs,
        estimate=None,
        is_cut=len(form.cases) == MOST_LISTED,
        retired_why="" if form.targets else "no target",
        signal=_signal(place, form),
    )
    status = 400 if is_wrong else 200
    return render(request, "web/replay_plan.html", {"page": page}, status=status)


def _signal(place: Place, form: PlanForm) -> Signal | None:
    """The signal that a plan is for; 404 where it is not of this project."""
    number = whole(str(form["signal"].value() or ""))
    return None if number is None else place.signal(number)


def _estimate(
    request: HttpRequest,
    place: Place,
    agent: Agent,
    made: tuple[PlanForm, list[StubForm], Planned | None],
) -> HttpResponse:
    """The estimate alone for htmx, else the page with it."""
    form, stubs, found = made
    part = wrong_part(form, stubs) if found is None else found.estimate
    page = PlanPage(
        place=place,
        agent=agent,
        form=form,
        stubs=stubs,
        estimate=part,
        is_cut=len(form.cases) == MOST_LISTED,
        retired_why="" if form.targets else "no target",
        signal=_signal(place, form),
    )
    is_part = request.headers.get("HX-Request") == "true"
    template = "web/_replay_estimate.html" if is_part else "web/replay_plan.html"
    return render(request, template, {"page": page, "estimate": part})


def confirmed(
    request: HttpRequest,
    page: ConfirmPage,
    form: BatchForm,
    *,
    again: Callable[[], HttpResponse],
) -> HttpResponse:
    """The page that asks once more; or, where it was answered, the start.

    `again` is the form, for a plan that cannot be started.
    """
    if request.POST.get("act") == "start":
        if request.POST.get("seen") == page.planned.stamp:
            batch = started(request, page.place, form, page.planned)
            if batch is None:
                return again()
            return redirect("replay-batch", page.place.project.slug, batch.pk)
        page = msgspec.structs.replace(page, said=CHANGED)
    template = "web/replay_plan_confirm.html"
    return render(request, template, {"page": page}, status=409 if page.said else 200)


def started(
    request: HttpRequest, place: Place, form: BatchForm, found: Planned
) -> Batch | None:
    """The batch with its runs waiting for workers; the form says why not."""
    if found.new.signal is not None:
        place.signal(found.new.signal)
    rows = list(ReplayCase.objects.filter(pk__in=[one.pk for one in found.cases]))
    rows.sort(key=lambda one: one.pk)
    try:
        with transaction.atomic():
            batch = start_batch(
                version=found.target.version,
                cases=rows,
                new=found.new,
                user_id=place.user.pk,
                now=timezone.now(),
            )
            wake_runs(count=batch.run_count)
    except WrongPlan as error:
        form.put_plan_error(error)
        return None
    messages.success(request, f"Started: {batch.run_count:,} runs wait for a worker.")
    return batch
