"""What a later release cannot read any more stops nothing else, and is never green.

Each kind of stored definition or record is spoilt in turn, as an upgrade could; then the
project is scored, its pages and JSON are asked for, and a report is frozen.
"""

from __future__ import annotations

from contextlib import contextmanager

import msgspec
import pytest
import zstandard
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.accounts.operations import create_token
from apps.accounts.permissions import Scope
from apps.agents.models import Agent, AgentDefinition, OutcomeDefinition
from apps.agents.queries import current_definition
from apps.replays.models import Batch, Group, ReplayCase, Run, TargetVersion
from apps.reports.models import Report
from apps.reports.operations import freeze
from apps.review.queries import QueueFilter
from apps.scoring.models import AgentTaskScore, Conduct, TraceScore
from apps.screening.definitions import Wanted, define
from apps.screening.models import Adoption, Definition
from apps.traces.models import Trace, TraceSet
from apps.verdicts.models import AgentVerdict, ProjectVerdict
from tests.factories import NOW
from tests.scored import asked_of, scored
from tests.web.rooms import make_rooms
from tests.web.visiting import text, url
from tests.web.walking import ask, signed_in_as

ANY = {"name": "says anything", "kind": "regex", "pattern": "."}
FUTURE = {"name": "limits", "kind": "quantum", "pattern": "."}
ABOUT_AGENTS = (
    "overview", "agents", "agent", "agent-contract", "agent-contract-new",
    "agent-decision", "agent-file", "agent-yaml", "agent-outcomes",
    "agent-outcomes-decision", "tasks", "task", "trace", "patterns", "queue", "signal",
    "replay-plan", "replay-group", "api-verdicts", "api-agents", "api-agent",
    "api-agent-definitions", "api-definitions", "api-tasks", "api-task",
)  # fmt: skip
ABOUT_CHECKS = (
    "overview", "queue", "contracts", "contract", "contract-edit", "project-checks",
    "trace", "upload", "signal", "calibrations", "trace-set", "shadows", "regression",
)  # fmt: skip
ABOUT_REPLAYS = (
    "replay-targets", "replay-target", "replay-cases", "replay-cases-jsonl",
    "replay-case", "replays", "replay-batch", "replay-group", "replay-run",
    "replay-plan", "agent", "api-replay-case", "api-replay-batch", "api-replay-run",
)  # fmt: skip
OF_AGENT = {
    "a contract of another kind": {"contracts": [ANY, FUTURE]},
    "no list of contracts": {"contracts": {"future": 1}},
    "contracts that are no objects": {"contracts": [ANY, 3, None]},
    "a decision of another kind": {"decision": {"kind": "quantum"}},
    "a decision that is a text": {"decision": "the route"},
}
OF_WHOLE = {
    "an expectation": {"expectations": [{"task": "*", "expect": "quantum"}]},
    "expectations that are no objects": {"expectations": [7, None, {"task": 4}]},
    "no list of expectations": {"expectations": {"future": 1}},
}
NOT_OF_ONE = {
    "a check of its own": (Definition, {"spec": {"future": 1}}, ABOUT_CHECKS),
    "what is no definition": (Definition, {"spec": "future"}, ABOUT_CHECKS),
    "adopted parameters": (
        Adoption,
        {"parameters": {"last_percent": "many"}},
        ABOUT_CHECKS,
    ),
    "adopted no object": (Adoption, {"parameters": [7]}, ABOUT_CHECKS),
    "the figures of a baseline": (
        TraceSet,
        {"is_baseline": True, "baseline": {"key": "k", "latencies": {"f": 1}}},
        ABOUT_CHECKS,
    ),
    "settings of a target": (TargetVersion, {"settings": {"f": 1}}, ABOUT_REPLAYS),
    "a case": (ReplayCase, {"content": b"future"}, ABOUT_REPLAYS),
    "a plan": (Batch, {"plan": {"f": 1}, "estimate": {"f": 1}}, ABOUT_REPLAYS),
    "a regime": (Group, {"regime": {"kind": "quantum"}}, ABOUT_REPLAYS),
    "the record of a run": (
        Run,
        {"effects": [{"kind": "quantum"}], "judged": {"probed": [{"f": 1}]}},
        ABOUT_REPLAYS,
    ),
    "a frozen report": (
        Report,
        {"document": '{"format_version": 99}'},
        ("reports", "report", "report-markdown", "report-pdf", "report-json"),
    ),
}
IN_A_SENTENCE = {
    "a case": {"replay-case", "api-replay-case"},
    "the record of a run": {"replay-run"},
    "a frozen report": {"report", "report-markdown", "report-pdf"},
}


def make_house() -> dict[str, object]:
    rooms = make_rooms()
    project = Project.objects.get()
    define(
        project_id=project.pk,
        wanted=Wanted("planted-fact", "the number", {"value": "4417", "probe": "it"}),
        user_id=None,
        now=NOW,
    )
    scored(project)
    agent = asked_of(project, Conduct.objects.get().agent.name, ANY)
    scored(project)
    assert AgentVerdict.objects.get(agent=agent).colour == "green"
    return {**rooms, "agent_id": agent.pk}


@pytest.fixture(scope="module")
def house(stand):
    return stand(make_house)


@pytest.fixture
def rooms(house, db):
    return dict(house[0])


@pytest.fixture
def project(rooms):
    return Project.objects.get()


@pytest.fixture
def agent(rooms):
    return Agent.objects.get(pk=rooms["agent_id"])


@pytest.fixture
def doors(project):
    owner = User.objects.get(username="olga")
    _, secret = create_token(
        project=project,
        name="all",
        scopes=[Scope.READ, Scope.REPLAY],
        user=owner,
        now=timezone.now(),
    )
    api = Client(headers={"Authorization": f"Bearer {secret}"})
    web = signed_in_as(owner)
    return lambda name: api if name.startswith("api-") else web


@contextmanager
def spoilt(model, **values):
    """Rows as another release could have left them, and back again afterwards."""
    table = model._meta.db_table
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
            assert model._base_manager.update(**values)
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
        yield
        transaction.set_rollback(True)


def scored_anew(project):
    Trace.everything.update(scored_as="")
    scored(project)


def answers(doors, rooms, names):
    found = {}
    for name in names:
        with transaction.atomic():
            found[name] = ask(doors(name), name, rooms)
            transaction.set_rollback(True)
    return found


def statuses(answered):
    return {answer.status_code for answer in answered.values()}


def frozen_text(project):
    report = freeze(
        project=project,
        user=User.objects.get(username="olga"),
        title="After",
        where=QueueFilter(),
        now=timezone.now(),
    )
    return " ".join(str(report.document).split())


@pytest.mark.parametrize("what", OF_AGENT)
def test_an_agent_is_unknown_when_a_part_of_its_definition_cannot_be_read(
    what, rooms, project, agent, doors
):
    last = current_definition(agent)
    said = {"decision": last.decision, "contracts": last.contracts, **OF_AGENT[what]}
    AgentDefinition.objects.create(
        agent=agent, number=last.number + 1, created_at=NOW, **said
    )
    scored_anew(project)
    version = f"version {last.number + 1}"
    verdict = AgentVerdict.objects.get(agent=agent)
    assert verdict.colour == "unknown"
    codes = {one["code"] for one in verdict.detail["reasons"]}
    assert "unread" in codes
    assert version in verdict.detail["reasons"][0]["sentence"]
    assert Conduct.objects.get(agent=agent).colour == "unknown"
    for row in AgentTaskScore.objects.filter(agent=agent):
        assert row.colour == "unknown"
    assert TraceScore.objects.get(project=project).outcome_reason
    answered = answers(doors, rooms, ABOUT_AGENTS)
    assert statuses(answered) == {200}
    for name in ("overview", "agent", "trace", "api-agent", "api-verdicts"):
        page = answered[name].content.decode()
        assert "cannot be read by this version of Evalsite" in page, name
        assert version in page, name
    assert version in frozen_text(project)


def test_one_contract_that_cannot_be_read_takes_nothing_from_the_others(
    rooms, project, agent, doors
):
    never = {"name": "says zzz", "kind": "regex", "pattern": "zzz"}
    AgentDefinition.objects.create(
        agent=agent, number=90, contracts=[FUTURE, never, ANY], created_at=NOW
    )
    scored_anew(project)
    verdict = AgentVerdict.objects.get(agent=agent)
    assert verdict.colour == "red"
    assert "unread" in {one["code"] for one in verdict.detail["gaps"]}
    found = verdict.detail["contracts"]
    assert [(c["held"], c["broken"], c["undecided"]) for c in found] == [
        (0, 0, 1),
        (0, 1, 0),
        (1, 0, 0),
    ]
    sentence = (
        "Contract 1 (“limits”, kind “quantum”) of version 90 cannot be read by this "
        "version of Evalsite at “kind”"
    )
    page = text(doors("agent").get(url(project, "agent", agent.pk)))
    assert sentence in page
    assert "&quot;kind&quot;: &quot;quantum&quot;" in page
    file = doors("").get(url(project, "agent-yaml")).text
    assert "kind: quantum" in file
    sent = doors("").post(url(project, "agent-file"), {"text": file})
    assert sent.status_code == 400
    assert "contract “limits”" in text(sent) or "contract 1" in text(sent)
    less = file.replace("quantum", "regex")
    sent = doors("").post(url(project, "agent-file"), {"text": less})
    assert "Changed “limits”" in text(sent)
    asked = ask(doors("api-"), "api-agent", rooms).json()
    assert sentence in asked["unread"][0]
    assert asked["asked"]["contracts"][0]["contract"] == FUTURE
    assert [one["sentence"] is None for one in asked["asked"]["contracts"]] == [
        True,
        False,
        False,
    ]


def test_a_contract_that_cannot_be_read_makes_no_share_of_the_others_smaller(
    rooms, project, agent, doors
):
    never = {"name": "says zzz", "kind": "regex", "pattern": "zzz"}
    AgentDefinition.objects.create(
        agent=agent, number=90, contracts=[FUTURE, never], created_at=NOW
    )
    scored_anew(project)
    verdict = AgentVerdict.objects.get(agent=agent)
    assert verdict.detail["reasons"][0]["sentence"].startswith(
        "Contracts broke in 1 of 1 "
    )
    assert verdict.evidence["undecided"] == 0
    assert "unread" in {one["code"] for one in verdict.detail["gaps"]}
    score = AgentTaskScore.objects.get(agent=agent, task__is_replay=False)
    assert (score.held, score.broken, score.undecided) == (0, 1, 0)


def test_where_no_contract_can_be_read_none_is_said_to_have_applied(
    rooms, project, agent, doors
):
    AgentDefinition.objects.create(
        agent=agent, number=90, contracts=[FUTURE], created_at=NOW
    )
    scored_anew(project)
    page = text(doors("web").get(url(project, "overview")))
    assert "none that can be read applied" in page
    assert "Invalid enum value" not in page
    assert "at “kind”: “quantum” is none of the words that are known here." in page


def test_what_cannot_be_read_is_shown_and_written_anew(rooms, project, agent, doors):
    AgentDefinition.objects.create(
        agent=agent,
        number=90,
        decision={"kind": "quantum"},
        contracts=[ANY, FUTURE],
        created_at=NOW,
    )
    scored_anew(project)
    web = doors("web")
    at = url(project, "agent-contract", agent.pk, 2)
    page = text(web.get(at))
    assert "cannot be read by this version" in page
    assert "&quot;kind&quot;: &quot;quantum&quot;" in page
    sent = {
        "name": "limits", "subject": "output", "pattern": ".", "number": "90",
        "act": "save",
    }  # fmt: skip
    first = web.post(url(project, "agent-decision", agent.pk), sent)
    assert first.status_code == 302
    assert current_definition(agent).decision["kind"] == "automatic"
    assert current_definition(agent).contracts == [ANY, FUTURE]
    sent["number"] = "91"
    assert web.post(f"{at}?kind=regex", sent).status_code == 302
    assert len(current_definition(agent).contracts) == 2
    scored(project)
    assert AgentVerdict.objects.get(agent=agent).colour == "green"
    back = {"number": "92", "version": "90"}
    refused = web.post(url(project, "agent-restore", agent.pk), back)
    assert refused.status_code == 409
    assert "cannot be read" in text(refused)


@pytest.mark.parametrize("what", OF_WHOLE)
def test_outcomes_are_unknown_where_what_is_expected_cannot_be_read(
    what, rooms, project, doors
):
    OutcomeDefinition.objects.create(
        project=project,
        number=90,
        decision={"kind": "quantum"},
        created_at=NOW,
        **OF_WHOLE[what],
    )
    scored_anew(project)
    score = TraceScore.objects.get(project=project)
    assert score.outcome == "unknown"
    assert "version 90 cannot be read" in score.outcome_reason
    assert "version 90 cannot be read" in score.how
    gaps = ProjectVerdict.objects.get().detail["report"]["gaps"]
    kinds = [one["kind"] for one in gaps]
    assert kinds.count("definition_unread") >= 2
    answered = answers(doors, rooms, ABOUT_AGENTS)
    assert statuses(answered) == {200}
    for name in ("overview", "agent-outcomes", "api-verdicts"):
        assert "version 90 cannot be read" in text(answered[name]), name
    assert "version 90 cannot be read" in frozen_text(project)
    held = OutcomeDefinition.objects.get(number=90).held
    form = {"task": "other", "expect": "pass", "number": "90", "act": "save"}
    answer = doors("web").post(url(project, "agent-outcomes"), form)
    assert answer.status_code == 302
    now = OutcomeDefinition.objects.get(number=91)
    assert now.held == [*held, {"task": "other", "expect": "pass"}]
    assert now.decision == {"kind": "quantum"}


@pytest.mark.parametrize("what", NOT_OF_ONE)
def test_other_stored_things_that_cannot_be_read_are_told_in_a_sentence(
    what, rooms, project, doors
):
    model, values, names = NOT_OF_ONE[what]
    with spoilt(model, **values):
        scored_anew(project)
        assert AgentVerdict.objects.get(agent_id=rooms["agent_id"]).colour == "green"
        answered = answers(doors, rooms, names)
        told = IN_A_SENTENCE.get(what, set())
        assert {name for name, a in answered.items() if a.status_code != 200} == told
        for name in told:
            assert answered[name].status_code == 422
            assert "this version of Evalsite" in text(answered[name])
        if model is Definition:
            for name in ("contract", "contract-edit"):
                page = text(answered[name])
                assert "How it is stored" in page
                assert "future" in page
            for said in (text(answered["overview"]), frozen_text(project)):
                assert "a check of its own, cannot be read" in said


def test_verdicts_that_another_release_settled_are_settled_anew(project, rooms, doors):
    with spoilt(ProjectVerdict, detail={"report": {"future": 1}}):
        assert statuses(answers(doors, rooms, ("overview", "api-verdicts"))) == {200}
        scored(project)
        assert "headline" in ProjectVerdict.objects.get().detail["report"]


def test_a_case_that_cannot_be_read_leaves_as_it_is_stored(rooms, doors):
    stored = zstandard.compress(msgspec.json.encode({"format": 99}))
    with spoilt(ReplayCase, content=stored):
        page = doors("web").get(url(Project.objects.get(), "replay-cases-jsonl"))
        assert b"".join(page.streaming_content) == b'{"format":99}\n'
