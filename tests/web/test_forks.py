"""The fork view of a task: lanes, branches, two steps side by side, texts on request."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Project, User
from apps.traces.contents import packed_sizes
from apps.traces.models import Trace
from apps.web.pages import forks_trials
from apps.web.pages.forks_steps import SHOWN
from tests.factories import make_project, make_user, upload_traces
from tests.scored import scored
from tests.web.forking import LONG_TEXT, make_forking_project, refund, task_of
from tests.web.test_bad_requests import NUMBERS
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


def forks_of(web, project, key: str = "fork", query: str = "") -> str:
    return text(web.get(url(project, "task-forks", task_of(key).pk) + query))


def pk_of(trial: int) -> int:
    return Trace.objects.get(task__key="fork", trial=trial).pk


def sides(page: str) -> list[str]:
    return re.findall(r"<b>(?:Left|Right): ([^<]+)</b>", page)


def test_it_opens_at_the_decisive_fork_and_says_which_side_passed(web, project):
    page = forks_of(web, project)
    fork = page[page.index('id="fork"') :]
    assert "Fork 1" in fork
    assert ">decisive<" in fork
    assert "all 2 that went “refund(order=17)” passed" in fork
    assert "2 of 2 (100 %; 34.2 % to 100 %) passed" in fork
    assert "does not say that the fork is the cause" in fork


def test_the_drawing_has_a_lane_for_each_trial_with_its_outcome(web, project):
    page = forks_of(web, project)
    labels = page[page.index('class="fork-labels"') :]
    for trial in range(1, 6):
        assert f">trial {trial}</a> <b>" in labels
    assert labels.count("<b>passed</b>") == 2
    assert labels.count("<b>failed</b>") == 3
    assert page.count('class="fork-mark') == 1
    assert "style=" not in page[page.index('<svg class="forks"') :]
    assert 'aria-label="5 trials side by side, 1 fork.' in page


def test_the_table_says_the_same_as_the_drawing(web, project):
    page = forks_of(web, project)
    twin = page[page.index("The same as a table") :]
    assert "All 5 trials are equal for 1 step." in twin
    assert "2 of 2 passed" in twin
    assert "trial 1, trial 2" in twin


def test_two_steps_stand_side_by_side_with_the_words_that_differ(web, project):
    page = forks_of(web, project)
    assert sides(page) == ["trial 3", "trial 1"] or sides(page) == [
        "trial 1",
        "trial 3",
    ]
    left = pk_of(1)
    page = forks_of(web, project, query=f"?fork=1&left={left}&right={pk_of(4)}")
    assert sides(page) == ["trial 1", "trial 4"]
    steps = page[page.index('id="steps"') :]
    assert "<del>refund</del>" in steps
    assert "<ins>cancel</ins>" in steps
    assert "Refund" in steps[steps.index(">Says") :]
    assert "I think: " in steps[steps.index(">Thinking") :]
    assert f"{url(project, 'trace', left)}?step=4#step-4" in steps


def test_only_the_two_steps_are_loaded(web, project):
    with CaptureQueriesContext(connection) as asked:
        forks_of(web, project)
    bodies = [q for q in asked if "data" in q["sql"] and "bodychunk" in q["sql"]]
    assert len(bodies) == 2


def test_a_trial_that_ended_shows_its_last_step(web, project):
    query = f"?fork=1&left={pk_of(5)}&right={pk_of(1)}"
    page = forks_of(web, project, query=query)
    assert "ended here; its last step is 3" in page
    assert "Not allowed." in re.sub(r"</?(?:del|ins)>", "", page)


def test_other_trials_of_a_way_can_be_put_beside(web, project):
    page = forks_of(web, project, query=f"?fork=1&left={pk_of(1)}&right={pk_of(3)}")
    assert f"fork=1&amp;left={pk_of(2)}&amp;right={pk_of(3)}#steps" in page
    assert f"fork=1&amp;left={pk_of(1)}&amp;right={pk_of(4)}#steps" in page


def test_any_value_in_the_address_is_answered(web, project):
    address = url(project, "task-forks", task_of("fork").pk)
    for value in NUMBERS:
        query = f"?fork={value}&left={value}&right={value}&compare={value}"
        assert web.get(f"{address}{query}").status_code == 200, value


def test_texts_are_compared_on_request_only(web, project):
    assert "refund it now" not in forks_of(web, project).lower()
    page = forks_of(web, project, query="?compare=text")
    assert "Every answer and message counts" in page
    number = int(re.search(r"<p>(\d+) forks?</p>", page)[1])
    assert number >= 2
    assert "Refund it now." in page


def test_texts_of_many_or_long_trials_are_bounded_and_it_says_so(
    web, project, monkeypatch
):
    monkeypatch.setattr(forks_trials, "MOST_TEXT_TRIALS", 3)
    page = forks_of(web, project, query="?compare=text")
    assert "Texts are compared for 3 of 5 trials: for 3 at most" in page
    assert "3 trials <span" in page
    monkeypatch.setattr(forks_trials, "MOST_TEXT_STEPS", 3)
    page = forks_of(web, project, query="?compare=text")
    assert "4 trials of more than 3 steps are left out" in page


def test_texts_that_are_too_large_together_are_left_out(web, project, monkeypatch):
    pks = [pk_of(trial) for trial in range(1, 6)]
    sizes = packed_sizes(pks)
    monkeypatch.setattr(forks_trials, "MOST_TEXT_BYTES", sizes[pks[0]] + sizes[pks[1]])
    page = forks_of(web, project, query="?compare=text")
    assert "Texts are compared for 2 of 5 trials" in page
    assert "2 trials <span" in page


def test_where_nothing_forks_the_page_says_so(web, project):
    page = forks_of(web, project, "masked")
    assert "<h2>No fork</h2>" in page
    assert "compare them too" in page


def test_before_scoring_there_is_nothing_to_compare_and_it_says_why(web, project):
    page = forks_of(web, project, "waiting")
    assert "Nothing to compare yet" in page
    assert "2 of 2 trials are not scored yet." in page


def test_long_texts_are_cut_and_the_whole_is_linked(client, db):
    other = make_project(owner=make_user("long"), name="Long")
    upload_traces(
        other,
        refund(1, LONG_TEXT, ("refund", {"order": 1})),
        refund(2, LONG_TEXT + "end", ("cancel", {"order": 1})),
    )
    scored(other)
    client.force_login(User.objects.get(username="long"))
    page = forks_of(client, other)
    assert re.search(rf"Cut after {SHOWN:,} characters: [89],\d+ of the left", page)
    assert page.count("?as=text") >= 2


def test_trials_of_one_number_are_told_apart(client, db):
    other = make_project(owner=make_user("twice"), name="Twice")
    upload_traces(
        other,
        refund(1, "a", ("refund", {"order": 1})),
        refund(1, "b", ("cancel", {"order": 1})),
    )
    scored(other)
    client.force_login(User.objects.get(username="twice"))
    page = forks_of(client, other)
    for trace in Trace.objects.filter(project=other):
        assert f"trial 1 (trace {trace.pk})" in page


def test_many_trials_that_went_alike_share_rows(client, db):
    other = make_project(owner=make_user("many"), name="Many")
    upload_traces(
        other,
        *(
            refund(n, "a", ("refund" if n % 3 else "cancel", {"order": 1}))
            for n in range(1, 121)
        ),
    )
    scored(other)
    client.force_login(User.objects.get(username="many"))
    page = forks_of(client, other)
    assert "<h2>120 trials" in page
    labels = page[page.index('class="fork-labels"') : page.index("under-drawing")]
    assert labels.count("<li") == 2
    assert "and 79 more" in labels
    assert "and 39 more" in labels
    assert "and 60 more" in page[page.index('id="fork"') :]


@pytest.mark.parametrize("page", ["task", "tasks"])
def test_the_fork_view_is_a_key_away(web, project, page):
    args = [task_of("fork").pk] if page == "task" else []
    shown = text(web.get(url(project, page, *args)))
    assert url(project, "task-forks", task_of("fork").pk) in shown
    if page == "task":
        assert 'data-key="b"' in shown
