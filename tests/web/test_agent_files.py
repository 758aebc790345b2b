"""What is expected of outcomes, and definitions that leave and come as files."""

from __future__ import annotations

from django.core.files.uploadedfile import SimpleUploadedFile

from apps.accounts.models import User
from apps.accounts.permissions import Role
from apps.agents.models import Agent, OutcomeDefinition
from apps.agents.queries import current_definition, outcome_definition
from apps.scoring.models import TraceScore
from tests.agents.making import KNOWS_27, make_agent
from tests.factories import make_member, make_project
from tests.scored import asked_of, scored
from tests.web.table_rows import rows_of_all_tables
from tests.web.test_agent_definitions import (
    made,
    project,
    send,
    triage,
    uploads_dir,
    web,
)
from tests.web.visiting import text, url

__all__ = ["made", "project", "triage", "uploads_dir", "web"]


class TestOutcomes:
    def test_an_expectation_is_tried_saved_edited_and_taken_out(self, web, project):
        where = url(project, "agent-outcomes")
        fields = {"task": "ticket 1", "expect": "label", "labels": "solved"}
        page = text(send(web, where, **fields))
        assert "It counts for 5 traces." in page
        assert "5 traces go from passed to outcome unknown" in page
        assert OutcomeDefinition.objects.count() == 0
        assert send(web, where, "save", number="0", **fields).status_code == 302
        scored(project)
        assert not TraceScore.objects.filter(outcome="green").exists()
        page = text(web.get(where + "?task=ticket+1"))
        assert "The label of the outcome must be one of “solved”." in page
        assert 'value="ticket 1"' in page
        send(web, where, "save", **{**fields, "expect": "pass", "labels": ""})
        held = outcome_definition(project.pk).expectations
        assert held == [{"task": "ticket 1", "expect": "pass"}]
        web.post(
            url(project, "agent-outcomes-remove"), {"task": "ticket 1", "number": "2"}
        )
        assert outcome_definition(project.pk).expectations == []
        restore = url(project, "agent-outcomes-restore")
        assert web.post(restore, {"version": "2", "number": "2"}).status_code == 409
        web.post(restore, {"version": "2", "number": "3"})
        assert outcome_definition(project.pk).expectations == held

    def test_what_is_wrong_is_said_beside_its_field(self, web, project):
        where = url(project, "agent-outcomes")
        for fields, field in (
            ({"task": "", "expect": "pass"}, "task"),
            ({"task": "*", "expect": "share", "at_least": "2"}, "at_least"),
            ({"task": "*", "expect": "points", "at_least": "many"}, "at_least"),
            ({"task": "*", "expect": "label"}, "labels"),
        ):
            answer = send(web, where, "save", **fields)
            assert answer.status_code == 400
            assert f'id="f_{field}_error">' in text(answer)
        assert OutcomeDefinition.objects.count() == 0

    def test_a_viewer_may_look_and_not_save(self, client, project):
        client.force_login(make_member(project, Role.VIEWER))
        where = url(project, "agent-outcomes")
        assert client.get(where).status_code == 200
        assert send(client, where, "save", task="*", expect="pass").status_code == 403


FILE = """evalsite: 1
agents:
  triage:
    decision: {kind: jmespath, expression: route}
    contracts:
      - {name: route is known, kind: one_of, subject: decision, values: [billing]}
  night watch:
    contracts:
      - {name: says something, kind: regex, pattern: "."}
tasks:
  "ticket *": {expect: pass}
"""


class TestAFile:
    def stamp(self, page: str) -> str:
        return page.split('name="seen" value="')[1].split('"')[0]

    def test_it_is_looked_at_then_taken_as_a_whole(self, web, project, triage):
        asked_of(project, "triage", KNOWS_27)
        where = url(project, "agent-file")
        before = rows_of_all_tables()
        sent = SimpleUploadedFile("agents.yaml", FILE.encode())
        page = text(web.post(where, {"act": "preview", "file": sent}))
        for words in (
            "Added “route is known”",
            "Removed “knows the number”",
            "The agent decision is found in another way",
            "new agent",
            "Added “ticket *”",
        ):
            assert words in page
        assert rows_of_all_tables() == before
        fields = {"text": FILE, "seen": self.stamp(page)}
        answer = send(web, where, "take", **fields)
        assert answer["Location"] == url(project, "agents")
        assert [one["name"] for one in current_definition(triage).contracts] == [
            "route is known"
        ]
        assert Agent.objects.get(name="night watch").is_by_hand
        assert outcome_definition(project.pk).expectations[0]["task"] == "ticket *"
        scored(project)

    def test_what_leaves_changes_nothing_when_it_comes_back(self, web, project):
        page = text(send(web, url(project, "agent-file"), text=FILE))
        send(web, url(project, "agent-file"), "take", text=FILE, seen=self.stamp(page))
        answer = web.get(url(project, "agent-yaml"))
        assert answer["Content-Disposition"].startswith("attachment")
        again = answer.content.decode()
        page = text(send(web, url(project, "agent-file"), text=again))
        assert "Nothing: everything in it is asked already." in page

    def test_it_comes_to_another_project_as_it_left_this_one(self, web, project):
        page = text(send(web, url(project, "agent-file"), text=FILE))
        send(web, url(project, "agent-file"), "take", text=FILE, seen=self.stamp(page))
        here = web.get(url(project, "agent-yaml")).content
        other = make_project(owner=User.objects.get(username="olga"), name="Other")
        page = text(send(web, url(other, "agent-file"), text=here.decode()))
        send(
            web,
            url(other, "agent-file"),
            "take",
            text=here.decode(),
            seen=self.stamp(page),
        )
        assert web.get(url(other, "agent-yaml")).content == here

    def test_everything_that_is_wrong_is_told_and_nothing_is_taken(
        self, web, project, triage
    ):
        wrong = FILE.replace("kind: regex", "kind: magic").replace("pass}", "maybe}")
        before = rows_of_all_tables()
        answer = send(web, url(project, "agent-file"), "take", text=wrong, seen="x")
        page = text(answer)
        assert answer.status_code == 400
        assert "Agent “night watch”, contract 1 (“says something”)" in page
        assert "Task “ticket *”" in page
        assert rows_of_all_tables() == before

    def test_it_is_not_taken_when_something_changed_since_it_was_looked_at(
        self, web, project, triage
    ):
        where = url(project, "agent-file")
        seen = self.stamp(text(send(web, where, text=FILE)))
        asked_of(project, "triage", KNOWS_27)
        answer = send(web, where, "take", text=FILE, seen=seen)
        assert answer.status_code == 400
        assert "Somebody changed what is asked" in text(answer)
        assert current_definition(triage).contracts == [KNOWS_27]
        changed = FILE.replace("[billing]", "[sales]")
        seen = self.stamp(text(send(web, where, text=FILE)))
        assert send(web, where, "take", text=changed, seen=seen).status_code == 400

    def test_two_names_of_one_agent_are_refused(self, web, project):
        make_agent(project, "night watch")
        twice = FILE.replace("  night watch:", "  Night-Watch:").replace(
            "  triage:", "  NIGHT watch:"
        )
        page = text(send(web, url(project, "agent-file"), text=twice))
        assert "are the same agent here" in page

    def test_a_viewer_takes_the_file_away_and_brings_none(self, client, project):
        client.force_login(make_member(project, Role.VIEWER))
        assert client.get(url(project, "agent-yaml")).status_code == 200
        assert send(client, url(project, "agent-file"), text=FILE).status_code == 403
