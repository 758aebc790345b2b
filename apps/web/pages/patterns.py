"""What the page of patterns needs: for each question the rules that beat chance."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from apps.agents.models import Agent
from apps.traces.models import Trace
from apps.verdicts.patterns import (
    MOST_UNITS,
    Target,
    pattern_searches,
    search_is_due,
)
from apps.web.access import Place
from apps.web.pages.scoring_state import ScoringState, scoring_state

MOST_RUNS: Final = 60
_TITLES: Final = {
    Target.UNSTABLE: "Unstable runs",
    Target.FAILING: "Failing runs",
    Target.SIGNALLED: "Runs with a signal",
}
_ASKED: Final = {
    Target.UNSTABLE: "A run is what one agent did in one trial; it counts as unstable "
    "where the trials of its task do not agree.",
    Target.FAILING: "A run is a trace; it counts as failing where its outcome is red. "
    "Traces of unknown outcome are left out.",
    Target.SIGNALLED: "A run is a trace; it counts where a check gave a signal that "
    "wants a look.",
}


class Run(msgspec.Struct, frozen=True):
    """One run that meets a rule; `has_target` is whether it is what was asked about."""

    trace: Trace
    agent: str
    has_target: bool


class Rule(msgspec.Struct, frozen=True):
    """One rule with the sentence of its finding, its runs and the rules beside it.

    `more` runs are not listed.
    """

    found: dict[str, Any]
    runs: list[Run]
    more: int


class Question(msgspec.Struct, frozen=True):
    """One target: what was found about it, `None` where nothing was searched yet."""

    target: str
    title: str
    asked: str
    found: dict[str, Any] | None
    rules: list[Rule]
    made_at: datetime | None
    is_bounded: bool


class PatternsPage(msgspec.Struct, frozen=True):
    """All questions of a project; `is_due` says that a search is on its way."""

    place: Place
    questions: list[Question]
    scoring: ScoringState
    is_due: bool
    most_units: int = MOST_UNITS


def patterns_page(place: Place, now: datetime) -> PatternsPage:
    """The patterns of the place's project: a fixed number of queries."""
    searches = pattern_searches(place.project.pk)
    named = [
        one
        for row in searches.values()
        for rule in row.found["findings"]
        for one in rule["unit_ids"][:MOST_RUNS]
    ]
    traces = Trace.objects.filter(project=place.project).in_bulk(
        {int(one.partition("/")[0]) for one in named}
    )
    agents = {
        str(agent.pk): str(agent)
        for agent in Agent.objects.filter(project=place.project)
    }
    questions = []
    for target in Target:
        row = searches.get(target.value)
        found = None if row is None else row.found
        questions.append(
            Question(
                target=target.value,
                title=_TITLES[target],
                asked=_ASKED[target],
                found=found,
                rules=[
                    _rule(rule, traces, agents)
                    for rule in (() if found is None else found["findings"])
                ],
                made_at=None if row is None else row.made_at,
                is_bounded=found is not None and found["overall"]["of"] >= MOST_UNITS,
            )
        )
    return PatternsPage(
        place=place,
        questions=questions,
        scoring=scoring_state(place.project.pk),
        is_due=search_is_due(place.project.pk, now=now),
    )


def _rule(
    found: dict[str, Any], traces: dict[int, Trace], agents: dict[str, str]
) -> Rule:
    hits = set(found["hit_ids"])
    runs = []
    for one in found["unit_ids"][:MOST_RUNS]:
        trace_id, _, agent = one.partition("/")
        # A trace may have been removed since the search.
        if trace := traces.get(int(trace_id)):
            runs.append(Run(trace, agents.get(agent, ""), one in hits))
    return Rule(found=found, runs=runs, more=found["inside"]["of"] - len(runs))
