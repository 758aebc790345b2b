"""The pages of tasks, and corrections of a trace's task by hand."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.traces.models import Task, Trace
from tests.factories import chat_bytes, upload_bytes
from tests.web.visiting import addresses

QUESTION = "Where is parcel <b>A-1</b>?"


def chat(answer: str):
    return [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": answer},
    ]


@pytest.fixture
def found(project):
    upload_bytes(project, chat_bytes(chat("a"), chat("b")))
    return Task.objects.get()


def text_of(answer) -> str:
    return answer.content.decode()


def test_the_list_says_how_many_trials_and_whence(web, project, found):
    page = text_of(web.get(reverse("tasks", args=[project.slug])))
    assert "found by the same first input" in page
    assert 'data-label="Trials">2<' in page
    assert "<b>A-1</b>" not in page


def test_without_tasks_the_list_says_where_they_come_from(web, project):
    page = text_of(web.get(reverse("tasks", args=[project.slug])))
    assert "No task yet" in page


def test_the_page_of_a_task_lists_its_trials(web, project, found):
    page = text_of(web.get(reverse("task", args=[project.slug, found.pk])))
    for trace in Trace.objects.all():
        assert reverse("trace", args=[project.slug, trace.pk]) in page


def test_a_trace_is_moved_and_put_back(web, project, found):
    trace = Trace.objects.order_by("id").first()
    url = reverse("trace-task", args=[project.slug, trace.pk])
    page = text_of(web.post(url, {"task": "refund", "trial": "3"}, follow=True))
    assert "set by hand" in page
    assert "Undo the last change" in page
    trace.refresh_from_db()
    assert (trace.task.key, trace.trial) == ("refund", 3)
    undo = reverse("trace-task-undo", args=[project.slug, trace.pk])
    page = text_of(web.post(undo, follow=True))
    assert "Put back" in page
    trace.refresh_from_db()
    assert (trace.task, trace.trial) == (found, 0)
    assert web.post(undo).status_code == 409


def test_each_trace_that_was_moved_can_be_put_back(web, project, found):
    traces = Trace.objects.order_by("id")
    for trace in traces:
        web.post(reverse("trace-task", args=[project.slug, trace.pk]), {"task": "x"})
    for trace in traces:
        undo = reverse("trace-task-undo", args=[project.slug, trace.pk])
        assert web.post(undo).status_code == 302
    assert set(Trace.objects.values_list("task", flat=True)) == {found.pk}


def test_a_trace_that_was_taken_out_of_its_task_says_so(web, project, found):
    trace = Trace.objects.first()
    url = reverse("trace-task", args=[project.slug, trace.pk])
    page = text_of(web.post(url, {"task": "", "trial": ""}, follow=True))
    assert "none, set by hand" in page
    assert "Taken out of every task by hand" in page


def test_undo_belongs_to_the_trace_that_was_moved(web, project, found):
    first, second = Trace.objects.order_by("id")
    web.post(reverse("trace-task", args=[project.slug, first.pk]), {"task": "x"})
    undo = reverse("trace-task-undo", args=[project.slug, second.pk])
    assert web.post(undo).status_code == 409


@pytest.mark.parametrize(
    "data", [{"task": "x" * 201}, {"task": "a", "trial": "-1"}, {"trial": "soon"}]
)
def test_a_wrong_place_is_refused_in_words(web, project, found, data):
    trace = Trace.objects.first()
    answer = web.post(reverse("trace-task", args=[project.slug, trace.pk]), data)
    assert answer.status_code == 400
    assert "Task" in text_of(answer) or "Trial" in text_of(answer)


def test_tasks_are_renamed_and_joined(web, project, found):
    trace = Trace.objects.first()
    web.post(reverse("trace-task", args=[project.slug, trace.pk]), {"task": "other"})
    other = Task.objects.get(key="other")
    rename = reverse("task-rename", args=[project.slug, other.pk])
    assert "Renamed." in text_of(web.post(rename, {"name": "parcel"}, follow=True))
    taken = web.post(rename, {"name": found.key})
    assert taken.status_code == 409
    join = reverse("task-join", args=[project.slug, other.pk])
    assert web.post(join, {"into": "no such task"}).status_code == 400
    page = text_of(web.post(join, {"into": str(found)}, follow=True))
    assert "1 trial moved here." in page
    assert "1 set by hand" in page
    assert Trace.objects.filter(task=found).count() == 2
    back = reverse("task-part", args=[project.slug, found.pk])
    assert "1 trial moved back." in text_of(web.post(back, follow=True))
    trace.refresh_from_db()
    assert (trace.task, trace.is_task_set) == (other, True)
    assert web.post(back).status_code == 409


def test_the_list_asks_as_often_for_many_tasks_as_for_one(
    web, project, found, django_assert_max_num_queries
):
    url = reverse("tasks", args=[project.slug])
    web.get(url)
    for number in range(30):
        question = [{"role": "user", "content": f"A question number {number}?"}]
        upload_bytes(
            project,
            chat_bytes(
                [*question, {"role": "assistant", "content": "a"}],
                [*question, {"role": "assistant", "content": "b"}],
            ),
            name=f"{number}.jsonl",
        )
    with django_assert_max_num_queries(24):
        assert web.get(url).status_code == 200


def test_the_walkers_of_hostile_texts_visit_these_pages(project, found):
    assert reverse("task", args=[project.slug, found.pk]) in addresses(project)
