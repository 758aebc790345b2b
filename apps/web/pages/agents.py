"""What the list of agents needs: each with its verdict, masked ones first, and the gaps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from django.db.models import Q, QuerySet
from django.db.models.functions import Lower

from apps.accounts.permissions import Permission
from apps.agents.models import Agent
from apps.agents.queries import outcome_definition
from apps.engine.bodies.effects import Effect, effect_of
from apps.verdicts.models import AgentVerdict, ProjectVerdict
from apps.verdicts.queries import ranked_agents
from apps.web.access import Place
from apps.web.numbers import whole
from apps.web.pages.scoring_state import ScoringState, scoring_state

ON_A_PAGE: Final = 50
MOST_GAPS: Final = 100
NOT_SETTLED: Final = "No verdict yet: no trace that names it has been scored."


class AgentRow(msgspec.Struct, frozen=True):
    """One agent of the list with what its verdict rests on."""

    agent: Agent
    verdict: AgentVerdict | None

    @property
    def colour(self) -> str:
        """The colour of its verdict, unknown where there is none."""
        return "unknown" if self.verdict is None else self.verdict.colour

    @property
    def reason(self) -> str:
        """The first reason of its verdict."""
        if self.verdict is None:
            return NOT_SETTLED
        reasons = self.verdict.detail.get("reasons", [])
        return str(reasons[0]["sentence"]) if reasons else ""

    @property
    def is_masked(self) -> bool:
        """Whether it is red or unstable behind an outcome that passed."""
        return self.verdict is not None and self.verdict.is_masked

    @property
    def evidence(self) -> Mapping[str, int]:
        """The counts that the verdict rests on."""
        return {} if self.verdict is None else self.verdict.evidence

    @property
    def tasks(self) -> int:
        """How many tasks exercise it."""
        return self.evidence.get("tasks", 0)

    @property
    def stable(self) -> int:
        """In how many tasks it decides the same every time."""
        return self.evidence.get("stable", 0)

    @property
    def unstable(self) -> int:
        """In how many tasks it does not."""
        found = self.evidence
        return found.get("drifting", 0) + found.get("non_deterministic", 0)

    @property
    def held(self) -> int:
        """How many applications of its contracts held."""
        return self.evidence.get("held", 0)

    @property
    def applied(self) -> int:
        """How many applications of its contracts were not ruled out."""
        found = self.evidence
        return sum(found.get(name, 0) for name in ("held", "broken", "undecided"))

    @property
    def is_undecided(self) -> bool:
        """Whether its contracts applied and none of that could be decided."""
        return 0 < self.applied == self.evidence.get("undecided", 0)

    @property
    def contracts(self) -> int:
        """How many contracts it has."""
        return self.evidence.get("contracts", 0)

    @property
    def alone(self) -> Mapping[str, int]:
        """The counts of its newest replays."""
        found: Any = self.evidence.get("alone", {})
        return found if isinstance(found, dict) else {}

    @property
    def invocations(self) -> int:
        """How often it ran."""
        return self.evidence.get("invocations", 0)

    @property
    def failed(self) -> int:
        """How many of its runs ended in an error."""
        return self.evidence.get("failed", 0)

    @property
    def writing(self) -> list[str]:
        """The tools it called that change something."""
        return [
            tool["name"]
            for tool in tools_of(self.agent, self.verdict)
            if tool["effect"] == Effect.WRITES.value
        ]

    @property
    def models(self) -> list[str]:
        """The models that it asked."""
        detail = {} if self.verdict is None else self.verdict.detail
        return [str(one["name"]) for one in detail.get("models", [])]


class AgentsPage(msgspec.Struct, frozen=True):
    """One page of the agents of a project, and what of them is not covered."""

    place: Place
    rows: list[AgentRow]
    count: int
    headline: str
    idle: list[AgentRow]
    idle_count: int
    bare: list[AgentRow]
    bare_count: int
    has_expectations: bool
    refusal: str
    scoring: ScoringState
    next_url: str
    first_url: str


def tools_of(agent: Agent, verdict: AgentVerdict | None) -> list[dict[str, Any]]:
    """The tools that an agent called, with what they do as far as is known now."""
    detail = {} if verdict is None else verdict.detail
    writing = frozenset(agent.writing_tools)
    return [
        {**tool, "effect": effect_of(str(tool["name"]), writing).value}
        for tool in detail.get("tools", [])
    ]


def agents_page(place: Place, query: Mapping[str, str]) -> AgentsPage:
    """The agents of a project: masked first, then by colour. A fixed number of queries."""
    start = whole(query.get("from", "")) or 0
    rows = agents_of(place.project.pk)
    count = rows.count()
    found = [_row(agent) for agent in rows[start : start + ON_A_PAGE + 1]]
    idle = rows.filter(_IS_IDLE)
    bare = rows.exclude(_IS_IDLE).filter(agentverdict__evidence__contracts=0)
    verdict = ProjectVerdict.objects.filter(project=place.project).first()
    report = {} if verdict is None else verdict.detail.get("report", {})
    outcome = outcome_definition(place.project.pk)
    return AgentsPage(
        place=place,
        rows=found[:ON_A_PAGE],
        count=count,
        headline=report.get("headline", ""),
        idle=[_row(agent) for agent in idle[:MOST_GAPS]],
        idle_count=idle.count(),
        bare=[_row(agent) for agent in bare[:MOST_GAPS]],
        bare_count=bare.count(),
        has_expectations=outcome is not None and bool(outcome.expectations),
        refusal=place.refusal(Permission.MANAGE_AGENTS),
        scoring=scoring_state(place.project.pk),
        next_url=f"?from={start + ON_A_PAGE}" if len(found) > ON_A_PAGE else "",
        first_url="?" if start else "",
    )


_IS_IDLE: Final = Q(agentverdict__isnull=True) | Q(agentverdict__traces=0)


def agents_of(project_id: int) -> QuerySet[Agent]:
    """The agents that a name stands for with their verdicts, masked first."""
    rows = ranked_agents(project_id).select_related("agentverdict")
    return rows.order_by("-place", Lower("name"), "pk")


def _row(agent: Agent) -> AgentRow:
    return AgentRow(agent=agent, verdict=getattr(agent, "agentverdict", None))
