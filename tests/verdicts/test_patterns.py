"""Patterns are searched over stored scores once they are settled."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.agents.models import Agent
from apps.pipeline.patterns import search_project
from apps.verdicts.models import PatternSearch
from apps.verdicts.patterns import Target, search_is_due, units_of
from tests.desks import FAIL, PASS, desk_trace
from tests.factories import NOW, upload_traces
from tests.scored import scored

TASKS, TRIALS = 24, 4


def escalations():
    """Where confidence is 0.40 to 0.50 the trials of a ticket do not agree."""
    for number in range(TASKS):
        confidence = round(0.2 + 0.6 * number / TASKS, 3)
        doubtful = 0.4 <= confidence < 0.5
        for trial in range(TRIALS):
            route = ("person", "robot")[trial % 2] if doubtful else "robot"
            yield desk_trace(
                ("escalation", [("says", {"route": route})]),
                task=f"ticket {number}",
                trial=trial + 1,
                outcome=FAIL if route == "person" else PASS,
                asked={"confidence": confidence, "text": f"ticket number {number}"},
            )


@pytest.fixture
def settled(project):
    upload_traces(project, *escalations())
    return scored(project)


@pytest.mark.django_db
def test_a_rule_over_the_input_is_found_and_kept(settled):
    assert search_is_due(settled.pk, now=NOW)
    search_project(project_id=settled.pk, clock=lambda: NOW)
    found = PatternSearch.objects.get(target="unstable").found
    assert [one["words"] for one in found["findings"]] == [
        "input confidence is 0.4 to under 0.5"
    ]
    (rule,) = found["findings"]
    assert rule["tasks"] == 4
    assert rule["inside"] == {"hits": 16, "of": 16}
    assert len(rule["hit_ids"]) == 16
    assert not search_is_due(settled.pk, now=NOW + timedelta(hours=1))


@pytest.mark.django_db
def test_the_trials_of_one_agent_are_together_where_the_target_is_of_all_of_them(
    settled,
):
    agent = str(Agent.objects.get(project=settled).pk)
    units = list(units_of(settled.pk, Target.UNSTABLE))
    assert len(units) == TASKS * TRIALS
    assert {unit.together for unit in units} == {agent}
    assert {unit.together for unit in units_of(settled.pk, Target.FAILING)} == {""}


@pytest.mark.django_db
def test_units_say_which_way_a_trial_took_at_the_first_fork(settled):
    units = list(units_of(settled.pk, Target.FAILING))
    assert len(units) == TASKS * TRIALS
    ways = {unit.features["first fork"] for unit in units}
    assert "no fork" in ways
    assert len(ways) > 1


@pytest.mark.django_db
def test_a_project_without_scores_has_nothing_to_search(project):
    assert not search_is_due(project.pk, now=NOW)
    search_project(project_id=project.pk, clock=lambda: NOW)
    assert not PatternSearch.objects.exists()
