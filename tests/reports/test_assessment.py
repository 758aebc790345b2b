"""What a frozen report says of agents and trials, from a scored project."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Project
from apps.agents.models import Agent
from apps.agents.operations import Asked, define_agent, define_outcome
from apps.engine.memory import State
from apps.pipeline.patterns import search_project
from apps.reports import markdown
from apps.reports.assessing import assessment_of
from apps.reports.document import read
from apps.reports.operations import freeze
from apps.reports.queries import document_of
from apps.review.queries import QueueFilter
from apps.scoring.models import TaskScore, TraceScore
from apps.traces.models import Trace, Upload
from apps.verdicts.notes import Noted, note_trial, withdraw_note
from tests.desks import FAIL, UNKNOWN
from tests.factories import NOW, make_project, upload_traces
from tests.masked_desks import KNOWS, desk, make_masked_desk
from tests.scored import asked_of, scored

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_masked_desk)


@pytest.fixture
def masked(made):
    return Project.objects.get(name="Masked desk")


def frozen(project, owner, **where) -> dict:
    where = QueueFilter(view="all", **where)
    return document_of(
        freeze(project=project, user=owner, title="R", where=where, now=NOW)
    )


def text_of(project, owner, **where) -> str:
    text = markdown.render(frozen(project, owner, **where))
    return text.replace("\u202f", " ")


def agent_of(document: dict, name: str) -> dict:
    return next(one for one in document["assessment"]["agents"] if one["name"] == name)


def part_of(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0]


class TestMasking:
    """The headline, the agents beside the outcome, and the mirror."""

    def test_it_leads_with_masking_before_any_count_and_signal(self, masked, owner):
        text = text_of(masked, owner)
        assert frozen(masked, owner)["headline"]["status"] == "masked"
        headline = text.index("Masking: ")
        assert "memory is red in 5 of 7 traces that passed" in text[headline:]
        places = [
            text.index(words)
            for words in (
                "steps: **",
                "## Agents beside the outcome",
                "## Consistency of repeated trials",
                "## Branch points",
                "## Memory",
                "## Patterns",
                "## What reviewers noted",
                "## What the checks answered",
                "## Signals",
                "## What was not checked",
                "## Appendix: contracts in force",
            )
        ]
        assert headline < places[0]
        assert places == sorted(places)

    def test_each_agent_has_its_verdict_counts_and_reasons(self, masked, owner):
        memory = agent_of(frozen(masked, owner), "memory")
        assert memory["colour"] == "red"
        assert (memory["held"]["hits"], memory["held"]["of"]) == (4, 9)
        assert memory["held"]["low"] == pytest.approx(0.1888, abs=1e-3)
        rate = memory["masked_traces"]
        assert (rate["hits"], rate["of"], rate["high"]) == (
            5,
            7,
            pytest.approx(0.918, abs=1e-3),
        )
        assert any("Contracts broke in 5 of 9" in one for one in memory["reasons"])
        row = part_of(text_of(masked, owner), "| memory · 9 traces, 2 tasks |", "\n")
        assert "**red**" in row
        assert "4 of 9 (44.4 %; 18.9 % to 73.3 %)" in row

    def test_the_outcome_of_the_whole_stands_beside_them(self, masked, owner):
        traces = frozen(masked, owner)["assessment"]["traces"]
        known = traces["passed"] + traces["failed"]
        words = f"{traces['passed']} of {known} traces with a known outcome passed"
        assert words in text_of(masked, owner)

    def test_without_the_contract_the_agent_is_unknown_and_never_green(
        self, masked, owner
    ):
        asked_of(masked, "memory")
        scored(masked)
        document = frozen(masked, owner)
        assert agent_of(document, "memory")["colour"] == "unknown"
        text = markdown.render(document)
        row = part_of(text, "| memory · ", "\n")
        assert "unknown" in row
        assert "green" not in row
        assert "no contract" in row

    def test_failures_behind_green_agents_are_a_gap_and_named(self, masked, owner):
        document = frozen(masked, owner)
        assert document["assessment"]["traces"]["all_green"] == 1
        (case,) = document["assessment"]["mirror"]["traces"]
        assert case["name"] == "clerk falls 51"
        text = text_of(masked, owner)
        assert "a gap in the contracts, not a pass" in text
        assert "Trace clerk falls 51 of task single 1" in text

    def test_an_upload_is_told_that_agents_are_of_the_whole_project(
        self, masked, owner
    ):
        text = text_of(masked, owner, upload=Upload.objects.get().pk)
        assert "about the whole project, not one upload" in text
        assert "about the whole project" not in text_of(masked, owner)

    def test_nothing_masked_says_what_that_rests_on(self, project, owner):
        upload_traces(project, *(desk(n, memory="ending 27") for n in range(1, 6)))
        scored(project)
        for name in ("memory", "triage", "writer"):
            asked_of(project, name, {**KNOWS, "pattern": "27|billing|Done"})
        scored(project)
        headline = frozen(project, owner)["headline"]
        assert headline["status"] == "none"
        assert headline["title"] == "Masking: none was found"
        assert (
            "3 of 3 agents with a verdict, 3 contracts that applied 15 times"
            in (headline["sentence"])
        )

    def test_where_no_agent_can_be_judged_masking_would_not_be_seen(
        self, project, owner
    ):
        upload_traces(project, *(desk(n) for n in range(1, 6)))
        scored(project)
        headline = frozen(project, owner)["headline"]
        assert headline["status"] == "unseen"
        assert "masking would not be seen" in headline["sentence"]
        assert "0 of 3 agents with a verdict" in headline["sentence"]

    def test_without_a_passed_trace_nothing_can_be_masked(self, project, owner):
        upload_traces(project, desk(1, outcome=FAIL), desk(2, outcome=UNKNOWN))
        scored(project)
        asked_of(project, "memory", KNOWS)
        scored(project)
        headline = frozen(project, owner)["headline"]
        assert headline["status"] == "unseen"
        assert "No trace is known to have passed" in headline["sentence"]


class TestBehind:
    """A report that is frozen while scores are behind says so in its first lines."""

    def test_traces_that_wait_are_counted_first(self, masked, owner):
        upload_traces(masked, desk(9), desk(10), name="late.jsonl")
        text = text_of(masked, owner)
        first = text.index("What is said of agents is not final")
        assert first < text.index("Masking: ")
        assert "2 traces of the project were not scored yet" in text
        assert "Traces not scored yet by what is asked now: 2." in text
        assert "settled at 2026-03-01 12:00 UTC" in text

    def test_changed_contracts_have_no_counts_of_before(self, masked, owner):
        asked_of(masked, "memory", {**KNOWS, "name": "Another"}, KNOWS)
        document = frozen(masked, owner)
        assert document["assessment"]["standing"]["is_behind"]
        (memory,) = [
            one
            for one in document["assessment"]["definitions"]
            if one["agent"] == "memory"
        ]
        assert [one["held"] for one in memory["contracts"]] == [None, None]
        assert "not scored" in markdown.render(document)

    def test_before_the_first_score_nothing_is_said_of_agents(self, project, owner):
        upload_traces(project, desk(1))
        document = frozen(project, owner)
        assert document["headline"]["status"] == "not_assessed"
        assert "No trace was scored" in document["headline"]["sentence"]
        text = markdown.render(document)
        assert "No verdict was settled before." in text
        assert "Agents beside the outcome" not in text

    def test_an_empty_project_is_not_behind(self, project, owner):
        document = frozen(project, owner)
        assert not document["assessment"]["standing"]["is_behind"]
        assert "There is no trace yet" in document["headline"]["sentence"]


class TestTrials:
    """Consistency, branch points, memory, patterns and notes."""

    def test_tasks_are_counted_by_stability_with_intervals(self, masked, owner):
        part = frozen(masked, owner)["assessment"]["consistency"]
        assert (
            sum(part["by_verdict"].values())
            == part["tasks"]
            == TaskScore.objects.count()
        )
        table = part_of(text_of(masked, owner), "| Tasks, end to end |", "###")
        assert f"insufficient | {part['by_verdict']['insufficient']} of 4 (" in table

    def test_the_least_stable_have_their_distinct_decisions_and_counts(
        self, masked, owner
    ):
        rows = frozen(masked, owner)["assessment"]["consistency"]["least_stable"]
        (triage,) = [one for one in rows if one["agent"] == "triage"]
        assert triage["task"] == "mixed 1"
        assert sorted((a["words"], a["count"]) for a in triage["answers"]) == [
            ("billing", 2),
            ("refunds", 2),
        ]
        row = part_of(text_of(masked, owner), "| mixed 1 | triage |", "\n")
        assert "non-deterministic | 2 of 4 (50 %; 15 % to 85 %)" in row
        assert "refunds (2)" in row

    def test_a_mixed_task_has_its_decisive_fork_and_both_ways(self, masked, owner):
        part = frozen(masked, owner)["assessment"]["forks"]
        assert (part["mixed"], part["decisive"]) == (1, 1)
        (fork,) = part["listed"]
        ways = {one["words"]: one["passed"] for one in fork["branches"]}
        assert sorted((one["hits"], one["of"]) for one in ways.values()) == [
            (0, 2),
            (2, 2),
        ]
        assert fork["first_step"] == fork["last_step"] == 1
        text = part_of(text_of(masked, owner), "## Branch points", "## Memory")
        assert "Step 2, of 1 fork." in text
        assert "2 trials, passed 2 of 2 (100 %; 34.2 % to 100 %)" in text
        assert fork["sentence"] == TaskScore.objects.get(outcome="mixed").decisive

    def test_a_mixed_task_without_a_decisive_fork_says_so(self, project, owner):
        upload_traces(
            project, *(desk(n, outcome=FAIL) for n in (1, 2)), desk(3), desk(4)
        )
        scored(project)
        (fork,) = frozen(project, owner)["assessment"]["forks"]["listed"]
        assert not fork["is_decisive"]
        assert "No fork: as far as is recorded" in fork["sentence"]

    def test_memory_is_counted_by_fact_and_localised(self, masked, owner):
        row = TraceScore.objects.filter(outcome="green").first()
        lost = {
            "fact": "number",
            "source": "declared",
            "value": "27",
            "state": State.LOST.value,
            "sentence": "It was told in step 1 and needed in step 5.",
            "place": "not_retrieved",
            "why": "The search came back empty.",
        }
        kept = {**lost, "state": "recalled", "place": "", "why": ""}
        aside = {**kept, "source": "detected", "state": "ambiguous"}
        row.recalls = [lost, kept, kept, aside]
        row.save()
        memory = frozen(masked, owner)["assessment"]["memory"]
        declared, detected = memory["facts"]
        assert (declared["fact"], declared["lost"]) == ("number", 1)
        assert (declared["recalled"]["hits"], declared["recalled"]["of"]) == (2, 3)
        assert declared["places"] == {"not_retrieved": 1}
        assert (detected["fact"], detected["others"]) == ("", {"ambiguous": 1})
        assert memory["traces"] == 1
        text = part_of(text_of(masked, owner), "## Memory", "## Patterns")
        assert "**not retrieved.** The search came back empty." in text
        assert "none decided" in text

    def test_patterns_are_those_of_the_last_search(self, masked, owner):
        assert "No search for patterns" in text_of(masked, owner)
        search_project(project_id=masked.pk, clock=lambda: NOW)
        document = frozen(masked, owner)
        patterns = {one["target"]: one for one in document["assessment"]["patterns"]}
        assert set(patterns) == {"unstable", "failing", "signalled"}
        assert all(one["is_current"] for one in patterns.values())
        assert patterns["failing"]["sentence"] in markdown.render(document)

    def test_notes_have_who_and_when_and_withdrawn_ones_are_gone(self, masked, owner):
        passed, failed = (
            Trace.objects.filter(
                tracescore__outcome=colour, task__key="mixed 1"
            ).first()
            for colour in ("green", "red")
        )
        for trace, kind in ((passed, "right_by_luck"), (failed, "sound_but_wrong")):
            noted = Noted(kind, 2, "Guessed the number.")
            note_trial(trace=trace, noted=noted, user_id=owner.pk, now=NOW)
        withdraw_note(trace=failed, user_id=owner.pk, now=NOW)
        document = frozen(masked, owner)
        (note,) = document["assessment"]["notes"]
        assert (note["kind"], note["by"], note["step"]) == ("right_by_luck", "olga", 2)
        text = markdown.render(document)
        assert "**Right by luck** (passed) · step 3" in text
        assert "Guessed the number." in text


class TestContracts:
    """The appendix that makes a verdict defensible."""

    def test_each_contract_in_force_has_version_author_and_counts(self, masked, owner):
        held = (KNOWS, {**KNOWS, "name": "Twice"})
        agent = Agent.objects.get(project=masked, name="memory")
        define_agent(agent=agent, asked=Asked(held=held), user_id=owner.pk, now=NOW)
        scored(masked)
        (memory,) = [
            one
            for one in frozen(masked, owner)["assessment"]["definitions"]
            if one["agent"] == "memory"
        ]
        assert (memory["number"], memory["by"]) == (2, "olga")
        assert memory["at"] == "2026-03-01T12:00:00Z"
        assert [
            (one["name"], one["held"], one["broken"]) for one in memory["contracts"]
        ] == [
            ("Knows the number", 4, 5),
            ("Twice", 4, 5),
        ]
        text = text_of(masked, owner)
        appendix = text.partition("## Appendix: contracts in force")[2]
        assert "**Agent** memory · version 2 · 2026-03-01 12:00 UTC · olga" in appendix

    def test_expectations_of_outcomes_are_in_it(self, masked, owner):
        said = Asked(held=({"task": "ticket*", "expect": "pass"},))
        define_outcome(project_id=masked.pk, asked=said, user_id=owner.pk, now=NOW)
        document = frozen(masked, owner)
        first = document["assessment"]["definitions"][0]
        assert (first["agent"], first["by"]) == ("", "olga")
        assert first["contracts"][0]["name"] == "ticket*"
        assert "**Outcomes of tasks** · version 1" in markdown.render(document)


class TestGaps:
    """What was not checked, and why."""

    def test_unknown_agents_idle_ones_and_few_trials_are_admitted(self, masked, owner):
        said = " ".join(frozen(masked, owner)["not_checked"])
        assert "Agents unknown: 1 of 5, namely writer (no contract says" in said
        assert "No contract says what they must hold: writer." in said
        assert "Tasks insufficient: 2 of 4 have too few trials" in said
        assert "Memory: no fact was declared" in said
        assert "every agent counts as unknown" not in said

    def test_nothing_of_another_project_is_in_it(self, masked, owner):
        other = make_project(owner=owner, name="Other")
        found = assessment_of(other.pk)
        assert (found.agent_count, found.agents, found.definitions) == (0, (), ())
        assert (found.consistency.tasks, found.forks.mixed) == (0, 0)
        assert (found.memory.facts, found.notes, found.patterns) == ((), (), ())


def test_more_traces_and_tasks_cost_no_more_queries(masked, owner):
    def queries(project: Project) -> int:
        with CaptureQueriesContext(connection) as caught:
            assessment_of(project.pk)
        return len(caught)

    twice = make_masked_desk(times=2)
    assert TaskScore.objects.filter(project=twice).count() == 8
    assert queries(twice) == queries(masked)


def test_the_document_reads_back_as_it_was_written(masked, owner):
    document = frozen(masked, owner)
    assert read(document).assessment == assessment_of(masked.pk)
