"""The overview leads with masking; the list of traces can be narrowed to it."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.agents.models import Agent
from apps.agents.operations import rename_agent
from apps.scoring.models import Conduct, TraceScore
from apps.traces.models import Trace
from apps.verdicts.operations import unsettle
from tests.factories import decay_trace, make_project, upload_bytes, upload_traces
from tests.masked_desks import desk, make_masked_desk
from tests.scored import asked_of, scored

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def kept(stand):
    project, _ = stand(make_masked_desk)
    return project


@pytest.fixture
def inside(client, kept):
    client.force_login(kept.members.get())
    return client


def text_of(client, project, query: str = "", page: str = "overview") -> str:
    url = reverse(page, args=[project.slug]) + query
    answer = client.get(url)
    assert answer.status_code == 200
    plain = re.sub(r"<[^>]+>", " ", answer.content.decode().split("<main")[1])
    return re.sub(r"\s+", " ", plain)


def agent(project, name: str) -> Agent:
    return Agent.objects.get(project=project, name=name)


def test_masking_stands_first_then_what_changed_then_gaps_then_the_rest(inside, kept):
    text = text_of(inside, kept)
    in_order = [
        "memory is red in 5 of 7 traces that passed",
        "What changed",
        "Gaps",
        "Verdict per agent",
        "passed in all trials",
        "What is there today",
        "What the checks answered",
        "Last uploads",
    ]
    places = [text.index(words) for words in in_order]
    assert places == sorted(places)
    assert "not assessed" not in text


def test_a_masked_agent_links_to_the_traces_and_says_why(inside, kept):
    url = reverse("overview", args=[kept.slug])
    page = inside.get(url).content.decode()
    memory = agent(kept, "memory")
    traces = reverse("traces", args=[kept.slug])
    assert f'href="{traces}?verdict=masked&amp;by={memory.pk}"' in page
    assert reverse("agent", args=[kept.slug, memory.pk]) in page
    text = text_of(inside, kept)
    assert "5 of 7 (71.4 %; 35.9 % to 91.8 %)" in text
    assert "Contracts broke in 5 of 9" in text


def test_of_two_agents_of_one_name_none_hides_the_other(inside, kept):
    red, green = agent(kept, "memory"), agent(kept, "triage")
    rename_agent(agent=green, name="memory", description="")
    unsettle(kept.pk)
    scored(kept)
    answer = inside.get(reverse("overview", args=[kept.slug]))
    page = " ".join(answer.content.decode().split())
    assert "memory (memory) is red" in page
    names = {one.pk for one in Agent.objects.filter(name="memory")}
    assert names == {red.pk, green.pk}
    for one in (red, green):
        assert f">memory ({one.key})</a>" in page
        assert reverse("agent", args=[kept.slug, one.pk]) in page


def test_a_failure_behind_green_agents_is_a_gap_in_the_contracts(inside, kept):
    text = text_of(inside, kept)
    assert "of the traces that failed: a gap in the contracts." in text
    rows = text_of(inside, kept, "?verdict=gap", "traces")
    assert "clerk falls" in rows
    assert "planner falls" not in rows


def test_unknown_agents_are_the_first_gaps_and_never_green(inside, kept):
    text = text_of(inside, kept)
    gaps = text[text.index("Gaps") : text.index("What is there today")]
    assert "writer is unknown: no contract says what it must hold." in gaps
    assert "Write a contract of writer" in gaps


def test_what_changed_says_from_what_to_what_and_why(inside, kept):
    text = text_of(inside, kept)
    changed = text[text.index("What changed") : text.index("Gaps")]
    assert re.search(r"memory unknown → is now red .*Contracts broke in", changed)
    assert "In the last upload" in changed
    assert "8 masked traces" in changed


def test_without_any_contract_it_says_how_to_write_one(client, owner, project):
    upload_traces(project, desk(1), desk(2))
    scored(project)
    client.force_login(owner)
    text = text_of(client, project)
    assert "No agent could be judged, so masking would not be seen." in text
    assert "No agent has a contract yet: here is how." in text
    assert re.search(r"Begin with (triage|memory|writer)", text)


def test_traces_without_names_are_of_one_unnamed_agent(client, owner, project):
    conversation = [
        {"role": "user", "content": "Where is order 17?"},
        {"role": "assistant", "content": "It left."},
    ]
    line = str(conversation).replace("'", '"')
    upload_bytes(project, f'{{"messages": {line}}}\n'.encode())
    scored(project)
    client.force_login(owner)
    text = text_of(client, project)
    assert "No agent is named in these traces" in text
    assert "Begin with unnamed agent" in text


def test_before_anything_is_scored_no_agent_has_a_verdict(client, owner, project):
    upload_traces(project, desk(1), desk(2))
    client.force_login(owner)
    text = text_of(client, project)
    assert "No agent has a verdict yet." in text
    assert "2 traces are not scored yet, so what stands here is not final." in text
    traces = text_of(client, project, "", "traces")
    assert "ticket 1, trial 2" in traces


def test_a_change_of_contracts_is_said_to_be_not_final_until_scored(inside, kept):
    asked_of(kept, "memory")
    text = text_of(inside, kept)
    assert "traces are not scored yet, so what stands here is not final." in text
    scored(kept)
    text = text_of(inside, kept)
    assert "memory is unknown: no contract says what it must hold." in text
    assert "memory is red in" not in text


def test_an_empty_project_says_how_to_begin(client, owner, project):
    client.force_login(owner)
    text = text_of(client, project)
    assert "No traces yet" in text
    assert "Verdict per agent" not in text


class TestTheListOfTraces:
    """Traces that are masked, failed behind green agents, or have a verdict."""

    def rows(self, client, project, query: str) -> list[str]:
        page = client.get(reverse("traces", args=[project.slug]) + query)
        return [trace.name for trace, _ in page.context["page"].rows]

    def test_masked_ones_of_all_agents_and_of_one(self, inside, kept):
        assert len(self.rows(inside, kept, "?verdict=masked")) == 8
        planner = agent(kept, "planner").pk
        found = self.rows(inside, kept, f"?verdict=masked&by={planner}")
        assert found == ["planner falls 3", "planner falls 2", "planner falls 1"]

    def test_those_with_a_colour_of_one_agent(self, inside, kept):
        memory = agent(kept, "memory").pk
        red = self.rows(inside, kept, f"?verdict=red&by={memory}")
        green = self.rows(inside, kept, f"?verdict=green&by={memory}")
        assert (len(red), len(green)) == (5, 4)
        assert len(self.rows(inside, kept, f"?by={memory}")) == 9

    def test_a_colour_of_no_agent_or_of_one_elsewhere_filters_nothing(
        self, inside, kept, owner
    ):
        elsewhere = scored_elsewhere(owner)
        everything = len(self.rows(inside, kept, ""))
        assert len(self.rows(inside, kept, "?verdict=red")) == everything
        assert len(self.rows(inside, kept, f"?by={elsewhere}")) == everything
        assert len(self.rows(inside, kept, "?by=9999999999999999999")) == everything

    def test_pages_keep_the_filter_and_a_set_is_not_offered(self, inside, kept):
        page = inside.get(reverse("traces", args=[kept.slug]) + "?verdict=masked")
        text = page.content.decode()
        assert "Make a set" not in text
        assert ">masked</span>" in text

    def test_a_trace_that_is_erased_is_gone_from_everything(self, inside, kept):
        one = TraceScore.objects.filter(project=kept, masked__gt=0).first()
        Trace.objects.get(pk=one.pk).delete()
        assert not Conduct.objects.filter(trace_id=one.pk).exists()
        assert len(self.rows(inside, kept, "?verdict=masked")) == 7
        scored(kept)
        assert text_of(inside, kept)


def scored_elsewhere(owner) -> int:
    other = make_project(owner=owner)
    upload_traces(other, decay_trace(100, 90, 80))
    scored(other)
    return Agent.objects.filter(project=other).first().pk


def test_twice_as_much_asks_the_database_as_often(client, kept):
    asked = []
    for project in (kept, make_masked_desk(times=2)):
        client.force_login(project.members.get())
        counts = []
        for page in ("overview", "queue", "traces"):
            address = reverse(page, args=[project.slug])
            client.get(address)
            with CaptureQueriesContext(connection) as caught:
                assert client.get(address).status_code == 200
            counts.append(len(caught))
        asked.append(counts)
    assert asked[0] == asked[1]
