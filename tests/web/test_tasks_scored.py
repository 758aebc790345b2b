"""The list and the page of tasks whose trials are scored."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.models import Project, User
from apps.accounts.permissions import Role
from apps.engine.consistency import RULE
from apps.scoring.models import AgentTaskScore, TaskScore
from apps.traces.models import Task, Trace
from apps.verdicts.models import TrialNote
from apps.web.pages.tasks import in_short
from tests.desks import desk_trace
from tests.factories import make_member, make_project, make_user, upload_traces
from tests.masked_desks import KNOWS, desk, make_masked_desk
from tests.scored import asked_of, scored
from tests.web.forking import make_forking_project, task_of
from tests.web.visiting import text, url


@pytest.fixture(scope="module")
def made(stand):
    return stand(make_forking_project)


@pytest.fixture
def project(made, db):
    return Project.objects.get()


@pytest.fixture
def owner(made, db):
    return User.objects.get(username="olga")


def listed(web, project, query: str = "") -> list[str]:
    page = text(web.get(url(project, "tasks") + query))
    return re.findall(r'row-link" href="[^"]+">([^<]+)<', page)


def row_of(web, project, key: str, query: str = "") -> str:
    page = text(web.get(url(project, "tasks") + query))
    rows = page.split("<tr data-row>")[1:]
    return next(row for row in rows if f">{key}<" in row)


def page_of(web, project, key: str, query: str = "") -> str:
    return text(web.get(url(project, "task", task_of(key).pk) + query))


def test_the_list_shows_the_worst_first_and_what_is_not_scored_last(web, project):
    assert listed(web, project) == ["masked", "fork", "unstable", "wrong", "waiting"]


def test_a_mixed_task_is_listed_with_its_first_decisive_fork(web, project):
    assert listed(web, project, "?outcome=mixed") == ["fork"]
    row = row_of(web, project, "fork", "?outcome=mixed")
    assert "mixed" in row
    assert "2 of 5 (40 %; 11.8 % to 76.9 %) passed" in row
    assert "1 fork</a>, first at step 4" in row
    assert "all 2 that went “refund(order=17)” passed" in row
    assert f'href="{url(project, "task-forks", task_of("fork").pk)}"' in row


def test_what_is_not_scored_is_said_and_never_a_zero(web, project):
    row = row_of(web, project, "waiting")
    assert "not scored yet" in row
    assert 'data-label="Trials">2<' in row
    assert "0 of" not in row
    page = text(web.get(url(project, "tasks")))
    assert "2 traces are not scored yet, so what stands here is not final" in page
    assert "1 not scored yet" in page


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?outcome=passed", ["masked"]),
        ("?outcome=failed", ["wrong"]),
        ("?outcome=unknown", ["unstable"]),
        ("?masked=yes", ["masked"]),
        ("?stability=stable_but_wrong", ["wrong"]),
        ("?stability=stable", ["masked", "wrong"]),
        ("?forks=decisive", ["fork"]),
        ("?forks=some", ["fork", "unstable"]),
        ("?forks=none", ["masked", "wrong"]),
        ("?q=aiti", ["waiting"]),
        ("?sort=name", ["fork", "masked", "unstable", "waiting", "wrong"]),
        ("?sort=trials&outcome=passed", ["masked"]),
        ("?outcome=nonsense&sort=nonsense&q=unsta", ["unstable"]),
    ],
)
def test_filters_come_from_the_address(web, project, query, found):
    assert listed(web, project, query) == found


def test_with_an_agent_stability_and_masking_are_those_of_the_agent(web, project):
    triage = AgentTaskScore.objects.filter(agent__name="triage")[0].agent_id
    memory = AgentTaskScore.objects.filter(agent__name="memory")[0].agent_id
    assert listed(web, project, f"?agent={triage}&stability=non_deterministic") == [
        "unstable"
    ]
    assert listed(web, project, f"?agent={memory}&masked=yes") == ["masked"]
    assert listed(web, project, f"?agent={triage}&masked=yes") == []
    page = text(web.get(url(project, "tasks") + f"?agent={triage}"))
    assert "Stability of this agent" in page
    assert listed(web, project, f"?agent={triage}&stability=stable_but_wrong") == [
        "wrong"
    ]


def test_an_empty_list_says_why(web, project):
    page = text(web.get(url(project, "tasks") + "?q=nothing-like-it"))
    assert "No task matches" in page
    assert "5 tasks are in this project; 1 of them not scored yet" in page
    assert "beyond the last page" in text(web.get(url(project, "tasks") + "?from=50"))


def test_the_sentence_of_a_fork_in_short_keeps_who_passed_and_its_p():
    label = "update(" + "x" * 60
    said = (
        f"All 2 that went “{label}” passed, the one that ended here failed. Fisher's "
        "exact p is 33.3\u202f%: with so few trials chance alone can do that."
    )
    assert in_short(said) == (
        f"All 2 that went “{label[:34]}…” passed, the one that ended here failed "
        "(p 33.3\u202f%, few trials)."
    )
    assert in_short("") == ""


def test_the_page_leads_with_masking(web, project):
    page = page_of(web, project, "masked")
    assert "Masked: memory is red although every known trial passed" in page
    assert page.index("Masked: memory") < page.index("<h2>Trials</h2>")
    assert page.count(">masked</span>") == 5 + 1
    assert "5 of 5 (100 %; 56.6 % to 100 %) passed" in page


def test_the_page_says_stable_but_wrong_and_why(web, project):
    page = page_of(web, project, "wrong")
    assert "<b>Stable but wrong</b>" in page
    assert page.count("memory: red") == 5
    assert "No trial with a known outcome passed: 0 of 5" in page


def test_the_page_of_an_unstable_task_lists_each_decision_with_its_trials(web, project):
    page = page_of(web, project, "unstable")
    block = page.split('class="card agent-block"')
    triage = next(part for part in block if ">triage</a></h3>" in part)
    for answer in ("billing", "refunds", "sales"):
        assert f"<code>{answer}</code>" in triage
    assert "3 pairs of decisions that cannot both hold" in triage
    assert "1 of 3 (33.3 %; 6.1 % to 79.2 %)" in triage
    for trace in Trace.objects.filter(task__key="unstable"):
        assert url(project, "trace", trace.pk) in triage
    assert RULE.split(". ")[0] in page
    assert "no outcome is known" in page


def test_outliers_of_a_majority_are_marked(web, project):
    page = page_of(web, project, "fork")
    whole = page[page.index('id="whole"') :]
    assert "A tie has no majority" in whole
    assert ">outlier<" not in whole
    page = page_of(web, project, "masked")
    assert ">majority<" in page[page.index('id="whole"') :]


def test_before_scoring_the_page_stands_on_what_is_recorded(web, project):
    page = page_of(web, project, "waiting")
    assert "Not scored yet" in page
    assert 'id="whole"' not in page
    assert page.count(">not scored yet<") == 2
    assert page.count("</svg>passed</span>") == 2


def test_no_text_of_a_trace_is_read_for_the_page(web, project):
    with CaptureQueriesContext(connection) as asked:
        page_of(web, project, "fork")
    assert not [
        q for q in asked if "bodychunk" in q["sql"] or "traces_step" in q["sql"]
    ]


def test_a_note_is_taken_shown_and_withdrawn(web, project):
    task = task_of("fork")
    trace = Trace.objects.get(task=task, trial=3)
    page = page_of(web, project, "fork", f"?note={trace.pk}&step=2")
    assert f'<option value="{trace.pk}" selected>trial 3, failed' in page
    assert 'name="step" min="1" value="2"' in page
    fields = {
        "trace": trace.pk,
        "kind": "sound_but_wrong",
        "step": "4",
        "note": "Fine.",
    }
    note = url(project, "task-note", task.pk)
    page = text(web.post(note, fields, follow=True))
    assert "Noted." in page
    assert "<b>Sound but wrong</b>" in page
    assert f'{url(project, "trace", trace.pk)}?step=4#step-4">step 4</a>' in page
    assert "olga" in page
    web.post(note, fields)
    assert TrialNote.objects.count() == 1
    withdraw = url(project, "task-note-withdraw", task.pk)
    page = text(web.post(withdraw, {"trace": trace.pk}, follow=True))
    assert "note withdrawn, 2 entries" in page
    assert "<b>Sound but wrong</b>" not in page
    assert web.post(withdraw, {"trace": trace.pk}).status_code == 409


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "right_by_luck"}, "this one failed"),
        ({"kind": "sound_but_wrong", "step": "99"}, "steps 1 to 4"),
        ({"kind": "withdrawn"}, "Note"),
        ({"kind": "sound_but_wrong", "trace": "nonsense"}, "Trial"),
        ({"kind": "sound_but_wrong", "step": "0"}, "Step"),
    ],
)
def test_a_wrong_note_is_refused_in_words(web, project, fields, said):
    trace = Trace.objects.get(task__key="fork", trial=3)
    note = url(project, "task-note", task_of("fork").pk)
    answer = web.post(note, {"trace": trace.pk, **fields})
    assert answer.status_code == 400
    assert said in text(answer)
    assert not TrialNote.objects.exists()


def test_a_note_on_a_trial_of_another_task_is_refused(web, project):
    trace = Trace.objects.get(task__key="wrong", trial=1)
    fields = {"trace": trace.pk, "kind": "sound_but_wrong"}
    answer = web.post(url(project, "task-note", task_of("fork").pk), fields)
    assert answer.status_code == 400
    assert "no trial of the task" in text(answer)


def test_viewers_see_notes_and_who_may_write_them(client, project):
    client.force_login(make_member(project, Role.VIEWER, "vera"))
    page = page_of(client, project, "fork")
    assert 'name="kind"' not in page
    assert "reviewer" in page[page.index('id="notes"') :]


def test_the_mirror_of_masking_is_said(client, db):
    other = make_project(owner=make_user("mirror"), name="Mirror")
    acts = ("clerk", [("says", "order ending 27")])
    upload_traces(
        other,
        *(desk_trace(acts, trial=n, outcome=desk(1).outcome) for n in range(1, 3)),
    )
    scored(other)
    asked_of(other, "clerk", KNOWS)
    scored(other)
    Trace.objects.filter(project=other).update(outcome="fail", scored_as="")
    scored(other)
    client.force_login(User.objects.get(username="mirror"))
    page = text(client.get(url(other, "task", Task.objects.get(project=other).pk)))
    assert "Every agent is green, and every known trial failed" in page
    row = row_of(client, other, "ticket 1")
    assert "gap: all green" in row


def test_regimes_of_temperature_stand_apart(client, db):
    other = make_project(owner=make_user("warm"), name="Warm")
    upload_traces(
        other,
        *(desk(n, route="billing", temperature=0.0) for n in range(1, 4)),
        *(desk(n, route=f"r{n}", temperature=0.7) for n in range(4, 7)),
    )
    scored(other)
    client.force_login(User.objects.get(username="warm"))
    page = text(client.get(url(other, "task", Task.objects.get(project=other).pk)))
    assert "Temperature 0 alone: insufficient, 3 of 3 alike" in page
    assert "Temperature above 0 alone: non-deterministic, 1 of 3 alike" in page


def queries_of(client, address: str) -> int:
    client.get(address)
    with CaptureQueriesContext(connection) as asked:
        assert client.get(address).status_code == 200
    return len(asked)


def test_twice_the_tasks_trials_and_agents_are_the_same_queries(client, db):
    counts = []
    for times in (1, 2):
        other = make_masked_desk(times=times)
        client.force_login(User.objects.get(username=f"desk{times}"))
        if times == 2:
            task = Task.objects.get(project=other, key="ticket 1")
            ids = Task.objects.filter(project=other).exclude(pk=task.pk)
            Trace.objects.filter(task__in=ids[:3]).update(task=task, scored_as="")
            scored(other)
        task = Task.objects.filter(project=other, key="ticket 1").get()
        assert TaskScore.objects.filter(task=task).exists()
        pages = ("tasks", []), ("task", [task.pk]), ("task-forks", [task.pk])
        addresses = [reverse(n, args=[other.slug, *args]) for n, args in pages]
        addresses += [f"{addresses[0]}?outcome=mixed&sort=name"]
        counts.append([queries_of(client, one) for one in addresses])
    # A task without a fork loads no steps; the others load those of two.
    assert counts[0][:2] == counts[1][:2]
    assert counts[0][3] == counts[1][3]
    assert max(counts[0] + counts[1]) <= 34


def test_it_says_what_its_scores_leave_out(web, project, monkeypatch):
    score = TaskScore.objects.get(task=task_of("masked"))
    assert "are not compared" not in page_of(web, project, "masked")
    monkeypatch.setattr("apps.web.pages.task.SCORED_TRIALS", 3)
    score.trials, score.detail["broke"] = 3, "The comparison of these trials broke."
    score.save()
    page = page_of(web, project, "masked")
    assert "is of the first 3 of 5 trials; the others are not compared." in page
    assert "The comparison of these trials broke." in page


def test_decisive_forks_stand_beside_what_chance_gives(web, project):
    page = text(web.get(url(project, "tasks")))
    assert re.search(
        r"\d+ of \d+ mixed tasks? ha(s|ve) a decisive fork; dealing the outcomes of each "
        r"task to its trials at random gives about [\d.]+ \(\d+ to \d+\)",
        page,
    )
    assert "Dealing the same outcomes to these trials at random" in page_of(
        web, project, "fork"
    )


def test_agents_that_nobody_could_judge_are_called_unknown_in_the_list(web, project):
    AgentTaskScore.objects.filter(task=task_of("fork")).update(colour="unknown")
    row = row_of(web, project, "fork")
    assert "unknown</span>" in row
    assert "none red or unstable" not in row
