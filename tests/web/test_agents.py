"""The pages of agents: the list, one agent, its names, what is asked of it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Project, User
from apps.accounts.permissions import Role
from apps.agents.models import Agent, AgentName
from apps.agents.operations import Asked, define_agent
from apps.agents.queries import current_definition
from apps.scoring.models import AgentTaskScore, Conduct
from apps.verdicts.models import AgentVerdict
from tests.agents.making import KNOWS_27, make_agent
from tests.desks import FAIL, desk_trace
from tests.factories import NOW, make_member, make_project, make_user, upload_traces
from tests.scored import asked_of, scored
from tests.web.hostile import HTML
from tests.web.visiting import assert_inert, text, url

ROUTES = ("billing", "Billing ", "refunds", "billing", "refunds", "sales")


def desk(trial: int, *, task: str = "ticket 1", memory: str = "No notes.", **more):
    route = ROUTES[trial % len(ROUTES)]
    return desk_trace(
        ("triage", [("says", {"route": route, "amount": 10 * trial})]),
        (
            "memory",
            [("calls", ("search_notes", {"topic": "number"}, [])), ("says", memory)],
        ),
        (
            "writer",
            [("calls", ("send_mail", {"to": "A-4471"}, "ok")), ("says", "Done.")],
        ),
        task=task,
        trial=trial,
        **more,
    )


def make_desk() -> None:
    project = make_project(owner=make_user("olga"), name="Support desk")
    upload_traces(
        project,
        *(desk(trial) for trial in range(1, 6)),
        *(desk(trial, task="ticket 2", outcome=FAIL) for trial in (1, 2)),
    )
    make_agent(project, "night watch")
    scored(project)
    asked_of(project, "memory", KNOWS_27)
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


def agent(name: str) -> Agent:
    return Agent.objects.get(name=name)


class TestTheList:
    def test_masked_agents_stand_first_and_gaps_are_named(self, web, project):
        page = text(web.get(url(project, "agents")))
        assert "memory is red in 5 of 5 traces that passed" in page
        rows = page.split("<tbody>")[1].split("</tbody>")[0]
        names = [part.split("</a>")[0] for part in rows.split('<th scope="row">')[1:]]
        assert [name.rpartition(">")[2] for name in names] == [
            "memory",
            "triage",
            "writer",
            "night watch",
        ]
        assert "5 of 5" in rows.split("</tr>")[0]
        assert "Contracts broke in 7 of 7" in rows.split("</tr>")[0]
        assert "1 agent that no task exercises" in page
        assert "1 agent without a contract" not in page
        assert "2 agents without a contract" in page
        assert "send_mail" in page

    def test_an_empty_project_says_where_agents_come_from(self, web, project):
        owner = User.objects.get(username="olga")
        page = text(web.get(url(make_project(owner=owner), "agents")))
        assert "No agent yet" in page
        assert "Add an agent by hand" in page

    def test_an_agent_is_added_by_hand_once_and_is_unknown(self, web, project):
        where = url(project, "agent-new")
        answer = web.post(where, {"name": "Escalation"})
        made = agent("Escalation")
        assert answer["Location"] == url(project, "agent", made.pk)
        scored(project)
        assert AgentVerdict.objects.get(agent=made).colour == "unknown"
        assert "2 agents that no task exercises" in text(
            web.get(url(project, "agents"))
        )
        again = web.post(where, {"name": "escalation"})
        assert again.status_code == 409
        assert "is here already" in text(again)

    def test_while_something_waits_the_page_says_so(self, web, project):
        asked_of(project, "writer", KNOWS_27)
        assert "not final" in text(web.get(url(project, "agents")))

    def test_twice_the_agents_and_traces_are_the_same_queries(self, web, project):
        def queries() -> int:
            with CaptureQueriesContext(
                connection,
            ) as seen:
                web.get(url(project, "agents"))
                web.get(url(project, "agent", agent("memory").pk))
            return len(seen)

        queries()
        before = queries()
        upload_traces(
            project,
            *(desk(trial, task="ticket 3") for trial in range(6, 13)),
            desk_trace(("auditor", [("says", "Fine.")]), ("clerk", [("says", "Ok.")])),
        )
        for name in ("a", "b", "c"):
            make_agent(project, name)
        scored(project)
        assert queries() == before


class TestOneAgent:
    def test_it_tells_the_verdict_and_where_it_is_masked(self, web, project):
        page = text(web.get(url(project, "agent", agent("memory").pk)))
        assert "Contracts broke in 7 of 7" in page
        assert "5 of 5 (100 %" in page
        newest = Conduct.objects.filter(is_masked=True).latest("trace_id").trace
        assert url(project, "trace", newest.pk) in page
        assert "“knows the number” broke." in page
        assert "7 broken" in page
        assert "the newest trace in which it broke" in page

    def test_it_lists_decisions_with_counts_and_the_tasks_worst_first(
        self, web, project
    ):
        page = text(web.get(url(project, "agent", agent("triage").pk)))
        assert "What the automatic rules find first" in page
        decisions = page.split('id="decisions"')[1].split("</table>")[0]
        assert "3 of 7" in decisions
        tasks = page.split('id="tasks"')[1].split("</table>")[0]
        score = AgentTaskScore.objects.get(agent=agent("triage"), task__key="ticket 1")
        assert tasks.index("ticket 1") < tasks.index("ticket 2")
        assert f"{score.majority} of 5" in tasks
        assert "non-deterministic" in tasks

    def test_inputs_and_outputs_are_loaded_when_they_are_asked_for(self, web, project):
        where = url(project, "agent", agent("triage").pk)
        plain = text(web.get(where))
        assert "Show recent inputs and outputs" in plain
        assert "charged twice" not in plain
        page = text(web.get(where + "?recent=1"))
        assert "charged twice" in page
        assert "route" in page
        part = web.get(where + "?recent=1", headers={"HX-Request": "true"})
        assert text(part).startswith("<section")

    def test_masked_traces_are_paged(self, web, project):
        oldest = Conduct.objects.filter(is_masked=True).earliest("trace_id").trace_id
        where = url(project, "agent", agent("memory").pk)
        page = text(web.get(f"{where}?before={oldest}"))
        assert "“knows the number” broke." not in page

    def test_a_person_says_which_tools_write(self, web, project):
        memory = agent("memory")
        fields = {"tool": ["search_notes"], "tools": "keep_note\n"}
        web.post(url(project, "agent-tools", memory.pk), fields)
        memory.refresh_from_db()
        assert memory.writing_tools == ["keep_note", "search_notes"]
        page = text(web.get(url(project, "agent", memory.pk)))
        tools = page.split('id="tools"')[1].split("</section>")[0]
        assert "writes" in tools
        assert "keep_note" in tools

    def test_a_viewer_sees_everything_and_why_nothing_can_be_pressed(
        self, client, project
    ):
        client.force_login(make_member(project, Role.VIEWER))
        page = text(client.get(url(project, "agent", agent("memory").pk)))
        assert "Ending 27" not in page
        assert "ending 27" in page
        assert "Only a maintainer or higher may change agents" in page
        assert "Take out" not in page
        for name in ("agents", "agent-outcomes", "agent-file"):
            assert "Only a maintainer or higher" in text(client.get(url(project, name)))


class TestNames:
    def test_no_agent_is_chosen_until_somebody_chooses_one(self, web, project):
        page = text(web.get(url(project, "agent", agent("writer").pk)))
        empty = 'required><option value="">choose an agent</option>'
        assert f'<select id="into" name="into" {empty}' in page
        assert "selected" not in page.split('id="into"')[1].split("</select>")[0]

    def test_a_merge_moves_the_names_and_its_history_undoes_it(self, web, project):
        writer, memory = agent("writer"), agent("memory")
        answer = web.post(
            url(project, "agent-merge", writer.pk), {"into": str(memory.pk)}
        )
        assert answer["Location"] == url(project, "agent", memory.pk)
        assert set(
            AgentName.objects.filter(agent=memory).values_list("key", flat=True)
        ) == {"memory", "writer"}
        scored(project)
        assert Conduct.objects.filter(agent=writer).count() == 0
        assert "No recorded name stands" in text(
            web.get(url(project, "agent", writer.pk))
        )
        page = text(web.get(url(project, "agent", memory.pk)))
        assert "gave “writer” of writer to memory." in page
        assert f'name="to" value="{writer.pk}"' in page
        web.post(
            url(project, "agent-name", memory.pk), {"key": "writer", "to": writer.pk}
        )
        scored(project)
        assert Conduct.objects.filter(agent=writer).count() == 7

    def test_a_name_is_split_off_again(self, web, project):
        writer, memory = agent("writer"), agent("memory")
        web.post(url(project, "agent-merge", writer.pk), {"into": str(memory.pk)})
        answer = web.post(
            url(project, "agent-name", memory.pk), {"key": "writer", "to": "own"}
        )
        assert answer["Location"] == url(project, "agent", writer.pk)
        assert AgentName.objects.get(key="writer").agent == writer

    def test_an_agent_added_by_hand_is_taken_out_and_comes_back(self, web, project):
        watch = agent("night watch")
        asked_of(project, watch.name, KNOWS_27)
        page = text(web.get(url(project, "agent", watch.pk)))
        assert "Take it out of the inventory" in page
        answer = web.post(url(project, "agent-remove", watch.pk))
        assert answer["Location"] == url(project, "agents")
        scored(project)
        assert not AgentVerdict.objects.filter(agent=watch).exists()
        web.post(url(project, "agent-new"), {"name": "Night-Watch"})
        scored(project)
        assert AgentVerdict.objects.get(agent=watch).colour == "unknown"
        assert current_definition(watch).contracts == [KNOWS_27]

    def test_an_agent_that_traces_name_is_not_taken_out(self, web, project):
        memory = agent("memory")
        answer = web.post(url(project, "agent-remove", memory.pk))
        assert answer.status_code == 409
        assert "Traces name “memory”" in text(answer)
        assert AgentName.objects.filter(agent=memory).exists()

    def test_an_agent_of_another_project_takes_no_name(self, web, project):
        elsewhere = make_agent(make_project(name="Elsewhere"))
        memory = agent("night watch")
        for name, fields in (
            ("agent-merge", {"into": elsewhere.pk}),
            ("agent-name", {"key": "night watch", "to": elsewhere.pk}),
        ):
            assert web.post(url(project, name, memory.pk), fields).status_code == 404
        assert AgentName.objects.get(key="night watch").agent == memory

    def test_a_name_for_people_is_text_and_changes_no_recorded_name(self, web, project):
        fields = {"name": HTML[:200], "description": HTML[:500]}
        assert web.post(url(project, "agent-rename", agent("memory").pk), fields)
        found = AgentName.objects.get(key="memory").agent
        assert found.name == " ".join(HTML[:200].split())
        for name, more in (("agents", ()), ("agent", (found.pk,))):
            assert_inert(web.get(url(project, name, *more)).content.decode())


class TestVersions:
    def test_taking_a_contract_out_makes_the_agent_unknown_and_is_undone(
        self, web, project
    ):
        memory = agent("memory")
        where = url(project, "agent-contract-remove", memory.pk, 1)
        assert web.post(where, {"number": "1"}).status_code == 302
        scored(project)
        assert AgentVerdict.objects.get(agent=memory).colour == "unknown"
        page = text(web.get(url(project, "agent", memory.pk)))
        assert "Removed “knows the number”." in page
        assert "counts now" in page
        restore = url(project, "agent-restore", memory.pk)
        web.post(restore, {"version": "1", "number": "2"})
        current = current_definition(memory)
        assert (current.number, current.contracts) == (3, [KNOWS_27])
        assert current.note == "As in version 1."
        assert current.created_by.username == "olga"
        scored(project)
        assert AgentVerdict.objects.get(agent=memory).colour == "red"

    def test_what_somebody_changed_meanwhile_is_not_overwritten(self, web, project):
        memory = agent("memory")
        asked_of(project, "memory")
        where = url(project, "agent-restore", memory.pk)
        answer = web.post(where, {"version": "1", "number": "1"})
        assert answer.status_code == 409
        assert "Somebody changed what is asked" in text(answer)
        assert current_definition(memory).contracts == []

    def test_numbers_of_another_version_are_not_shown_for_this_one(self, web, project):
        memory = agent("memory")
        other = {"name": "says something", "kind": "regex", "pattern": "notes"}
        define_agent(
            agent=memory,
            asked=Asked(held=(other,)),
            user_id=None,
            now=NOW + timedelta(days=1),
        )
        page = text(web.get(url(project, "agent", memory.pk)))
        contracts = page.split('id="contracts"')[1].split("</section>")[0]
        assert "not scored yet" in contracts
        assert "broken" not in contracts
