"""Settings of a project: its members, its privacy and its API tokens."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.operations import add_member as admit
from apps.accounts.operations import create_token as new_token
from apps.accounts.operations import renew_sign_in_link, set_privacy, set_role
from apps.accounts.operations import revoke_token as end_token
from apps.accounts.permissions import NotAllowed, Permission, Role, Scope
from apps.accounts.queries import link_refusals, members_of, tokens_of
from apps.review.blind_sample import undecided_count
from apps.web.access import Place, in_project
from apps.web.forms import (
    MemberForm,
    PrivacyForm,
    RoleForm,
    TokenForm,
    first_error,
)
from apps.web.pages.privacy import privacy_section
from apps.web.views.errors import refusal


def _page(
    request: HttpRequest, place: Place, *, status: int = 200, **extra: object
) -> HttpResponse:
    members = list(members_of(place.project))
    no_link = link_refusals(users=[m.user for m in members], asked_by=place.user)
    context = {
        "place": place,
        "members": [(member, no_link[member.user_id]) for member in members],
        "tokens": tokens_of(place.project),
        "roles": Role.choices,
        "scopes": Scope.choices,
        "privacy": privacy_section(place),
        "checks_refusal": place.refusal(Permission.MANAGE_CHECKS),
        "blind_waiting": undecided_count(project=place.project),
        "members_refusal": place.refusal(Permission.MANAGE_MEMBERS),
        "tokens_refusal": place.refusal(Permission.MANAGE_TOKENS),
        **extra,
    }
    return render(request, "web/project_settings.html", context, status=status)


@require_safe
@in_project(Permission.VIEW)
def project_settings(request: HttpRequest, place: Place) -> HttpResponse:
    """Members, what is kept of traces, and tokens."""
    return _page(request, place)


@require_POST
@in_project(Permission.MANAGE_PRIVACY)
def change_privacy(request: HttpRequest, place: Place) -> HttpResponse:
    """Choose what is kept of traces from now on; 422 with a sentence if refused."""
    form = PrivacyForm(request.POST)
    if not form.is_valid():
        return _page(request, place, status=422, privacy_error=first_error(form))
    try:
        is_new = set_privacy(
            project=place.project,
            choice=form.choice(),
            user=place.user,
            now=timezone.now(),
        )
    except NotAllowed as error:
        return _page(request, place, status=422, privacy_error=str(error))
    if is_new:
        messages.success(request, "From now on traces are kept as you chose.")
    return redirect("project-settings", place.project.slug)


@require_POST
@in_project(Permission.MANAGE_MEMBERS)
def add_member(request: HttpRequest, place: Place) -> HttpResponse:
    """Add a member; a user who is new gets a one-time sign-in link, shown once."""
    form = MemberForm(request.POST)
    if not form.is_valid():
        return _page(request, place, status=422, member_error=first_error(form))
    user, secret = admit(
        project=place.project,
        username=form.cleaned_data["username"],
        role=Role(form.cleaned_data["role"]),
        now=timezone.now(),
    )
    link = _link_of(request, secret) if secret else ""
    return _page(request, place, new_link=link, new_member=user)


def _link_of(request: HttpRequest, secret: str) -> str:
    return request.build_absolute_uri(reverse("sign-in-link", args=[secret]))


@require_POST
@in_project(Permission.MANAGE_MEMBERS)
def member_link(request: HttpRequest, place: Place, user_id: int) -> HttpResponse:
    """Make a member's sign-in link anew, shown once; 422 with a sentence if refused."""
    user = place.member(user_id)
    try:
        secret = renew_sign_in_link(user=user, asked_by=place.user, now=timezone.now())
    except NotAllowed as error:
        return _page(request, place, status=422, link_error=str(error))
    return _page(
        request, place, renewed_link=_link_of(request, secret), renewed_member=user
    )


@require_POST
@in_project(Permission.MANAGE_MEMBERS)
def change_member(request: HttpRequest, place: Place, user_id: int) -> HttpResponse:
    """Change a member's role, or remove the member."""
    form = RoleForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    role = form.cleaned_data["role"]
    user = place.member(user_id)
    set_role(
        project=place.project,
        user=user,
        role=Role(role) if role else None,
        now=timezone.now(),
    )
    messages.success(
        request,
        f"{user.label} is {Role(role).label.lower()} now."
        if role
        else f"{user.label} is no longer a member.",
    )
    if user.pk == place.user.pk and not role:
        return redirect("projects")
    return redirect("project-settings", place.project.slug)


@require_POST
@in_project(Permission.MANAGE_TOKENS)
def create_token(request: HttpRequest, place: Place) -> HttpResponse:
    """Create an API token; its secret is shown once."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, place, status=422, token_error=first_error(form))
    token, secret = new_token(
        project=place.project,
        name=form.cleaned_data["name"],
        scopes=[Scope(value) for value in form.cleaned_data["scopes"]],
        user=place.user,
        now=timezone.now(),
    )
    return _page(request, place, new_token=token, new_secret=secret)


@require_POST
@in_project(Permission.MANAGE_TOKENS)
def revoke_token(request: HttpRequest, place: Place, token_id: int) -> HttpResponse:
    """End an API token at once."""
    token = place.token(token_id)
    end_token(token=token, now=timezone.now())
    messages.success(request, f"“{token.name}” works no more.")
    return redirect("project-settings", place.project.slug)
