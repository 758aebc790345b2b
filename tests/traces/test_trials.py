"""Trials: found by the same first input, named by files, corrected by hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from apps.engine.trace import Body, Step, StepKind
from apps.traces.models import Task, Trace
from apps.traces.queries import engine_trace
from apps.traces.transitions import TaskSource
from apps.traces.trials import (
    WrongPlace,
    find_trials,
    join_tasks,
    part_tasks,
    place_trace,
    put_back,
    rename_task,
    task_rows,
)
from tests.factories import (
    chat_bytes,
    make_project,
    trace_of,
    upload_bytes,
    upload_traces,
)

ASKED = "Where is parcel A-1?"


def chat(question: str = ASKED, answer: str = "In Graz."):
    return [
        {"role": "user", "content": question},
        {"role": "assistant", "content": answer},
    ]


def asked(question: str, **more):
    step = Step(seq=0, kind=StepKind.USER_MESSAGE, body=Body(output=question))
    return trace_of([step], **more)


def places(project):
    rows = Trace.objects.filter(project=project).order_by("id")
    return [(str(row.task) if row.task else None, row.trial) for row in rows]


@pytest.mark.django_db
def test_two_traces_with_the_same_first_input_are_trials_of_one_task(project):
    upload_bytes(project, chat_bytes(chat(), chat("What is parcel A-1?"), chat()))
    assert places(project) == [(ASKED, 0), (None, None), (ASKED, 1)]
    assert Task.objects.get().source == TaskSource.INPUT


@pytest.mark.django_db
def test_a_later_upload_adds_a_trial_to_the_task_that_was_found(project):
    upload_bytes(project, chat_bytes(chat(answer="a")))
    assert places(project) == [(None, None)]
    upload_bytes(project, chat_bytes(chat(answer="b")), name="second.jsonl")
    upload_bytes(project, chat_bytes(chat(answer="c")), name="third.jsonl")
    assert places(project) == [(ASKED, 0), (ASKED, 1), (ASKED, 2)]


@pytest.mark.django_db
def test_short_inputs_such_as_hello_join_nothing(project):
    upload_bytes(project, chat_bytes(chat("hello"), chat("hello")))
    assert places(project) == [(None, None), (None, None)]


@pytest.mark.django_db
def test_a_task_that_the_file_names_is_not_touched(project):
    named = asked(ASKED, task="refund", trial=7)
    upload_traces(project, named, asked(ASKED, name="x"), asked(ASKED, name="y"))
    assert places(project) == [("refund", 7), (ASKED, 0), (ASKED, 1)]


@pytest.mark.django_db
def test_another_project_with_the_same_input_stays_apart(project):
    other = make_project()
    upload_bytes(project, chat_bytes(chat()))
    upload_bytes(other, chat_bytes(chat()))
    assert places(project) == places(other) == [(None, None)]


@pytest.mark.django_db
def test_what_is_set_by_hand_stays_when_trials_are_found_again(project):
    upload_bytes(project, chat_bytes(chat(answer="a"), chat(answer="b")))
    first = Trace.objects.order_by("id").first()
    place_trace(trace=first, task="", trial=None)
    upload_bytes(project, chat_bytes(chat(answer="c")), name="more.jsonl")
    assert places(project) == [(None, None), (ASKED, 1), (ASKED, 2)]


@pytest.mark.django_db
def test_a_move_by_hand_can_be_undone(project):
    upload_bytes(project, chat_bytes(chat(answer="a"), chat(answer="b")))
    first = Trace.objects.order_by("id").first()
    before, since = place_trace(trace=first, task="another", trial=9)
    assert places(project)[0] == ("another", 9)
    put_back(trace=first, placed=before, since=since)
    assert places(project)[0] == (ASKED, 0)
    first.refresh_from_db()
    assert not first.is_task_set


@pytest.mark.django_db
def test_undo_does_not_take_back_what_another_person_did_since(project):
    upload_bytes(project, chat_bytes(chat(answer="a"), chat(answer="b")))
    first = Trace.objects.order_by("id").first()
    before, since = place_trace(trace=first, task="mine", trial=1)
    place_trace(trace=first, task="theirs", trial=2)
    with pytest.raises(WrongPlace, match="moved this trace since"):
        put_back(trace=first, placed=before, since=since)
    assert places(project)[0] == ("theirs", 2)


@pytest.mark.django_db
@pytest.mark.parametrize(("task", "trial"), [("x" * 201, 1), ("a", -1), ("a", 2**31)])
def test_a_place_that_cannot_be_is_refused_in_a_sentence(project, task, trial):
    upload_bytes(project, chat_bytes(chat()))
    with pytest.raises(WrongPlace, match=r"\.$"):
        place_trace(trace=Trace.objects.get(), task=task, trial=trial)


@pytest.mark.django_db
def test_renaming_a_found_task_does_not_cut_it_off_from_later_trials(project):
    upload_bytes(project, chat_bytes(chat(answer="a"), chat(answer="b")))
    rename_task(task=Task.objects.get(), name="parcel")
    upload_bytes(project, chat_bytes(chat(answer="c")), name="more.jsonl")
    assert places(project) == [("parcel", 0), ("parcel", 1), ("parcel", 2)]


@pytest.mark.django_db
def test_a_name_that_is_taken_is_refused(project):
    upload_traces(project, asked("a", task="one"), asked("b", task="two", name="b"))
    with pytest.raises(WrongPlace, match="Join the two"):
        rename_task(task=Task.objects.get(key="one"), name="two")


@pytest.mark.django_db
def test_tasks_that_are_one_can_be_joined(project):
    upload_traces(project, asked("a", task="one"), asked("b", task="two", name="b"))
    one, two = Task.objects.order_by("key")
    assert len(join_tasks(task=one, into=two)) == 1
    assert [
        (row.task.key, row.trials)
        for row in task_rows(project=project, start=0, most=9)
    ] == [("two", 2)]
    with pytest.raises(WrongPlace):
        join_tasks(task=two, into=two)


@pytest.mark.django_db
def test_joined_trials_have_numbers_of_their_own_and_go_back_as_they_were(project):
    runs = [asked("a", task="one", trial=n, name=f"a{n}") for n in (0, 1)]
    runs += [asked("b", task="two", trial=n, name=f"b{n}") for n in (0, 1)]
    upload_traces(project, *runs)
    before = places(project)
    one, two = Task.objects.order_by("key")
    moved = join_tasks(task=one, into=two)
    assert sorted(places(project)) == [("two", n) for n in range(4)]
    assert part_tasks(task=one, into=two, moved=moved) == 2
    assert places(project) == before
    assert not Trace.objects.filter(is_task_set=True).exists()


@pytest.mark.django_db
def test_a_session_that_grew_is_no_other_trial(project):
    def session(name, steps):
        return asked(ASKED, session=name, name=f"{name} {steps}")

    upload_traces(project, session("s-1", 3), session("s-1", 5))
    assert places(project) == [(None, None), (None, None)]
    upload_traces(project, session("s-2", 3), name="other.jsonl")
    assert [trial for _, trial in places(project)] == [0, 0, 1]
    upload_traces(project, session("s-2", 9), name="grown.jsonl")
    assert [trial for _, trial in places(project)] == [0, 0, 1, 1]


@pytest.mark.django_db
def test_the_title_of_a_task_is_words_and_not_json(project):
    said = [
        {"type": "text", "text": "Where is parcel"},
        {"type": "text", "text": "A-1?"},
    ]
    upload_bytes(project, chat_bytes(chat(said, "a"), chat(said, "b")))
    assert Task.objects.get().title == ASKED


@pytest.mark.django_db
def test_tasks_are_listed_by_number(project):
    names = [f"task {n}" for n in (10, 2, 1, 20)]
    upload_traces(project, *(asked("x", task=name, name=name) for name in names))
    rows = task_rows(project=project, start=0, most=9)
    assert [row.task.key for row in rows] == ["task 1", "task 2", "task 10", "task 20"]


@pytest.mark.django_db
def test_a_task_that_was_found_is_not_exported_as_if_the_file_named_it(project):
    upload_bytes(project, chat_bytes(chat(answer="a"), chat(answer="b")))
    found = Trace.objects.select_related("task").first()
    assert found.task is not None
    assert engine_trace(found).task is None


@pytest.mark.django_db
def test_the_title_of_a_task_reads_the_beginning_of_a_trace_only(
    project, django_assert_max_num_queries
):
    steps = [Step(seq=0, kind=StepKind.USER_MESSAGE, body=Body(output=ASKED))]
    steps += [
        Step(seq=n, kind=StepKind.OTHER, body=Body(output="x" * 50))
        for n in range(1, 3_000)
    ]
    upload_traces(project, trace_of(steps, name="a"), trace_of(steps[:2], name="b"))
    assert places(project)[0] == (ASKED, 0)
    first = Trace.objects.order_by("id").first()
    with django_assert_max_num_queries(5):
        assert len(engine_trace(first, most=64).steps) == 64


@pytest.mark.django_db(transaction=True)
def test_uploads_that_end_together_see_each_other(project):
    upload_traces(project, *(asked(ASKED, name=f"run {n}") for n in range(4)))
    Trace.objects.update(task=None, trial=None)
    Task.objects.all().delete()
    digest = Trace.objects.values_list("input_hash", flat=True).first()

    def find(_):
        try:
            return find_trials(project_id=project.pk, input_hashes=[digest])
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        moved = list(pool.map(find, range(4)))
    assert sum(moved) == 4
    assert sorted(trial for _, trial in places(project)) == [0, 1, 2, 3]
