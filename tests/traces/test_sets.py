"""Trace sets: what they hold, what they never get, names, and figures of their traces."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.engine.sequences.recorded import Removal, recorded_calls
from apps.engine.trace import Outcome, OutcomeKind
from apps.traces.figures_of_traces import figures_of_traces
from apps.traces.models import Task, Trace, TraceSet, TraceSetMember, Upload
from apps.traces.operations import allow_erasing_history
from apps.traces.queries import TraceFilter, engine_trace
from apps.traces.sets import (
    Chosen,
    NewSet,
    WrongSet,
    delete_set,
    make_set,
    rename_set,
    set_rows,
    sets_of,
    slug_of,
    traces_in_set,
)
from apps.traces.sides import UnknownSide, choices, shared_traces, side_of
from tests.factories import (
    NOW,
    decay_trace,
    make_project,
    tools_trace,
    upload_bytes,
    upload_traces,
)
from tests.traces.set_traces import figures_of, random_trace
from tests.web.hostile import HTML

pytestmark = pytest.mark.django_db

FAIL = Outcome(kind=OutcomeKind.FAIL)


def made(project, name="Release 4", **fields) -> TraceSet:
    ids = fields.pop("ids", ())
    chosen = Chosen(where=TraceFilter(**fields), ids=tuple(ids))
    return make_set(
        project=project, new=NewSet(name, chosen, "why"), user_id=None, now=NOW
    )


def names(trace_set) -> list[str]:
    return sorted(trace.name for trace in traces_in_set(trace_set))


@pytest.fixture
def filled(project):
    upload_traces(project, decay_trace(9, 8, name="a"), decay_trace(5, name="b"))
    upload_traces(
        project, tools_trace("x", name="c", outcome=FAIL), name="second.jsonl"
    )
    return project


class TestMaking:
    def test_it_holds_what_matches_and_never_what_comes_later(self, filled):
        everything = made(filled)
        assert (everything.trace_count, names(everything)) == (3, ["a", "b", "c"])
        upload_traces(filled, decay_trace(7, name="later"), name="later.jsonl")
        assert names(everything) == ["a", "b", "c"]
        assert everything.made_from["words"] == "all traces of the project"

    @pytest.mark.parametrize(
        ("fields", "held", "words"),
        [
            ({"outcome": "fail"}, ["c"], "outcome fail"),
            ({"model": "gpt-4o"}, ["a", "b"], "model gpt-4o"),
            ({"agent": "planner", "outcome": "pass"}, ["a", "b"], "agent planner"),
            ({"q": "a"}, ["a"], "name or id a"),
            ({"usage": "no_calls", "sort": "longest"}, ["c"], "no model calls"),
        ],
    )
    def test_it_holds_what_the_filter_of_the_list_shows(
        self, filled, fields, held, words
    ):
        found = made(filled, **fields)
        assert names(found) == held
        assert words in found.made_from["words"]
        kept = {key: value for key, value in fields.items() if key != "sort"}
        assert found.made_from["filter"] == kept

    def test_it_is_made_of_an_upload_or_of_a_task(self, filled):
        upload = Upload.objects.get(name="second.jsonl")
        found = made(filled, upload=upload.pk)
        assert names(found) == ["c"]
        assert found.made_from["words"] == "upload second.jsonl"
        task = Task.objects.create(project=filled, key="refund")
        Trace.objects.filter(name="b").update(task=task)
        assert names(made(filled, "Of a task", task=task.pk)) == ["b"]

    def test_ids_given_by_hand_are_those_of_this_project_only(self, filled, owner):
        elsewhere = make_project(owner=owner, name="Elsewhere")
        upload_traces(elsewhere, decay_trace(4, name="foreign"))
        ids = list(Trace.objects.exclude(name="a").values_list("pk", flat=True))
        assert len(ids) == 3
        assert names(made(filled, ids=ids)) == ["b", "c"]
        foreign = [Trace.objects.get(name="foreign").pk]
        with pytest.raises(WrongSet, match="No trace matches"):
            made(filled, "Nothing", ids=foreign)
        assert not TraceSet.objects.filter(name="Nothing").exists()

    def test_more_traces_than_it_may_hold_make_none(self, filled, monkeypatch):
        monkeypatch.setattr("apps.traces.sets.MOST_TRACES", 2)
        with pytest.raises(WrongSet, match="at most 2"):
            made(filled)
        assert not TraceSetMember.objects.exists()
        assert not TraceSet.objects.exists()

    def test_its_traces_are_frozen_by_one_statement(self, filled):
        with CaptureQueriesContext(
            connection,
        ) as asked:
            made(filled)
        inserts = [q for q in asked if "INSERT INTO traces_tracesetmember" in q["sql"]]
        assert len(inserts) == 1


class TestNames:
    @pytest.mark.parametrize("name", ["", "  ", "\x00", "x" * 81])
    def test_a_name_has_1_to_80_characters(self, filled, name):
        with pytest.raises(WrongSet, match="1 to 80 characters"):
            made(filled, name)

    @pytest.mark.parametrize(
        "name", ["Release 4", "release 4", " Release  4 ", "Release-4"]
    )
    def test_a_name_is_taken_once_per_project(self, filled, owner, name):
        made(filled)
        with pytest.raises(WrongSet, match="here already"):
            made(filled, name)
        other = make_project(owner=owner, name="Other")
        upload_traces(other, decay_trace(4, name="o"))
        made(other, name)

    @pytest.mark.parametrize("name", ["new", "訪問", HTML[:60], "???", "-"])
    def test_any_name_gives_an_address_that_is_free(self, filled, name):
        found = made(filled, name)
        assert found.slug == slug_of(found.name)
        assert found.slug not in {"", "new"}
        assert side_of(filled, found.slug).label == found.name

    def test_renaming_keeps_the_address(self, filled):
        found, other = made(filled), made(filled, "Other")
        rename_set(trace_set=found, name="Release 5", note="new note")
        found.refresh_from_db()
        assert (found.name, found.slug, found.note) == (
            "Release 5",
            "release-4",
            "new note",
        )
        with pytest.raises(WrongSet, match="here already"):
            rename_set(trace_set=other, name="release 5", note="")
        # The address of the renamed one is still its own.
        with pytest.raises(WrongSet, match="same address"):
            made(filled, "Release 4")


def test_deleting_a_set_leaves_its_traces(filled):
    delete_set(trace_set=made(filled))
    assert Trace.objects.count() == 3
    assert not TraceSetMember.objects.exists()


def test_removed_traces_are_said(filled):
    found = made(filled)
    allow_erasing_history()
    Trace.objects.filter(name="a").delete()
    [row] = set_rows([found])
    assert (row.traces, row.removed, row.passed, row.failed) == (2, 1, 1, 1)
    assert row.models == [("gpt-4o", 1)]


def test_rows_of_many_sets_take_two_queries(filled):
    for number in range(6):
        made(filled, f"Set {number}")
    sets = list(sets_of(filled))
    with CaptureQueriesContext(connection) as asked:
        rows = set_rows(sets)
    assert len(asked) == 2
    assert [row.trace_set.name for row in rows] == [
        f"Set {n}" for n in range(5, -1, -1)
    ]
    assert {(row.traces, row.passed, row.failed) for row in rows} == {(3, 2, 1)}


class TestSides:
    def test_a_side_is_a_set_a_model_or_an_upload(self, filled):
        found = made(filled, "Failed", outcome="fail")
        keys = {one.key: one.kind for one in choices(filled)}
        uploads = Upload.objects.values_list("pk", flat=True)
        assert keys == {
            "failed": "set",
            "model:gpt-4o": "model",
            **{f"upload:{pk}": "upload" for pk in uploads},
        }
        for key in keys:
            assert side_of(filled, key).traces.count() > 0
        side = side_of(filled, "model:gpt-4o")
        assert sorted(t.name for t in side.traces) == ["a", "b"]
        assert shared_traces(side, side_of(filled, found.slug)) == 0

    @pytest.mark.parametrize(
        "key",
        ["nothing", "model:", "model:gpt-5", "upload:", "upload:x", "upload:0",
         "upload:" + "9" * 30, "upload:²", "x" * 500, "a\x00b", "task:1"],
    )  # fmt: skip
    def test_what_is_not_here_is_unknown(self, filled, key):
        with pytest.raises(UnknownSide):
            side_of(filled, key)

    def test_what_is_of_another_project_is_unknown(self, filled, owner):
        other = make_project(owner=owner, name="Other")
        made(filled)
        for one in choices(filled):
            with pytest.raises(UnknownSide):
                side_of(other, one.key)


class TestFigures:
    """The figures out of the tables are those of the engine's rules."""

    @pytest.mark.parametrize("first", range(0, 240, 60))
    def test_of_random_traces(self, project, first):
        upload_traces(project, *[random_trace(n) for n in range(first, first + 60)])
        found = figures_of_traces(Trace.objects.filter(project=project))
        wanted = {row.pk: figures_of(row) for row in Trace.objects.all()}
        assert found.traces == 60
        for figures in found.figures:
            assert figures == wanted[figures.trace], engine_trace(
                Trace.objects.get(pk=figures.trace)
            )

    def test_the_random_traces_hold_every_reason_to_leave_a_call_out(self):
        traces = [random_trace(number) for number in range(240)]
        found = {
            entry.removed
            for trace in traces
            for calls in recorded_calls(trace).values()
            for entry in calls
        }
        assert found >= {Removal.PLACEHOLDER, Removal.DUPLICATE, Removal.WRAPPER, None}

    @pytest.mark.slow
    def test_of_real_files(self, project, shared_data):
        files = sorted(path for path in shared_data.rglob("*") if path.is_file())
        small = [path for path in files if path.stat().st_size < 400_000]
        for path in small[::7]:
            upload_bytes(project, path.read_bytes(), name=path.name)
        found = figures_of_traces(Trace.objects.filter(project=project))
        wanted = {row.pk: figures_of(row) for row in Trace.objects.all()}
        assert len(wanted) > 30
        assert {one.trace: one for one in found.figures} == wanted

    def test_beyond_the_most_the_same_ones_are_taken(self, project):
        upload_traces(project, *[random_trace(n) for n in range(30)])
        traces = Trace.objects.filter(project=project)
        some = figures_of_traces(traces, most=10)
        assert (some.traces, len(some.figures), some.is_sampled) == (30, 10, True)
        again = figures_of_traces(traces.order_by("-pk"), most=10)
        assert again == some
        assert not figures_of_traces(traces, most=30).is_sampled

    def test_many_traces_take_as_many_queries_as_one(self, project):
        asked = []
        for first, last in ((0, 1), (1, 40)):
            upload_traces(
                project, *[random_trace(n) for n in range(first, last)], name=f"{last}"
            )
            with CaptureQueriesContext(connection) as queries:
                figures_of_traces(Trace.objects.filter(project=project))
            asked.append(len(queries))
        assert asked == [3, 3]

    def test_calls_that_say_how_they_ended_are_counted(self, filled):
        found = figures_of_traces(Trace.objects.filter(project=filled))
        assert (found.calls, found.told) == (4, 0)
