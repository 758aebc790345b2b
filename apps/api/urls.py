"""URLs of the JSON door. The token says which project is meant.

The same addresses below `projects/<slug>/` are those of the first version; they go on
working and answer only the tokens of that project.
"""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.decorators import login_not_required
from django.http import HttpResponseBase
from django.urls import URLPattern, URLResolver, include, path, re_path

from apps.api import (
    definition_views,
    replay_batch_views,
    replay_views,
    stub_views,
    verdict_views,
    views,
)


def _door(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """A view that asks for a token instead of a session."""
    return login_not_required(view)


def _addresses(prefix: str) -> list[URLPattern]:
    """Every address of the door; a slash at its end may be left out."""
    return [
        re_path(
            r"^uploads/?$", _door(views.Uploads.as_view()), name=f"{prefix}-uploads"
        ),
        re_path(
            r"^uploads/(?P<upload_id>[0-9]{1,18})/?$",
            _door(views.OneUpload.as_view()),
            name=f"{prefix}-upload",
        ),
        re_path(
            r"^signals/?$", _door(views.Signals.as_view()), name=f"{prefix}-signals"
        ),
        re_path(r"^sets/?$", _door(views.TraceSets.as_view()), name=f"{prefix}-sets"),
        re_path(
            r"^comparison/?$",
            _door(views.Comparisons.as_view()),
            name=f"{prefix}-comparison",
        ),
        re_path(
            r"^reports/?$", _door(views.Reports.as_view()), name=f"{prefix}-reports"
        ),
        re_path(
            r"^reports/(?P<report_id>[0-9]{1,18})/?$",
            _door(views.OneReport.as_view()),
            name=f"{prefix}-report",
        ),
        *_scored(prefix),
        *_replays(prefix),
    ]


def _scored(prefix: str) -> list[URLPattern]:
    """The addresses of verdicts, agents, tasks and what is asked of them."""
    number = "[0-9]{1,18}"
    views_of = {
        ("verdicts", r"^verdicts/?$"): verdict_views.Verdicts,
        ("patterns", r"^patterns/?$"): verdict_views.Patterns,
        ("agents", r"^agents/?$"): verdict_views.Agents,
        ("agent", rf"^agents/(?P<agent_id>{number})/?$"): verdict_views.OneAgent,
        (
            "agent-definitions",
            rf"^agents/(?P<agent_id>{number})/definitions/?$",
        ): definition_views.AgentDefinitions,
        ("definitions", r"^definitions/?$"): definition_views.Definitions,
        ("tasks", r"^tasks/?$"): verdict_views.Tasks,
        ("task", rf"^tasks/(?P<task_id>{number})/?$"): verdict_views.OneTask,
        (
            "trace-agents",
            rf"^traces/(?P<trace_id>{number})/agents/?$",
        ): verdict_views.TraceAgents,
    }
    return [
        re_path(pattern, _door(view.as_view()), name=f"{prefix}-{name}")
        for (name, pattern), view in views_of.items()
    ]


def _replays(prefix: str) -> list[URLPattern]:
    """The addresses of targets, cases, batches and runs."""
    case, batch = "(?P<frozen_id>[0-9]{1,18})", "(?P<batch_id>[0-9]{1,18})"
    run, target = "(?P<run_id>[0-9]{1,18})", "(?P<target_id>[0-9]{1,18})"
    views_of = {
        ("targets", "targets"): replay_views.Targets,
        ("target", f"targets/{target}"): replay_views.OneTarget,
        ("cases", "cases"): replay_views.Cases,
        ("case-lines", "cases/lines"): replay_views.CaseLines,
        ("case-freeze", "cases/freeze"): replay_views.FrozenCases,
        ("case", f"cases/{case}"): replay_views.OneCase,
        ("estimate", "estimate"): replay_batch_views.Estimates,
        ("batches", "batches"): replay_batch_views.Batches,
        ("batch", f"batches/{batch}"): replay_batch_views.OneBatch,
        ("batch-cancel", f"batches/{batch}/cancel"): replay_batch_views.BatchCancel,
        ("batch-resume", f"batches/{batch}/resume"): replay_batch_views.BatchResume,
        ("batch-runs", f"batches/{batch}/runs"): replay_batch_views.BatchRuns,
        ("run", f"runs/{run}"): replay_batch_views.OneRun,
        ("recording", f"runs/{run}/recording"): replay_batch_views.Recording,
    }
    return [
        re_path(
            rf"^replays/{pattern}/?$",
            _door(view.as_view()),
            name=f"{prefix}-replay-{name}",
        )
        for (name, pattern), view in views_of.items()
    ]


urlpatterns: list[URLPattern | URLResolver] = [
    *_addresses("api"),
    path("projects/<slug:slug>/", include(_addresses("api-project"))),
]

stub_urls: list[URLPattern] = [
    re_path(
        r"^(?P<token>[A-Za-z0-9_-]{1,200})/tools/(?P<name>.+)\Z",
        stub_views.stub_tool,
        name="stub-tool",
    ),
    re_path(
        r"^(?P<token>[A-Za-z0-9_-]{1,200})/mcp/?\Z",
        stub_views.stub_mcp,
        name="stub-mcp",
    ),
]
"""Where agents find the stubs of their run: the token in the address opens them."""
