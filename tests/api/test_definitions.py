"""Contracts of agents and expectations through the JSON door, read and written."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse
from django.utils import timezone

from apps.accounts.operations import revoke_token
from apps.accounts.permissions import Scope
from apps.agents.models import Agent, AgentDefinition, OutcomeDefinition
from apps.agents.operations import Asked, add_agent, define_agent
from apps.engine.agent_contracts import contracts_from_yaml
from apps.engine.agent_contracts.plain_yaml import read_yaml
from apps.pipeline.scoring import is_behind
from apps.verdicts.models import AgentVerdict
from tests.factories import NOW, make_project, upload_traces
from tests.masked_desks import KNOWS, desk
from tests.scored import scored

pytestmark = pytest.mark.django_db

URL = "/api/v1/definitions"
TEXT = """
evalsite: 1
agents:
  memory:
    contracts:
    - name: Knows the number
      kind: regex
      pattern: ending 27
  planner:
    contracts:
    - name: A plan
      kind: equality
      expected: "\U0001f600"
tasks:
  ticket*:
    expect: pass
"""


@pytest.fixture
def writer(client_with, project):
    return client_with(project, Scope.READ, Scope.DEFINE)


def put(
    client, text: str | bytes, query: str = "", kind: str = "application/yaml", **more
):
    return client.put(URL + query, text, content_type=kind, headers=more)


class TestWriting:
    """A document is taken as a whole, and what it leaves out stays."""

    def test_yaml_makes_agents_contracts_and_expectations(self, writer, project, owner):
        add_agent(project_id=project.pk, name="memory", now=NOW)
        answer = put(writer, TEXT)
        assert answer.status_code == 200, answer.content
        said = answer.json()
        assert (said["is_changed"], said["is_dry_run"]) == (True, False)
        assert [(one["agent"], one["is_new"]) for one in said["agents"]] == [
            ("memory", False),
            ("planner", True),
        ]
        assert said["agents"][0]["changes"] == ["added “Knows the number”"]
        assert said["tasks"] == ["added “ticket*”"]
        row = AgentDefinition.objects.get(agent__name="memory")
        assert (row.number, row.created_by) == (1, owner)
        assert OutcomeDefinition.objects.get().expectations[0]["task"] == "ticket*"

    def test_json_is_the_same_document(self, writer):
        value = read_yaml(TEXT)
        assert (
            put(writer, json.dumps(value), kind="application/json").status_code == 200
        )
        row = AgentDefinition.objects.get(agent__name="planner")
        assert row.contracts[0]["expected"] == "\U0001f600"
        read = writer.get(URL).json()
        assert read["tasks"] == value["tasks"]
        assert (
            read["agents"]["memory"]["contracts"]
            == (value["agents"]["memory"]["contracts"])
        )
        assert (
            put(writer, json.dumps(read), kind="application/json").json()["is_changed"]
            is False
        )

    def test_the_same_document_again_changes_nothing(self, writer):
        put(writer, TEXT)
        for method in (writer.put, writer.post):
            answer = method(URL, TEXT, content_type="application/yaml")
            assert answer.json()["is_changed"] is False
        assert AgentDefinition.objects.count() == 2

    def test_what_it_leaves_out_stays(self, writer, project):
        agent = add_agent(project_id=project.pk, name="triage", now=NOW)
        define_agent(agent=agent, asked=Asked(held=(KNOWS,)), user_id=None, now=NOW)
        put(writer, TEXT)
        assert AgentDefinition.objects.filter(agent=agent).count() == 1

    def test_scores_are_behind_at_once(self, writer, project):
        upload_traces(project, desk(1))
        scored(project)
        put(writer, TEXT)
        assert is_behind(project.pk)

    def test_an_agent_that_only_the_file_names_has_a_verdict_too(self, writer, project):
        upload_traces(project, desk(1))
        scored(project)
        put(writer, "evalsite: 1\nagents:\n  night watch:\n    contracts: []\n")
        assert not AgentDefinition.objects.exists()
        assert is_behind(project.pk)
        scored(project)
        assert AgentVerdict.objects.get(agent__name="night watch").colour == "unknown"

    def test_a_dry_run_says_what_would_change_and_writes_nothing(self, writer):
        said = put(writer, TEXT, "?dry_run=yes").json()
        assert (said["is_changed"], said["is_dry_run"]) == (True, True)
        assert not Agent.objects.exists()

    def test_a_document_of_an_older_version_is_refused(self, writer):
        etag = writer.get(URL)["ETag"]
        assert put(writer, TEXT, **{"If-Match": etag}).status_code == 200
        other = TEXT.replace("ending 27", "ending 28")
        late = put(writer, other, **{"If-Match": etag})
        assert late.status_code == 412
        assert "Read it again" in late.json()["sentence"]
        assert AgentDefinition.objects.filter(agent__name="memory").count() == 1
        fresh = writer.get(URL)["ETag"]
        assert put(writer, other, **{"If-Match": fresh}).status_code == 200
        assert put(writer, TEXT, **{"If-Match": "*"}).status_code == 200


class TestRefusals:
    """Nothing is taken of a document that is wrong, and every wrong place is named."""

    @pytest.mark.parametrize(
        ("text", "kind", "words"),
        [
            ("", "application/yaml", "body is empty"),
            (b"\xff\xfe", "application/yaml", "not UTF-8"),
            ("agents: {}", "application/yaml", "“evalsite: 1”"),
            ("evalsite: 1\nagents: [", "application/yaml", "Line 2"),
            ("{", "application/json", "this is no JSON"),
            ('{"a": 1, "a": 2}', "application/json", "“a” stands twice"),
            ('{"evalsite": NaN}', "application/json", "NaN is not a number"),
            ("[" * 100_000, "application/json", "not read"),
            ("[1]", "application/json", "must hold “evalsite: 1”"),
            (f'{{"evalsite": 1{"0" * 5_000}}}', "application/json", "not read"),
            ('{"evalsite": 1, "agents": {"a": {"contracts": [{"kind": "regex"}]}}}',
             "application/json", "Agent “a”, contract 1"),
            ('{"evalsite": 1, "agents": {"\\ud83d": {}}}', "application/json", "."),
            ("evalsite: 1\nagents: {'': {}}", "application/yaml", "a name has 1 to"),
        ],
    )  # fmt: skip
    def test_a_wrong_document_is_refused_in_words(self, writer, text, kind, words):
        answer = put(writer, text, kind=kind)
        assert answer.status_code == 400, answer.content
        assert words in answer.json()["sentence"]
        assert answer.json()["sentence"].endswith(".")
        assert not Agent.objects.exists()

    def test_every_problem_is_listed(self, writer):
        text = "evalsite: 1\nagents: {a: {contracts: [{kind: nope}]}, b: {x: 1}}"
        answer = put(writer, text)
        assert answer.status_code == 400
        problems = answer.json()["problems"]
        assert len(problems) >= 2
        assert all(one in answer.json()["sentence"] for one in problems)

    def test_a_document_that_is_too_large_is_refused(self, writer):
        answer = put(writer, b"#" * 5_000_000)
        assert answer.status_code == 413
        assert answer.json()["sentence"].endswith(".")

    @pytest.mark.parametrize("scopes", [(Scope.READ,), (Scope.UPLOAD,)])
    def test_a_token_without_the_scope_writes_nothing(
        self, client_with, project, scopes
    ):
        answer = put(client_with(project, *scopes), TEXT)
        assert answer.status_code == 403
        assert "lacks the scope" in answer.json()["sentence"]
        assert not Agent.objects.exists()

    def test_writing_is_no_reading(self, client_with, project):
        blind = client_with(project, Scope.DEFINE)
        assert blind.get(URL).status_code == 403
        assert blind.get(reverse("api-agents")).status_code == 403
        assert put(blind, TEXT).status_code == 200

    def test_nobody_writes_without_a_live_token(self, client, writer, project):
        assert put(client, TEXT).status_code == 401
        revoke_token(token=project.apitoken_set.get(), now=timezone.now())
        assert put(writer, TEXT).status_code == 401

    def test_a_token_writes_into_its_own_project_only(self, writer, owner):
        other = make_project(owner=owner, name="Other")
        url = f"/api/v1/projects/{other.slug}/definitions"
        answer = writer.put(url, TEXT, content_type="application/yaml")
        assert answer.status_code == 404
        assert not Agent.objects.filter(project=other).exists()


class TestReading:
    """JSON or YAML, all of it or of one agent."""

    def test_yaml_is_given_by_the_address_or_by_accept(self, writer):
        put(writer, TEXT)
        for answer in (
            writer.get(f"{URL}?format=yaml"),
            writer.get(URL, headers={"Accept": "application/yaml"}),
        ):
            assert answer["Content-Type"] == "application/yaml; charset=utf-8"
            text = answer.content.decode()
            found, wanted = contracts_from_yaml(text), contracts_from_yaml(TEXT)
            assert found.tasks == wanted.tasks
            assert {name: one.contracts for name, one in found.agents.items()} == {
                name: one.contracts for name, one in wanted.agents.items()
            }
            assert read_yaml(text) == writer.get(URL).json()
        wrong = writer.get(f"{URL}?format=xml")
        assert wrong.status_code == 400
        assert "“format” is one of: json, yaml" in wrong.json()["sentence"]

    def test_a_refusal_to_one_who_accepts_yaml_is_yaml(self, writer):
        answer = writer.get(
            reverse("api-agent-definitions", args=[999]),
            headers={"Accept": "application/yaml"},
        )
        assert answer.status_code == 404
        assert (
            "There is no such thing" in read_yaml(answer.content.decode())["sentence"]
        )

    def test_the_versions_of_one_agent_are_kept_newest_first(self, writer, owner):
        put(writer, TEXT)
        put(writer, TEXT.replace("ending 27", "ending 28"))
        agent = Agent.objects.get(name="memory")
        url = reverse("api-agent-definitions", args=[agent.pk])
        found = writer.get(url).json()
        assert [one["number"] for one in found["definitions"]] == [2, 1]
        first = found["definitions"][0]
        assert first["by"] == owner.label
        assert first["contracts"][0]["contract"]["pattern"] == "ending 28"
        assert "ending 28" in first["contracts"][0]["sentence"]
        text = writer.get(f"{url}?format=yaml").content.decode()
        assert list(contracts_from_yaml(text).agents) == ["memory"]
        assert "ending 28" in text

    def test_an_agent_of_which_nothing_was_asked_has_no_version(self, writer, project):
        agent = add_agent(project_id=project.pk, name="idle", now=NOW)
        url = reverse("api-agent-definitions", args=[agent.pk])
        found = writer.get(url).json()
        assert found["definitions"] == []
        assert found["agent_decision"]["kind"] == "automatic"
        text = writer.get(f"{url}?format=yaml").content.decode()
        assert contracts_from_yaml(text).agents == {}


def test_every_address_of_the_door_is_on_its_page(client, owner):
    client.force_login(owner)
    page = client.get(reverse("api")).content.decode()
    for name in ("verdicts", "patterns", "agents", "definitions", "tasks"):
        assert f"GET {reverse(f'api-{name}')}" in page
    assert "PUT /api/v1/definitions" in page
    for end in ("agents/5", "agents/5/definitions", "tasks/12", "traces/90/agents"):
        assert f"GET /api/v1/{end}<" in page
        writer_url = f"/api/v1/{end}"
        assert client.get(writer_url).status_code == 401
