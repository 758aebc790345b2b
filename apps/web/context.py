"""What every page needs: the project's navigation with its counts, and the theme."""

from __future__ import annotations

from typing import Any

import msgspec
from django.http import HttpRequest
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.accounts.queries import membership, projects_of
from apps.review.queries import open_count
from apps.web.access import Place


class NavItem(msgspec.Struct, frozen=True):
    """One link of the side navigation; `number` is a count or None."""

    name: str
    label: str
    url: str
    icon: str
    number: int | None
    is_current: bool


class Navigation(msgspec.Struct, frozen=True):
    """The side navigation of one project, and the projects to switch to."""

    project: Project
    role: str
    items: list[NavItem]
    others: list[Project]


_ITEMS = (
    ("overview", "Overview", "layout-dashboard", ("overview",)),
    ("queue", "Review queue", "inbox", ("queue", "signal", "blind")),
    (
        "project-checks",
        "Checks",
        "list-checks",
        (
            "project-checks",
            "project-check",
            "calibrations",
            "calibration",
            "shadows",
            "shadow",
            "regression",
        ),
    ),
    ("traces", "Traces", "route", ("traces", "trace")),
    ("tasks", "Tasks", "database", ("tasks", "task", "task-forks")),
    (
        "agents",
        "Agents",
        "bot",
        (
            "agents",
            "agent",
            "agent-contract-new",
            "agent-contract",
            "agent-decision",
            "agent-outcomes",
            "agent-outcomes-decision",
            "agent-file",
        ),
    ),
    (
        "replays",
        "Replays",
        "refresh-cw",
        (
            "replays",
            "replay-batch",
            "replay-batch-resume",
            "replay-group",
            "replay-run",
            "replay-targets",
            "replay-target",
            "replay-target-new",
            "replay-cases",
            "replay-case",
            "replay-case-new",
            "replay-cases-file",
            "replay-plan",
            "replay-memory",
        ),
    ),
    ("patterns", "Patterns", "search", ("patterns",)),
    (
        "compare",
        "Compare",
        "arrow-right-left",
        ("compare", "sets", "set-new", "trace-set", "set-delete"),
    ),
    (
        "contracts",
        "Contracts",
        "shield",
        ("contracts", "contract", "contract-new", "contract-edit"),
    ),
    ("uploads", "Uploads", "upload", ("uploads", "upload")),
    ("reports", "Reports", "file-text", ("reports", "report")),
    ("project-settings", "Settings", "settings", ("project-settings",)),
)


def _place_of(request: HttpRequest) -> Place | None:
    """The page's own project, else the one that was visited last in this session."""
    place = getattr(request, "place", None)
    if isinstance(place, Place):
        return place
    user = getattr(request, "user", None)
    slug = request.session.get("project") if isinstance(user, User) else None
    found = membership(user=user, slug=slug) if slug and user else None
    if found is None or not isinstance(user, User):
        return None
    return Place(project=found.project, user=user, role=found.role)


def navigation(request: HttpRequest) -> dict[str, Any]:
    """Context of every page: `nav` inside a project, None elsewhere."""
    place = _place_of(request)
    if place is None:
        return {"nav": None}
    match = request.resolver_match
    current = match.url_name if match else ""
    open_number = open_count(project=place.project)
    return {
        "nav": Navigation(
            project=place.project,
            role=place.role,
            items=[
                NavItem(
                    name=name,
                    label=label,
                    url=reverse(name, args=[place.project.slug]),
                    icon=icon,
                    number=open_number if name == "queue" else None,
                    is_current=current in names,
                )
                for name, label, icon, names in _ITEMS
            ],
            others=[
                m.project
                for m in projects_of(place.user)
                if m.project_id != place.project.pk
            ],
        )
    }
