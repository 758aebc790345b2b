"""Contracts and planted facts of a project: the list, one of them, its form, its state."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from apps.accounts.permissions import Permission
from apps.engine.check import Check
from apps.engine.contracts import BadDefinition
from apps.engine.contracts.definitions import CONTRACT
from apps.pipeline.lineups import wake_catch_up
from apps.screening.definitions import (
    DefinedMeanwhile,
    check_of,
    current_definition,
    define,
    redefine,
    set_state,
    slug_from,
)
from apps.screening.models import Definition, DefinitionState
from apps.web.access import Place, in_project
from apps.web.contract_forms import FORMS, DefinitionForm, initial_of
from apps.web.pages.contracts import (
    contract_page,
    contracts_page,
    form_page,
    preview,
    wrong,
)
from apps.web.views.errors import refusal


@require_safe
@in_project(Permission.VIEW)
def contracts(request: HttpRequest, place: Place) -> HttpResponse:
    """What this project asks of its traces."""
    return render(request, "web/contracts.html", {"page": contracts_page(place)})


@require_safe
@in_project(Permission.VIEW)
def contract(request: HttpRequest, place: Place, definition_slug: str) -> HttpResponse:
    """One contract with its answers and its history."""
    page = contract_page(place, _definition(place, definition_slug))
    return render(request, "web/contract.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.MANAGE_CHECKS)
def new_contract(request: HttpRequest, place: Place) -> HttpResponse:
    """Define a contract or a planted fact, trying it on traces that are here."""
    kind = request.GET.get("kind", CONTRACT)
    if kind not in FORMS:
        raise Http404
    form = FORMS[kind](request.POST or None, auto_id="f_%s")
    if request.method != "POST":
        return _form(request, place, form, None)
    return _answered(request, place, form, None)


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.MANAGE_CHECKS)
def edit_contract(
    request: HttpRequest, place: Place, definition_slug: str
) -> HttpResponse:
    """Change what a contract asks; answers of the version before stay stored."""
    current = _definition(place, definition_slug)
    initial = initial_of(label=current.label, spec=current.spec)
    form = FORMS[current.kind](request.POST or None, initial=initial, auto_id="f_%s")
    if request.method != "POST":
        return _form(request, place, form, current)
    return _answered(request, place, form, current)


@require_POST
@in_project(Permission.MANAGE_CHECKS)
def change_state(
    request: HttpRequest, place: Place, definition_slug: str
) -> HttpResponse:
    """Pause a contract, let it go on, or retire it."""
    current = _definition(place, definition_slug)
    wanted = request.POST.get("state", "")
    if wanted not in DefinitionState.values:
        sentence = "Say whether it is to be active, paused or retired."
        return refusal(request, status=400, sentence=sentence)
    state = DefinitionState(wanted)
    try:
        set_state(
            current=current, state=state, user_id=place.user.pk, now=timezone.now()
        )
    except DefinedMeanwhile as error:
        return refusal(request, status=409, sentence=str(error))
    wake_catch_up(project_id=place.project.pk)
    messages.success(request, f"“{current.label}” {_SAID[state]}")
    return redirect("contract", place.project.slug, definition_slug)


_SAID = {
    DefinitionState.ACTIVE: "is checked again.",
    DefinitionState.PAUSED: "is paused: it still answers, but nothing of it is queued.",
    DefinitionState.RETIRED: "is retired: it answers about no trace any more.",
}


def _definition(place: Place, slug: str) -> Definition:
    found = current_definition(project_id=place.project.pk, slug=slug)
    if found is None:
        raise Http404
    return found


def _answered(
    request: HttpRequest, place: Place, form: DefinitionForm, current: Definition | None
) -> HttpResponse:
    """The preview of what was sent, or its saving."""
    check = _checked(form, current)
    if request.POST.get("act") == "preview":
        return _previewed(request, place, form, current, check)
    slug = _saved(request, place, form, current) if check else ""
    if not slug:
        return _form(request, place, form, current, status=400)
    wake_catch_up(project_id=place.project.pk)
    messages.success(
        request, _SAVED[DefinitionState(current.state)] if current else _NEW
    )
    return redirect("contract", place.project.slug, slug)


_NEW = "Saved. The traces that are here are checked in the background."
_SAVED = {
    DefinitionState.ACTIVE: _NEW,
    DefinitionState.PAUSED: f"{_NEW} It stays paused: nothing of it is queued.",
    DefinitionState.RETIRED: "Saved. It stays retired: it answers about no trace.",
}


def _checked(form: DefinitionForm, current: Definition | None) -> Check | None:
    """The check that was sent; None, with errors in the form, where it is none."""
    if not form.is_valid():
        return None
    try:
        wanted = form.wanted()
        slug = current.slug if current else slug_from(wanted.label)
        return check_of(wanted, slug=slug, version=1)
    except BadDefinition as error:
        form.put_error(error)
        return None


def _saved(
    request: HttpRequest, place: Place, form: DefinitionForm, current: Definition | None
) -> str:
    """The short name of what was saved; empty, with errors in the form, if not."""
    try:
        if current is None:
            row = define(
                project_id=place.project.pk,
                wanted=form.wanted(),
                user_id=place.user.pk,
                now=timezone.now(),
            )
        else:
            _same_row(request, current)
            row = redefine(
                current=current,
                wanted=form.wanted(),
                user_id=place.user.pk,
                now=timezone.now(),
            )
    except BadDefinition as error:
        form.put_error(error)
        return ""
    except DefinedMeanwhile as error:
        form.add_error(None, str(error))
        return ""
    return row.slug


def _same_row(request: HttpRequest, current: Definition) -> None:
    """Raise `DefinedMeanwhile` where the form was opened on an older row."""
    if request.POST.get("number", str(current.number)) != str(current.number):
        raise DefinedMeanwhile(
            "Somebody changed this contract since you opened it. Open it in another tab, "
            "compare, and send yours again from there."
        )


def _previewed(
    request: HttpRequest,
    place: Place,
    form: DefinitionForm,
    current: Definition | None,
    check: Check | None,
) -> HttpResponse:
    on = request.POST.get("on", "")
    found = preview(place, check, on=on) if check else wrong(form)
    page = form_page(place, form, current=current, on=on, preview=found)
    is_part = request.headers.get("HX-Request") == "true"
    template = "web/_contract_preview.html" if is_part else "web/contract_form.html"
    return render(request, template, {"page": page})


def _form(
    request: HttpRequest,
    place: Place,
    form: DefinitionForm,
    current: Definition | None,
    *,
    status: int = 200,
) -> HttpResponse:
    page = form_page(place, form, current=current)
    return render(request, "web/contract_form.html", {"page": page}, status=status)
