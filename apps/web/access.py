"""The only way from a URL to something of a project.

A view of a project gets a `Place`, and everything it loads it loads through that
place's project, so what belongs to another project answers 404 like what never was.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase

from apps.accounts.models import ApiToken, Project, User
from apps.accounts.permissions import (
    NotAllowed,
    Permission,
    allows,
    check_allowed,
    refusal,
)
from apps.accounts.queries import membership
from apps.agents.models import Agent
from apps.replays.batch_queries import GroupRow, batch_of, group_of, run_of
from apps.replays.models import Batch, ReplayCase, Run, Target
from apps.reports.models import Report
from apps.review import blind
from apps.review import queries as review
from apps.review.models import BlindLook, Signal
from apps.scoring.queries import is_noted
from apps.screening.lineup import LineUp, lineup_of
from apps.screening.models import RegressionCase
from apps.screening.regression import cases_of
from apps.traces.models import Task, Trace, TraceSet, Upload

P = ParamSpec("P")
T = TypeVar("T")


class Place:
    """A project as one member sees it: the project, the member, the role."""

    def __init__(self, *, project: Project, user: User, role: str) -> None:
        self.project = project
        self.user = user
        self.role = role

    def can(self, permission: Permission) -> bool:
        """Whether the member's role is enough for an act."""
        return allows(self.role, permission)

    def refusal(self, permission: Permission) -> str:
        """Why the act is not allowed, as a sentence; empty when it is."""
        return refusal(self.role, permission)

    @cached_property
    def lineup(self) -> LineUp:
        """Which checks count in this project, read once a request."""
        return lineup_of(self.project.pk)

    def upload(self, upload_id: int) -> Upload:
        """An upload of this project, or 404."""
        return _or_404(
            Upload.objects.filter(project=self.project, pk=upload_id)
            .select_related("created_by")
            .first()
        )

    def trace(self, trace_id: int) -> Trace:
        """A trace of this project, recorded or of a replay, or 404."""
        return _or_404(
            Trace.everything.filter(project=self.project, pk=trace_id)
            .select_related("upload", "task", "project__projectverdict")
            .annotate(is_noted=is_noted())
            .first()
        )

    def recorded_trace(self, trace_id: int) -> Trace:
        """A trace of this project that people may place and note on, or 404."""
        rows = Trace.objects.filter(project=self.project, pk=trace_id)
        return _or_404(rows.select_related("task").first())

    def task(self, task_id: int) -> Task:
        """A task of this project, of recorded traces or of replays, or 404."""
        rows = Task.everything.filter(project=self.project, pk=task_id)
        return _or_404(rows.first())

    def recorded_task(self, task_id: int) -> Task:
        """A task of this project that people may change, or 404."""
        return _or_404(Task.objects.filter(project=self.project, pk=task_id).first())

    def batch(self, batch_id: int) -> Batch:
        """A batch of replays of this project, or 404."""
        return _or_404(batch_of(self.project.pk, batch_id))

    def group(self, batch: Batch, number: int) -> GroupRow:
        """A group of a batch, or 404."""
        return _or_404(group_of(batch, number))

    def run(self, run_id: int) -> Run:
        """A run of a batch of this project, or 404."""
        return _or_404(run_of(self.project.pk, run_id))

    def agent(self, agent_id: int) -> Agent:
        """An agent of this project, or 404."""
        return _or_404(Agent.objects.filter(project=self.project, pk=agent_id).first())

    def target(self, target_id: int) -> Target:
        """A target of this project, or 404."""
        return _or_404(
            Target.objects.filter(project=self.project, pk=target_id)
            .select_related("agent")
            .first()
        )

    def replay_case(self, frozen_id: int) -> ReplayCase:
        """A frozen input of this project, or 404."""
        return _or_404(
            ReplayCase.objects.filter(project=self.project, pk=frozen_id)
            .select_related("agent", "trace__task", "created_by")
            .first()
        )

    def trace_set(self, slug: str) -> TraceSet:
        """A trace set of this project, or 404."""
        return _or_404(
            TraceSet.objects.filter(project=self.project, slug=slug)
            .select_related("created_by")
            .first()
        )

    def signal(self, signal_id: int) -> Signal:
        """A signal of this project, or 404."""
        try:
            return review.signal_of(project=self.project, signal_id=signal_id)
        except Signal.DoesNotExist:
            raise Http404 from None

    def look(self, look_id: int) -> BlindLook:
        """A blind look of this project, or 404."""
        try:
            return blind.look_of(project=self.project, look_id=look_id)
        except BlindLook.DoesNotExist:
            raise Http404 from None

    def report(self, report_id: int) -> Report:
        """A report of this project, or 404."""
        return _or_404(
            Report.objects.filter(project=self.project, pk=report_id)
            .select_related("created_by")
            .first()
        )

    def case(self, case_id: int) -> RegressionCase:
        """A regression case of this project, or 404."""
        return _or_404(cases_of(self.project.pk).filter(pk=case_id).first())

    def token(self, token_id: int) -> ApiToken:
        """An API token of this project, or 404."""
        return _or_404(
            ApiToken.objects.filter(project=self.project, pk=token_id).first()
        )

    def member(self, user_id: int) -> User:
        """A member of this project, or 404."""
        return _or_404(
            User.objects.filter(pk=user_id, membership__project=self.project).first()
        )


def _or_404(thing: T | None) -> T:
    if thing is None:
        raise Http404
    return thing


def signed_in(request: HttpRequest) -> User:
    """The user of a request that the sign-in middleware let through."""
    if not isinstance(request.user, User):
        raise PermissionDenied("Sign in first.")
    return request.user


def in_project(
    permission: Permission,
) -> Callable[
    [Callable[Concatenate[HttpRequest, Place, P], HttpResponseBase]],
    Callable[Concatenate[HttpRequest, str, P], HttpResponseBase],
]:
    """Give the view a `Place`: 404 for strangers, 403 with a sentence below the role."""

    def decorate(
        view: Callable[Concatenate[HttpRequest, Place, P], HttpResponseBase],
    ) -> Callable[Concatenate[HttpRequest, str, P], HttpResponseBase]:
        @wraps(view)
        def wrapped(
            request: HttpRequest, slug: str, *args: P.args, **kwargs: P.kwargs
        ) -> HttpResponseBase:
            user = signed_in(request)
            found = membership(user=user, slug=slug)
            if found is None:
                raise Http404
            try:
                check_allowed(found.role, permission)
            except NotAllowed as error:
                raise PermissionDenied(str(error)) from error
            place = Place(project=found.project, user=user, role=found.role)
            request.place = place  # type: ignore[attr-defined]
            if request.session.get("project") != found.project.slug:
                request.session["project"] = found.project.slug
            return view(request, place, *args, **kwargs)

        return cast(
            "Callable[Concatenate[HttpRequest, str, P], HttpResponseBase]", wrapped
        )

    return decorate
