"""Definitions of agents as a file: taking them away, and taking a file."""

from __future__ import annotations

import msgspec
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from apps.accounts.permissions import Permission, check_allowed
from apps.agents.exchange import yaml_of
from apps.agents.operations import WrongAgent
from apps.engine.agent_contracts import BadContractsFile
from apps.pipeline.definitions import take_definitions
from apps.traces.storage import HashedUpload
from apps.web.access import Place, in_project
from apps.web.agent_decision_forms import FileForm
from apps.web.pages.agent_file import FilePage, file_page, planned_page, read_file

MOST_BYTES = 1_048_576


@require_safe
@in_project(Permission.VIEW)
def as_yaml(request: HttpRequest, place: Place) -> HttpResponse:  # noqa: ARG001
    """Everything that is asked of the agents of a project, as a file."""
    text, _ = yaml_of(place.project.pk)
    name = f"{place.project.slug}-agents.yaml"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(
        text, content_type="application/yaml; charset=utf-8", headers=headers
    )


@require_http_methods(["GET", "HEAD", "POST"])
@in_project(Permission.VIEW)
def definitions_file(request: HttpRequest, place: Place) -> HttpResponse:
    """What leaves as a file; POST shows what a file would change, or takes it."""
    if request.method != "POST":
        return render(request, "web/agent_file.html", {"page": file_page(place)})
    check_allowed(place.role, Permission.MANAGE_AGENTS)
    form = FileForm(request.POST)
    text = _sent_text(request, form)
    if request.POST.get("act") == "take" and form.is_valid():
        problem = _taken(request, place, text, form.cleaned_data["seen"])
        if not problem:
            return redirect("agents", place.project.slug)
        page = planned_page(place, text)
        problems = [*problem, *(one for one in page.problems if one not in problem)]
        return _shown(request, msgspec.structs.replace(page, problems=problems))
    return _shown(request, planned_page(place, text))


def _shown(request: HttpRequest, page: FilePage) -> HttpResponse:
    status = 400 if page.problems else 200
    return render(request, "web/agent_file.html", {"page": page}, status=status)


def _sent_text(request: HttpRequest, form: FileForm) -> str:
    """The file that was chosen, else the text that was pasted; "" for neither."""
    sent = request.FILES.get("file")
    if isinstance(sent, HashedUpload):
        with sent.received.open() as stream:
            # What is no UTF-8 is told by its line, like what is no YAML.
            return stream.read(MOST_BYTES).decode("utf-8-sig", "replace")
    text = form.cleaned_data.get("text", "") if form.is_valid() else ""
    return str(text).replace("\r\n", "\n")


def _taken(request: HttpRequest, place: Place, text: str, seen: str) -> list[str]:
    """What stands in the way of taking a file; nothing where it was taken."""
    found, problems = read_file(text)
    if found is None:
        return problems
    try:
        plan = take_definitions(
            project_id=place.project.pk,
            found=found,
            seen=seen,
            user_id=place.user.pk,
            now=timezone.now(),
        )
    except BadContractsFile as error:
        return list(error.problems)
    except WrongAgent as error:
        return [str(error)]
    changed = sum(one.before != one.after for one in plan.agents)
    agents = "1 agent" if changed == 1 else f"{changed} agents"
    messages.success(request, f"Taken: {agents} changed. Traces are scored again.")
    return []
