"""Verdicts, agents, tasks and patterns through the JSON door. Reading changes nothing."""

from __future__ import annotations

from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Coalesce
from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from apps.agents.models import Agent
from apps.agents.queries import current_definition, names_of
from apps.api.asking import PAGE_SIZE, following, is_yes, one_of, whole
from apps.api.task_documents import task_document, whole_task_document
from apps.api.verdict_documents import (
    agent_document,
    conducts_document,
    pattern_document,
    scores_document,
    verdicts_document,
    whole_agent_document,
)
from apps.api.views import ProjectView
from apps.engine.consistency import Stability
from apps.reports.agent_parts import colours_of
from apps.reports.standing import standing_part
from apps.scoring.models import AgentTaskScore, Conduct, TaskScore, TraceScore
from apps.traces.models import Task, Trace
from apps.verdicts.models import AgentVerdict
from apps.verdicts.patterns import pattern_searches
from apps.verdicts.progress import Progress
from apps.verdicts.queries import project_standing, ranked_agents

MOST_CONDUCTS = 5_000
"""So many decisions of agents are told of one task; the rest is counted."""
OUTCOMES = {"passed": "green", "failed": "red", "mixed": "mixed", "unknown": "unknown"}
STABILITIES = {one.value: one for one in Stability}
_UNSCORED = -1


class ScoredView(ProjectView):
    """A view that says how current the scores are that it rests on."""

    @property
    def scores(self) -> dict[str, Any]:
        """While `is_behind`, nothing of the answer is final."""
        return scores_document(standing_part(Progress(self.project.pk)))


class Verdicts(ScoredView):
    """What is said of the project: masking, outcomes, gaps, changes."""

    def get(self, request: Request, **_path: str) -> Response:  # noqa: ARG002
        """The whole of it, with how current it is."""
        found = project_standing(self.project.pk)
        document = verdicts_document(found, colours_of(self.project.pk))
        return Response({"scores": self.scores, **document})


class Agents(ScoredView):
    """The agents of the project, masked ones first, then the worst."""

    def get(self, request: Request, **_path: str) -> Response:
        """One page; `after` is the id to go on from."""
        edge = whole(request, "after")
        rows = list(_paged(ranked_agents(self.project.pk), edge)[: PAGE_SIZE + 1])
        shown = rows[:PAGE_SIZE]
        verdicts = AgentVerdict.objects.in_bulk([row.pk for row in shown])
        agents = [agent_document(row, verdicts.get(row.pk), request) for row in shown]
        after = following(request, "after", rows, shown)
        return Response({"scores": self.scores, "agents": agents, "next": after})


def _paged(rows: QuerySet[Any], edge: int | None) -> QuerySet[Any]:
    """The rows by `place`, the largest first, after the one whose id is `edge`."""
    if edge is not None:
        last = rows.filter(pk=edge).first()
        if last is None:
            raise Http404
        beyond = Q(place__lt=last.place) | Q(place=last.place, pk__gt=edge)
        rows = rows.filter(beyond)
    return rows.order_by("-place", "pk")


class OneAgent(ScoredView):
    """One agent of the project."""

    def get(self, request: Request, agent_id: str, **_path: str) -> Response:
        """Its verdict with reasons and gaps, contracts, names, tools and models."""
        agent = agent_of(self.project.pk, agent_id)
        scores = self.scores
        document = whole_agent_document(
            agent,
            AgentVerdict.objects.filter(pk=agent.pk).first(),
            current_definition(agent),
            request,
            is_behind=scores["is_behind"],
        )
        names = [name.key for name in names_of(agent)]
        return Response({"scores": scores, **document, "names": names})


def agent_of(project_id: int, agent_id: str) -> Agent:
    """The agent of the project with this id; raises `Http404`."""
    agent = Agent.objects.filter(project_id=project_id, pk=int(agent_id)).first()
    if agent is None:
        raise Http404
    return agent


class Tasks(ScoredView):
    """The tasks of the project that have trials: masked, mixed and unstable ones first."""

    def get(self, request: Request, **_path: str) -> Response:
        """One page; `outcome`, `stability` and `masked` narrow it, `after` goes on."""
        rows = _paged(self._tasks(request), whole(request, "after"))
        light = rows.select_related("taskscore").defer("taskscore__detail")
        found = list(light[: PAGE_SIZE + 1])
        shown = found[:PAGE_SIZE]
        tasks = [
            task_document(row, getattr(row, "taskscore", None), request)
            for row in shown
        ]
        after = following(request, "after", found, shown)
        return Response({"scores": self.scores, "tasks": tasks, "next": after})

    def _tasks(self, request: Request) -> QuerySet[Any]:
        trials = Trace.objects.filter(task=OuterRef("pk"))
        rows = Task.objects.filter(Exists(trials), project=self.project)
        if outcome := one_of(request, "outcome", OUTCOMES):
            rows = rows.filter(taskscore__outcome=OUTCOMES[outcome])
        if stability := one_of(request, "stability", STABILITIES):
            rows = rows.filter(taskscore__consistency=stability)
        if is_yes(request, "masked"):
            rows = rows.filter(taskscore__masked__gt=0)
        return rows.annotate(place=Coalesce(F("taskscore__rank"), Value(_UNSCORED)))


class OneTask(ScoredView):
    """One task of the project."""

    def get(self, request: Request, task_id: str, **_path: str) -> Response:
        """Its trials, how far each agent agrees, and where the trials fork."""
        task = Task.everything.filter(project=self.project, pk=int(task_id)).first()
        if task is None:
            raise Http404
        agents = AgentTaskScore.objects.filter(task=task).select_related("agent")
        conducts = Conduct.objects.filter(trace__task=task)
        document = whole_task_document(
            task,
            TaskScore.objects.filter(pk=task.pk).first(),
            list(agents.order_by("agent__name", "agent_id")),
            list(conducts.order_by("trace__trial", "trace_id")[:MOST_CONDUCTS]),
            request,
        )
        left_out = max(0, conducts.count() - MOST_CONDUCTS)
        document["decisions_left_out"] = left_out
        return Response({"scores": self.scores, **document})


class Patterns(ScoredView):
    """What the last searches for patterns found."""

    def get(self, request: Request, **_path: str) -> Response:  # noqa: ARG002
        """One answer for each question that was searched."""
        rows = pattern_searches(self.project.pk)
        found = [pattern_document(rows[target]) for target in sorted(rows)]
        return Response({"scores": self.scores, "patterns": found})


class TraceAgents(ScoredView):
    """What each agent did in one trace."""

    def get(self, request: Request, trace_id: str, **_path: str) -> Response:  # noqa: ARG002
        """The agents that act in it with what they decided and what contracts say."""
        trace = Trace.everything.filter(project=self.project, pk=int(trace_id)).first()
        if trace is None:
            raise Http404
        conducts = Conduct.objects.filter(trace=trace).select_related("agent")
        document = conducts_document(
            trace,
            TraceScore.objects.filter(pk=trace.pk).first(),
            list(conducts.order_by("agent__name", "agent_id")),
        )
        return Response({"scores": self.scores, **document})
