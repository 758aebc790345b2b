"""What is asked of agents is written down as versions that tell what they changed."""

from __future__ import annotations

import pytest

from apps.agents.changes import Changes, changes_between
from apps.agents.models import Agent, AgentDefinition, AgentName
from apps.agents.operations import (
    MOST_CONTRACTS,
    Asked,
    AskedMeanwhile,
    WrongAgent,
    add_agent,
    define_agent,
    define_outcome,
    find_agents,
    merge_agents,
    split_name,
)
from apps.agents.queries import (
    called_apart,
    current_definition,
    name_changes,
    named_agents,
    outcome_history,
)
from tests.agents.making import KNOWS_27, make_agent
from tests.factories import NOW

A = {"name": "a", "kind": "regex", "pattern": "1"}
B = {"name": "b", "kind": "regex", "pattern": "2"}


class TestChanges:
    @pytest.mark.parametrize(
        ("before", "after", "said"),
        [
            ([A], [A], []),
            ([], [A], ["added “a”"]),
            ([A], [B], ["added “b”", "removed “a”"]),
            ([A, B], [B, A], ["put in another order"]),
            ([A], [{**A, "pattern": "3"}], ["changed “a”"]),
            ([A], [A, {**A, "pattern": "3"}], ["changed “a”"]),
        ],
    )
    def test_contracts_are_told_apart_by_their_names(self, before, after, said):
        assert changes_between((None, before), (None, after)).sentences == said

    def test_another_decision_is_a_change(self):
        found = changes_between((None, []), ({"kind": "label"}, []))
        assert found == Changes(has_decision=True)
        assert not found.are_none
        assert len(found.sentences) == 1


@pytest.mark.django_db
class TestVersions:
    def define(self, agent, *held, seen=None):
        asked = Asked(held=held)
        return define_agent(agent=agent, asked=asked, user_id=None, now=NOW, seen=seen)

    def test_the_same_again_writes_nothing_whatever_was_seen(self, project):
        agent = make_agent(project)
        assert self.define(agent, KNOWS_27, seen=1).number == 2
        assert AgentDefinition.objects.count() == 2

    def test_a_version_that_was_not_seen_is_not_overwritten(self, project):
        agent = make_agent(project)
        for seen in (0, 1, 3):
            with pytest.raises(AskedMeanwhile):
                self.define(agent, A, seen=seen)
        assert self.define(agent, A, seen=2).number == 3
        assert current_definition(agent).contracts == [A]

    def test_outcomes_have_versions_too(self, project):
        def define(*held, seen=None):
            return define_outcome(
                project_id=project.pk,
                asked=Asked(held=held),
                user_id=None,
                now=NOW,
                seen=seen,
            )

        define({"task": "*", "expect": "pass"}, seen=0)
        with pytest.raises(AskedMeanwhile):
            define(seen=0)
        define(seen=1)
        assert [row.number for row in outcome_history(project.pk)] == [2, 1]

    def test_there_is_a_largest_number_of_contracts(self, project):
        agent = make_agent(project)
        many = [{**A, "name": str(n)} for n in range(MOST_CONTRACTS + 1)]
        with pytest.raises(WrongAgent, match="at most"):
            self.define(agent, *many)


@pytest.mark.django_db
class TestNames:
    def test_an_agent_that_was_merged_away_is_not_listed_and_comes_back(self, project):
        find_agents(project_id=project.pk, recorded=["planner", "Planner 2"], now=NOW)
        first, second = named_agents(project.pk)
        merge_agents(agent=second, into=first, user_id=None, now=NOW)
        assert named_agents(project.pk) == [first]
        again = split_name(
            project_id=project.pk, key="planner 2", user_id=None, now=NOW
        )
        assert again == second
        assert len(named_agents(project.pk)) == 2
        changes = name_changes(project.pk, {second.key})
        assert [(row.before, row.after) for row in changes] == [
            ("planner", "Planner 2"),
            ("Planner 2", "planner"),
        ]
        assert name_changes(project.pk, {first.key}) == []

    def test_a_name_that_a_trace_took_meanwhile_is_refused(self, project):
        find_agents(project_id=project.pk, recorded=["planner"], now=NOW)
        with pytest.raises(WrongAgent, match="here already"):
            add_agent(project_id=project.pk, name="PLANNER", now=NOW)
        assert Agent.objects.get().is_by_hand is False

    def test_agents_of_one_shown_name_are_told_apart(self, project):
        find_agents(project_id=project.pk, recorded=["a", "b", "c"], now=NOW)
        Agent.objects.filter(key="b").update(name="a")
        assert sorted(called_apart(named_agents(project.pk)).values()) == [
            "a (a)",
            "a (b)",
            "c",
        ]

    def test_a_name_that_nobody_has_becomes_no_agent(self, project):
        for key in ("nobody", "x" * 301):
            with pytest.raises(WrongAgent):
                split_name(project_id=project.pk, key=key, user_id=None, now=NOW)
        assert not Agent.objects.exists()

    def test_an_agent_is_added_once_however_its_name_is_spelled(self, project):
        add_agent(project_id=project.pk, name="Night Watch", now=NOW)
        with pytest.raises(WrongAgent, match="here already"):
            add_agent(project_id=project.pk, name="night-watch", now=NOW)
        assert AgentName.objects.get().is_by_hand
