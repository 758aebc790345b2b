"""Writing what agents must hold and decide: forms, previews, outcomes, files."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Project, User
from apps.agents.models import Agent, AgentDefinition
from apps.agents.queries import current_definition, outcome_definition
from apps.engine.agent_contracts import Kind, decoded_agent_contract
from apps.engine.extraction import DecisionKind
from apps.scoring.models import TraceScore
from apps.verdicts.models import AgentVerdict
from apps.web.agent_forms import HeldForm, held_initial
from tests.agents.making import KNOWS_27
from tests.desks import UNKNOWN
from tests.factories import make_project, make_user, upload_traces
from tests.scored import asked_of, scored
from tests.web.hostile import TEXTS
from tests.web.table_rows import rows_of_all_tables
from tests.web.test_agents import desk
from tests.web.visiting import assert_inert, text, url

THEN_REFUND = {"when_expression": "contains(@, 'refund')", "when_of": "input"}
FORMS = {
    "equality": {"subject": "output", "path": "route", "expected": "billing"},
    "one_of": {"subject": "output", "path": "route", "values": "billing\nrefunds"},
    "range": {"subject": "output", "path": "amount", "minimum": "0", "maximum": "35"},
    "regex": {"subject": "output", "pattern": "bill|refund|sales"},
    "subset": {"expected": '{"amount": 10}', "expected_as": "json"},
    "when_then": {**THEN_REFUND, "then_path": "route", "then_expected": "billing"},
    "json_schema": {"json_schema": '{"required": ["route", "amount"]}'},
    "cel": {"expression": "output.amount < 35.0"},
    "temporal": {"operator": "at_most", "n": "1", "select_kind": "model_call"},
}
ROUTES = ["Billing ", "refunds", "billing", "refunds", "sales"]


def make_desk() -> None:
    project = make_project(owner=make_user("olga"), name="Support desk")
    upload_traces(
        project,
        *(desk(trial) for trial in range(1, 6)),
        desk(1, task="ticket 2", outcome=UNKNOWN),
    )
    scored(project)


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_desk)


@pytest.fixture
def project(made, db):
    return Project.objects.get()


@pytest.fixture
def web(made, db, client):
    client.force_login(User.objects.get(username="olga"))
    return client


@pytest.fixture(autouse=True)
def uploads_dir(made, settings):
    settings.UPLOADS_DIR = made[1]
    return settings.UPLOADS_DIR


@pytest.fixture
def triage(project):
    return Agent.objects.get(name="triage")


def send(web, where: str, act: str = "preview", **fields):
    return web.post(where, {"act": act, **fields})


class TestAContract:
    @pytest.mark.parametrize("kind", sorted(FORMS))
    def test_each_kind_is_tried_saved_and_opened_again_as_it_was(
        self, web, project, triage, kind
    ):
        where = url(project, "agent-contract-new", triage.pk) + f"?kind={kind}"
        assert web.get(where).status_code == 200
        before = rows_of_all_tables()
        page = text(send(web, where, name="as agreed", **FORMS[kind]))
        assert "of 6 invocations" in page, page[-4000:]
        assert rows_of_all_tables() == before
        answer = send(web, where, "save", name="as agreed", number="0", **FORMS[kind])
        assert answer["Location"] == url(project, "agent", triage.pk)
        [stored] = current_definition(triage).contracts
        spec = decoded_agent_contract(stored)
        assert spec.kind == kind
        initial = held_initial(spec)
        edit = url(project, "agent-contract", triage.pk, 1)
        form = HeldForm(
            {name: value for name, value in initial.items() if value is not False},
            kind=Kind(kind),
        )
        assert form.is_valid(), form.wrong()
        assert form.wanted() == spec
        assert "as agreed" in text(web.get(edit))

    @pytest.mark.parametrize(
        ("kind", "said"),
        [
            ("equality", ["5 break it", "1 holds"]),
            ("one_of", ["3 break it", "3 hold"]),
            ("range", ["2 break it", "4 hold"]),
            ("cel", ["2 break it", "4 hold"]),
            ("temporal", ["6 hold"]),
        ],
    )
    def test_the_preview_says_what_scoring_says_after_saving(
        self, web, project, triage, kind, said
    ):
        where = url(project, "agent-contract-new", triage.pk) + f"?kind={kind}"
        fields = {**FORMS[kind], "name": "n", "normalisers": []}
        page = text(send(web, where, **fields))
        for words in said:
            assert words in page
        send(web, where, "save", **fields)
        scored(project)
        [counts] = AgentVerdict.objects.get(agent=triage).detail["contracts"]
        broken = sum(int(one.split()[0]) for one in said if "break" in one)
        assert (counts["broken"], counts["held"]) == (broken, 6 - broken)

    def test_the_preview_shows_input_output_asked_found_and_the_step(
        self, web, project, triage
    ):
        where = url(project, "agent-contract-new", triage.pk)
        fields = {**FORMS["equality"], "name": "n"}
        answer = web.post(
            where, {"act": "preview", **fields}, headers={"HX-Request": "true"}
        )
        page = text(answer)
        assert page.startswith("<section")
        assert "Please refund order A-4471" in page
        assert "<dt>Asked</dt><dd>must be “billing”</dd>" in page
        assert "<dt>Found</dt><dd>“sales”</dd>" in page
        assert "?step=2" in page

    @pytest.mark.parametrize(
        ("kind", "fields", "field", "sentence"),
        [
            ("equality", {"name": ""}, "name", "required"),
            ("equality", {"expected": ""}, "expected", "needs “expected”"),
            ("equality", {"path": "a["}, "path", ""),
            ("range", {"minimum": "ten"}, "minimum", "This is not JSON"),
            ("range", {"minimum": "9", "maximum": "1"}, "maximum", "No number is in"),
            ("regex", {"pattern": "("}, "pattern", ""),
            ("json_schema", {"json_schema": "{"}, "json_schema", "This is not JSON"),
            ("cel", {"expression": "output ="}, "expression", ""),
            ("when_then", {"when_expression": "a["}, "when_expression", ""),
            ("when_then", {"then_path": "a["}, "then_path", ""),
            ("temporal", {"n": ""}, "n", "needs a number"),
            ("equality", {"subject": "calls", "tool": ""}, "tool", "Name the tool"),
        ],
    )
    def test_what_is_wrong_is_said_beside_its_field(
        self, web, project, triage, kind, fields, field, sentence
    ):
        where = url(project, "agent-contract-new", triage.pk) + f"?kind={kind}"
        answer = send(web, where, "save", **{"name": "n", **FORMS[kind], **fields})
        page = text(answer)
        assert answer.status_code == 400
        said = page.split(f'id="f_{field}_error">')[1].split("</p>")[0]
        assert sentence in said
        assert len(said) > 10
        assert current_definition(triage) is None

    def test_an_edit_of_an_older_version_does_not_overwrite_a_newer_one(
        self, web, project, triage
    ):
        asked_of(project, "triage", KNOWS_27)
        asked_of(project, "triage")
        asked_of(project, "triage", KNOWS_27, {**KNOWS_27, "name": "second"})
        where = url(project, "agent-contract", triage.pk, 2)
        fields = {"name": "mine", "pattern": "x", "number": "1"}
        answer = send(web, where, "save", **fields)
        assert answer.status_code == 400
        assert "Somebody changed what is asked" in text(answer)
        assert send(web, where, "save", **{**fields, "number": "3"}).status_code == 302
        assert [one["name"] for one in current_definition(triage).contracts] == [
            "knows the number",
            "mine",
        ]

    def test_a_contract_over_the_agent_decision_uses_the_one_that_is_defined(
        self, web, project, triage
    ):
        decision = {"kind": "jmespath", "expression": "amount", "normalisers": []}
        asked_of(project, "triage", decision=decision)
        where = url(project, "agent-contract-new", triage.pk) + "?kind=range"
        fields = {"name": "n", "subject": "decision", "minimum": "20"}
        assert "4 hold" in text(send(web, where, **fields))

    def test_kinds_that_are_none_and_places_without_a_contract_are_not_found(
        self, web, project, triage
    ):
        new = url(project, "agent-contract-new", triage.pk)
        for query in ("?kind=magic", "?kind=when_then&then=temporal", "?then=x"):
            assert web.get(new + query).status_code == 404
        for at in (0, 1, 9):
            edit = url(project, "agent-contract", triage.pk, at)
            assert web.get(edit).status_code == 404

    @pytest.mark.parametrize("name", ["html", "surrogates", "long word", "templates"])
    def test_hostile_texts_are_texts_in_every_field(self, web, project, triage, name):
        hostile = TEXTS[name].encode("utf-8", "replace").decode().replace("\x00", "")
        for kind, fields in FORMS.items():
            where = url(project, "agent-contract-new", triage.pk) + f"?kind={kind}"
            fields = dict.fromkeys([*fields, "name", "sentence", "tasks"], hostile)
            for act in ("preview", "save"):
                answer = send(web, where, act, **fields)
                assert answer.status_code < 500
                assert_inert(answer.content.decode())


class TestADecision:
    def test_normalisers_show_what_was_written_before_them(self, web, project, triage):
        where = url(project, "agent-decision", triage.pk) + "?kind=jmespath"
        fields = {"expression": "route", "normalisers": ["case", "white_space"]}
        page = text(send(web, where, **fields))
        assert "3 distinct agent decisions in 6 runs, 4 before the normalisers" in page
        row = page.split('<th scope="row" class="break">billing</th>')[1]
        assert row.split("</tr>")[0].count("illing") == 2
        assert AgentDefinition.objects.count() == 0
        send(web, where, "save", **fields, number="0", note="As agreed.")
        saved = current_definition(triage)
        assert saved.decision["expression"] == "route"
        assert saved.note == "As agreed."
        scored(project)
        page = text(web.get(url(project, "agent", triage.pk)))
        assert "The field “route” of the output" in page

    @pytest.mark.parametrize("kind", list(DecisionKind))
    def test_each_kind_has_a_form_and_answers(self, web, project, triage, kind):
        where = url(project, "agent-decision", triage.pk) + f"?kind={kind}"
        assert web.get(where).status_code == 200
        fields = {
            "expression": "route",
            "labels": "billing\nsales",
            "arguments": "to",
            "normalisers": ["case"],
            "of": "each",
        }
        assert "In recent runs" in text(send(web, where, **fields))
        assert send(web, where, "save", **fields).status_code == 302
        spec = current_definition(triage).decision
        assert (spec["kind"], spec["of"]) == (kind.value, "each")

    def test_what_is_wrong_is_said_beside_its_field(self, web, project, triage):
        where = url(project, "agent-decision", triage.pk)
        for kind, field, value in (
            ("jmespath", "expression", "a["),
            ("regex", "expression", "("),
            ("label", "labels", ""),
        ):
            answer = send(web, f"{where}?kind={kind}", "save", **{field: value})
            assert answer.status_code == 400
            assert f'id="f_{field}_error">' in text(answer)
        assert current_definition(triage) is None

    def test_the_automatic_one_is_stored_as_none_and_keeps_the_contracts(
        self, web, project, triage
    ):
        asked_of(project, "triage", KNOWS_27, decision={"kind": "whole_output"})
        where = url(project, "agent-decision", triage.pk) + "?kind=automatic"
        usual = ["white_space", "number", "case"]
        send(web, where, "save", normalisers=usual, of="last", number="1")
        current = current_definition(triage)
        assert (current.decision, current.contracts) == (None, [KNOWS_27])

    def test_the_decision_of_the_whole_is_tried_and_saved(self, web, project):
        where = url(project, "agent-outcomes-decision") + "?kind=whole_output"
        page = text(send(web, where, prose="on", normalisers=["case"]))
        assert "1 distinct agent decision in 6 runs" in page
        assert "done." in page
        send(web, where, "save", prose="on", normalisers=["case"])
        assert outcome_definition(project.pk).decision["prose"] is True
        scored(project)
        assert set(TraceScore.objects.values_list("shown", flat=True)) == {"Done."}

    def test_a_preview_takes_the_same_queries_for_twice_the_traces(
        self, web, project, triage
    ):
        where = url(project, "agent-decision", triage.pk) + "?kind=jmespath"

        def queries() -> int:
            with CaptureQueriesContext(connection) as seen:
                send(web, where, expression="route")
            return len(seen)

        queries()
        before = queries()
        upload_traces(project, *(desk(trial, task="ticket 3") for trial in range(40)))
        scored(project)
        assert queries() == before
        page = text(send(web, where, expression="route"))
        assert "in 46 runs" in page

    def test_at_most_50_invocations_are_looked_at(self, web, project, triage):
        upload_traces(project, *(desk(trial, task="ticket 3") for trial in range(60)))
        scored(project)
        where = url(project, "agent-decision", triage.pk) + "?kind=jmespath"
        assert "in 50 runs" in text(send(web, where, expression="route"))
