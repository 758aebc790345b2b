"""Projects: the list, a new one, and the overview of one."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from apps.accounts.operations import create_project
from apps.accounts.permissions import Permission
from apps.accounts.queries import projects_of
from apps.web.access import Place, in_project, signed_in
from apps.web.forms import ProjectForm
from apps.web.pages.overview import overview_page
from apps.web.pages.scoring_state import scoring_state as state_of_scoring


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The only project of the user, or the list of projects."""
    mine = list(projects_of(signed_in(request))[:2])
    if len(mine) == 1:
        return redirect("overview", mine[0].project.slug)
    return redirect("projects")


@require_http_methods(["GET", "POST"])
def projects(request: HttpRequest) -> HttpResponse:
    """The user's projects; POST makes a new one whose owner is the user."""
    user = signed_in(request)
    form = ProjectForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        project = create_project(owner=user, now=timezone.now(), **form.cleaned_data)
        messages.success(request, f"“{project.name}” is ready for its first upload.")
        return redirect("uploads", project.slug)
    context = {"memberships": projects_of(user), "form": form}
    status = 422 if request.method == "POST" else 200
    return render(request, "web/projects.html", context, status=status)


@require_safe
@in_project(Permission.VIEW)
def overview(request: HttpRequest, place: Place) -> HttpResponse:
    """The signals, what could not be checked, what was uploaded last."""
    return render(request, "web/overview.html", {"page": overview_page(place)})


@require_safe
@in_project(Permission.VIEW)
def scoring_state(request: HttpRequest, place: Place) -> HttpResponse:
    """The line that says how far scoring is, for pages that showed that something waits."""
    state = state_of_scoring(place.project.pk, was_behind=True)
    return render(request, "web/_scoring.html", {"scoring": state, "place": place})
