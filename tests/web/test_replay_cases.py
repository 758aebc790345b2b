"""Pages of cases: frozen from traces and tasks, from files, by hand; and their lists."""

from __future__ import annotations

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Project, User
from apps.accounts.permissions import Role
from apps.agents.models import Agent
from apps.engine.replay.case import case_hash
from apps.replays.cases import case_of
from apps.replays.models import ReplayCase
from apps.traces.models import Task, Trace
from tests.factories import make_member, make_project
from tests.replays.rows import make_nameless
from tests.web.hostile import HTML
from tests.web.test_agent_definitions import made, project, triage, uploads_dir, web
from tests.web.visiting import assert_inert, text, url

__all__ = ["made", "project", "triage", "uploads_dir", "web"]

LINES = "\n".join([
    '{"agent": "triage", "name": "one", "input": "I was charged twice"}',
    "",
    '{"agent": "triage", "input": ',
    '{"agent": "nobody known", "input": "x"}',
    '{"agent": "triage", "inptu": "x"}',
    '{"input": "no agent"}',
])  # fmt: skip


def invocation_of(trace, name):
    return trace.agentinvocation_set.get(agent=name).number


class TestFreezing:
    def test_an_invocation_of_a_trace_becomes_a_case_and_is_taken_back(
        self, web, project, triage
    ):
        trace = Trace.objects.order_by("pk").first()
        page = text(web.get(url(project, "trace", trace.pk)))
        assert page.count(">Freeze as a case<") >= 2
        number = page.split('name="invocation" value="')[1].split('"')[0]
        freeze = url(project, "trace-freeze", trace.pk)
        answer = web.post(freeze, {"invocation": number, "back": "trace"})
        assert answer["Location"].endswith("#freezing")
        row = ReplayCase.objects.get()
        assert (row.trace_id, row.source) == (trace.pk, "trace")
        assert row.hash == case_hash(case_of(row))
        page = text(web.get(url(project, "trace", trace.pk)))
        assert "1 frozen" in page
        again = web.post(freeze, {"invocation": number})
        assert again["Location"] == url(project, "replay-case", row.pk)
        assert ReplayCase.objects.count() == 1
        page = text(web.get(url(project, "replay-case", row.pk)))
        for words in (
            "What was not recorded",
            "Recorded tool calls",
            "Input",
            row.hash,
        ):
            assert words in page
        retire = url(project, "replay-case-retire", row.pk)
        back = web.post(retire, {"back": "trace"})
        assert back["Location"] == url(project, "trace", trace.pk)
        row.refresh_from_db()
        assert row.is_retired
        web.post(freeze, {"invocation": number})
        row.refresh_from_db()
        assert not row.is_retired

    @pytest.mark.parametrize("sent", ["999", "9" * 18, "x", "-1"])
    def test_an_invocation_that_is_none_is_refused(self, web, project, sent):
        freeze = url(project, "trace-freeze", Trace.objects.first().pk)
        answer = web.post(freeze, {"invocation": sent})
        assert answer.status_code in {400, 409}
        assert ReplayCase.objects.count() == 0

    def test_inputs_of_all_trials_of_a_task_are_frozen_at_once(
        self, web, project, triage
    ):
        task = Task.objects.get(key="ticket 1")
        page = text(web.get(url(project, "task", task.pk)))
        assert "Freeze its inputs of all trials" in page
        freeze = url(project, "task-freeze", task.pk)
        page = text(web.post(freeze, {"agent": triage.pk}, follow=True))
        count = ReplayCase.objects.count()
        assert 1 <= count <= 5
        assert (
            f"“triage” frozen: {'1 case' if count == 1 else f'{count} cases'}" in page
        )
        assert "Frozen from the trials of" in page
        assert web.post(freeze, {"agent": ""}).status_code == 400
        assert web.post(freeze, {"agent": "999999"}).status_code == 404
        ids = list(ReplayCase.objects.values_list("pk", flat=True))
        chosen = url(project, "replay-cases-chosen")
        planned = web.post(chosen, {"case": ids})
        assert planned["Location"].startswith(url(project, "replay-plan") + "?case=")
        web.post(chosen, {"case": ids, "act": "retire"})
        assert not ReplayCase.objects.filter(is_retired=False).exists()
        assert web.post(chosen, {}).status_code == 400

    def test_recent_invocations_of_an_agent_can_be_frozen(self, web, project, triage):
        page = text(web.get(url(project, "agent", triage.pk) + "?recent=1"))
        assert page.count(">Freeze as a case<") >= 1

    def test_a_viewer_sees_why_not(self, client, project, made):
        client.force_login(make_member(project, Role.VIEWER))
        trace = Trace.objects.first()
        page = text(client.get(url(project, "trace", trace.pk)))
        assert "Only a reviewer or higher may keep cases" in page
        freeze = url(project, "trace-freeze", trace.pk)
        assert client.post(freeze, {"invocation": ""}).status_code == 403


class TestFiles:
    def test_good_lines_are_kept_and_bad_ones_named_with_their_place(
        self, web, project
    ):
        where = url(project, "replay-cases-file")
        answer = web.post(where, {"text": LINES})
        page = text(answer)
        assert answer.status_code == 200
        assert "1 case read" in page
        assert "4 lines refused" in page
        assert "“inptu” is no field of a case" in page
        assert "No agent of this project is called “nobody known”" in page
        for line in (3, 5, 6):
            assert f'<th scope="row" class="r">{line}</th>' in page
        page = text(web.post(where, {"text": LINES}))
        assert "1 had been kept before" in page
        row = ReplayCase.objects.get()
        assert (row.source, row.name) == ("file", "one")

    def test_a_download_comes_back_as_the_same_cases(self, web, project, triage):
        freeze = url(project, "task-freeze", Task.objects.get(key="ticket 1").pk)
        web.post(freeze, {"agent": triage.pk})
        hashes = set(ReplayCase.objects.values_list("hash", flat=True))
        where = url(project, "replay-cases-jsonl")
        content = b"".join(web.get(where).streaming_content)
        ReplayCase.objects.all().delete()
        sent = SimpleUploadedFile("cases.jsonl", content)
        page = text(web.post(url(project, "replay-cases-file"), {"file": sent}))
        assert f"{len(hashes)} case" in page
        assert set(ReplayCase.objects.values_list("hash", flat=True)) == hashes
        one = ReplayCase.objects.first()
        only = b"".join(web.get(f"{where}?case={one.pk}").streaming_content)
        assert len(only.splitlines()) == 1

    def test_a_download_of_the_agent_without_a_name_comes_back(self, web, project):
        agent = make_nameless(project)
        new = url(project, "replay-case-new")
        web.post(new, {"agent": agent.pk, "name": "one", "given": "Where is it?"})
        [row] = ReplayCase.objects.all()
        assert (row.agent, case_of(row).agent) == (agent, "")
        content = b"".join(
            web.get(url(project, "replay-cases-jsonl")).streaming_content
        )
        ReplayCase.objects.all().delete()
        sent = SimpleUploadedFile("cases.jsonl", content)
        page = text(web.post(url(project, "replay-cases-file"), {"file": sent}))
        assert "1 case read" in page
        assert "line refused" not in page
        [again] = ReplayCase.objects.all()
        assert (again.agent, again.hash) == (agent, row.hash)

    @pytest.mark.parametrize("lines", ["", "  \n ", "nothing", '{"agent": 3}'])
    def test_a_file_without_a_case_is_refused_in_words(self, web, project, lines):
        answer = web.post(url(project, "replay-cases-file"), {"text": lines})
        assert answer.status_code == 400
        assert ReplayCase.objects.count() == 0


class TestByHand:
    FIELDS = {
        "name": "double charge",
        "given": "I was charged twice",
        "system": "You sort tickets.",
        "tools": '[{"name": "lookup"}]',
        "calls": '[{"tool": "lookup", "arguments": {"id": 7}, "result": "paid"}]',
        "state": '{"seen": 1}',
    }

    def test_it_is_kept_and_shown_whole(self, web, project, triage):
        where = url(project, "replay-case-new")
        assert web.get(f"{where}?agent={triage.pk}").status_code == 200
        answer = web.post(where, {**self.FIELDS, "agent": triage.pk})
        row = ReplayCase.objects.get()
        assert answer["Location"] == url(project, "replay-case", row.pk)
        case = case_of(row)
        assert [one["role"] for one in case.messages] == ["system", "user"]
        assert case.calls[0].result == "paid"
        page = text(web.get(answer["Location"]))
        for words in (
            "You sort tickets.",
            "lookup",
            "paid",
            "State: what it remembered",
        ):
            assert words in page
        web.post(url(project, "replay-case-rename", row.pk), {"name": "renamed"})
        row.refresh_from_db()
        assert row.name == "renamed"

    @pytest.mark.parametrize(
        ("fields", "place"),
        [
            ({"given": "{", "given_as": "json"}, "given"),
            ({"given": ""}, "given"),
            ({"given": "", "system": ""}, "given"),
            ({"tools": "{}"}, "tools"),
            ({"tools": '[{"title": "x"}]'}, "tools"),
            ({"calls": "[1]"}, "calls"),
            ({"calls": "nope"}, "calls"),
            ({"name": ""}, "name"),
            ({"agent": "x"}, "agent"),
        ],
    )
    def test_what_is_wrong_is_said_at_its_field(
        self, web, project, triage, fields, place
    ):
        where = url(project, "replay-case-new")
        answer = web.post(where, {**self.FIELDS, "agent": triage.pk, **fields})
        assert answer.status_code == 400
        assert f'id="f_{place}_error">' in text(answer)
        assert ReplayCase.objects.count() == 0


class TestTheList:
    def test_it_is_searched_filtered_and_paged_with_the_same_queries(
        self, web, project, triage, django_assert_max_num_queries
    ):
        def add(start, count):
            lines = "\n".join(
                json.dumps(
                    {"agent": "triage", "input": f"input {one}", "name": f"n{one}"}
                )
                for one in range(start, start + count)
            )
            assert web.post(url(project, "replay-cases-file"), {"text": lines})

        where = url(project, "replay-cases")
        assert "No case yet" in text(web.get(where))
        add(0, 20)
        with CaptureQueriesContext(connection) as found:
            web.get(where)
        few = len(found.captured_queries)
        add(20, 40)
        with django_assert_max_num_queries(few):
            page = web.get(where)
        assert text(page).count('name="case"') == 50
        after = text(page).split('href="?before=')[1].split('"')[0]
        assert text(web.get(f"{where}?before={after}")).count('name="case"') == 10
        assert text(web.get(f"{where}?q=input+59")).count('name="case"') == 1
        assert "No case like that" in text(web.get(f"{where}?q=nothing"))
        assert text(web.get(f"{where}?source=trace")).count('name="case"') == 0
        assert text(web.get(f"{where}?agent={triage.pk}")).count('name="case"') == 50

    def test_texts_of_strangers_stay_texts(self, web, project, triage):
        value = {"agent": "triage", "name": HTML[:150], "input": HTML, "state": HTML,
                 "messages": [{"role": "user", "content": HTML}],
                 "tools": [{"name": HTML[:100], "description": HTML}],
                 "calls": [{"tool": HTML[:50], "arguments": HTML, "result": HTML}]}  # fmt: skip
        web.post(url(project, "replay-cases-file"), {"text": json.dumps(value)})
        row = ReplayCase.objects.get()
        for where in (
            url(project, "replay-cases"),
            url(project, "replay-case", row.pk),
            url(project, "replay-plan") + f"?case={row.pk}",
            url(project, "replay-memory") + f"?case={row.pk}",
        ):
            answer = web.get(where)
            assert answer.status_code == 200
            assert_inert(answer.content.decode())

    def test_cases_of_another_project_are_not_there(self, web, project, triage):
        other = make_project(owner=User.objects.get(username="olga"), name="Elsewhere")
        web.post(
            url(project, "replay-cases-file"),
            {"text": '{"agent": "triage", "input": "x"}'},
        )
        row = ReplayCase.objects.get()
        assert web.get(url(other, "replay-case", row.pk)).status_code == 404
        assert (
            web.get(url(other, "replay-plan") + f"?agent={triage.pk}").status_code
            == 404
        )
        assert Project.objects.count() == 2
        assert Agent.objects.filter(project=other).count() == 0
