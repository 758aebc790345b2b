"""Targets: how an agent is run alone. Only maintainers change them; keys are write-only."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)

from apps.accounts.permissions import Permission, check_allowed
from apps.agents.queries import named_agents
from apps.engine.replay.run import TargetKind
from apps.replays import targets as operations
from apps.replays.allowed import allowed_here
from apps.replays.models import Target, TargetVersion
from apps.replays.sealing import CannotSeal, forget_secret, set_secret
from apps.replays.target_settings import WrongTarget
from apps.web.access import Place, in_project
from apps.web.numbers import whole
from apps.web.pages.replay_target import new_target_page, target_page
from apps.web.pages.replay_targets import targets_page
from apps.web.replay_target_forms import WITH_KEY, TargetForm, target_initial
from apps.web.views.errors import refusal


@require_safe
@in_project(Permission.VIEW)
def targets(request: HttpRequest, place: Place) -> HttpResponse:
    """The targets of a project, and the isolation that is reached here."""
    page = targets_page(place, request.GET, timezone.now())
    return render(request, "web/replay_targets.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.MANAGE_TARGETS)
def new_target(request: HttpRequest, place: Place) -> HttpResponse:
    """Say how an agent is run alone, with a key if it needs one."""
    try:
        kind = TargetKind(request.GET.get("kind", TargetKind.OPENAI.value))
    except ValueError:
        raise Http404 from None
    form = TargetForm(
        request.POST if request.method == "POST" else None,
        kind=kind,
        allowed=allowed_here(),
        agents=named_agents(place.project.pk),
        initial={"agent": request.GET.get("agent", "")[:20]},
        auto_id="f_%s",
    )
    if request.method == "POST" and (made := _made(place, form)):
        messages.success(request, "Saved. Nothing was called yet.")
        return redirect("replay-target", place.project.slug, made.pk)
    form.mark_errors()
    page = new_target_page(place, form)
    status = 400 if request.method == "POST" else 200
    return render(request, "web/replay_target_new.html", {"page": page}, status=status)


def _made(place: Place, form: TargetForm) -> Target | None:
    """Make the target; the form says why where it cannot be."""
    if not form.is_valid():
        return None
    data = form.cleaned_data
    if not data["agent"]:
        form.put_error(WrongTarget("Choose the agent that is run.", field="agent"))
        return None
    try:
        with transaction.atomic():
            new = operations.NewTarget(
                name=data["name"], kind=form.kind, settings=form.settings()
            )
            made = operations.add_target(
                agent=place.agent(int(data["agent"])),
                new=new,
                allowed=allowed_here(),
                user_id=place.user.pk,
                now=timezone.now(),
            )
            if data.get("key"):
                _set_key(place, made, data["key"])
    except CannotSeal as error:
        form.put_error(WrongTarget(str(error), field="key"))
        return None
    except WrongTarget as error:
        form.put_error(error)
        return None
    return made


def _set_key(place: Place, target: Target, text: str) -> None:
    set_secret(target=target, text=text, user_id=place.user.pk, now=timezone.now())


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.VIEW)
def target(request: HttpRequest, place: Place, target_id: int) -> HttpResponse:
    """One target; POST sets it to something else from now on."""
    found = place.target(target_id)
    current = operations.current_version(found.pk)
    form = TargetForm(
        request.POST if request.method == "POST" else None,
        kind=TargetKind(found.kind),
        allowed=allowed_here(),
        initial=target_initial(current.settings),
        auto_id="f_%s",
    )
    if request.method == "POST":
        check_allowed(place.role, Permission.MANAGE_TARGETS)
        if _changed(request, place, found, form):
            return redirect("replay-target", place.project.slug, found.pk)
    form.mark_errors()
    page = target_page(place, found, form, timezone.now())
    status = 400 if request.method == "POST" else 200
    return render(request, "web/replay_target.html", {"page": page}, status=status)


def _changed(
    request: HttpRequest, place: Place, found: Target, form: TargetForm
) -> bool:
    if not form.is_valid():
        return False
    try:
        said = _set_to(place, found, form.settings())
    except WrongTarget as error:
        form.put_error(error)
        return False
    messages.success(request, said)
    return True


def _set_to(place: Place, found: Target, settings: dict[str, Any]) -> str:
    """Set a target to something; what to say of it. Raises `WrongTarget`."""
    had_key = found.secrets.exclude(sealed=b"").exists()
    version = operations.change_target(
        target=found,
        settings=settings,
        allowed=allowed_here(),
        user_id=place.user.pk,
        now=timezone.now(),
    )
    said = f"Version {version.number} counts from now on."
    if had_key and not found.secrets.exclude(sealed=b"").exists():
        said += " The address changed, so the key was forgotten: set it again."
    return said


@require_POST
@in_project(Permission.MANAGE_TARGETS)
def use_again(request: HttpRequest, place: Place, target_id: int) -> HttpResponse:
    """Set a target to what an earlier version was set to, as a new version."""
    found = place.target(target_id)
    number = whole(request.POST.get("version", "")) or 0
    row = None
    if number < 2**31:
        row = TargetVersion.objects.filter(target=found, number=number).first()
    if row is None:
        sentence = "This target has no version of that number."
        return refusal(request, status=400, sentence=sentence)
    try:
        said = _set_to(place, found, row.settings)
    except WrongTarget as error:
        return refusal(request, status=409, sentence=str(error))
    messages.success(request, said)
    return redirect("replay-target", place.project.slug, target_id)


@require_POST
@in_project(Permission.MANAGE_TARGETS)
def rename(request: HttpRequest, place: Place, target_id: int) -> HttpResponse:
    """Give a target another name."""
    found = place.target(target_id)
    try:
        operations.rename_target(target=found, name=request.POST.get("name", ""))
    except WrongTarget as error:
        return refusal(request, status=409, sentence=str(error))
    messages.success(request, "Renamed.")
    return redirect("replay-target", place.project.slug, target_id)


@require_POST
@in_project(Permission.MANAGE_TARGETS)
def set_key(request: HttpRequest, place: Place, target_id: int) -> HttpResponse:
    """Keep a key for a target, or forget the one it has; it is never read out."""
    found = place.target(target_id)
    if request.POST.get("act") == "forget":
        was = forget_secret(target=found)
        messages.success(request, "Forgotten." if was else "It had no key.")
        return redirect("replay-target", place.project.slug, target_id)
    if found.is_retired or TargetKind(found.kind) not in WITH_KEY:
        sentence = "A target that is retired or recorded only takes no key."
        return refusal(request, status=409, sentence=sentence)
    try:
        _set_key(place, found, request.POST.get("key", ""))
    except CannotSeal as error:
        return refusal(request, status=400, sentence=str(error))
    messages.success(request, "The key is kept sealed. It is never shown again.")
    return redirect("replay-target", place.project.slug, target_id)


@require_POST
@in_project(Permission.MANAGE_TARGETS)
def retire(request: HttpRequest, place: Place, target_id: int) -> HttpResponse:
    """Put a target away with its key forgotten, or take it back."""
    found = place.target(target_id)
    is_retired = request.POST.get("act") != "restore"
    try:
        operations.retire_target(target=found, is_retired=is_retired)
    except WrongTarget as error:
        return refusal(request, status=409, sentence=str(error))
    messages.success(
        request,
        "Retired, and its key forgotten. What it ran stays; restore it to use it again."
        if is_retired
        else "It is used again. Its key has to be set anew.",
    )
    return redirect("replay-target", place.project.slug, target_id)
