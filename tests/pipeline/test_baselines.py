"""The baseline of a project: the figures of the engine, switched at once or not at all."""

from __future__ import annotations

import random
from datetime import timedelta

import msgspec
import pytest
from django.db import connection

from apps.engine.nulls import (
    ErrorBaseline,
    LatencyBaseline,
    error_baseline,
    latency_baseline,
)
from apps.engine.sequences.calls import durations_by_name, failures_by_name
from apps.engine.trace import Step, StepKind, StepStatus, ToolCall
from apps.pipeline import baselines, tasks
from apps.pipeline.baselines import (
    GAVE_UP,
    CannotBeBaseline,
    choose_baseline,
    clear_baseline,
    forget_set,
    make_baseline,
    waiting_baselines,
)
from apps.pipeline.lineups import catch_up
from apps.review.models import Signal
from apps.screening.lineup import lineup_of
from apps.screening.models import Screening
from apps.traces.behind import behind_count
from apps.traces.models import Trace, TraceSet
from apps.traces.operations import allow_erasing_history
from apps.traces.queries import TraceFilter, engine_trace
from apps.traces.sets import Chosen, NewSet, make_set
from tests.adopting import caught_up
from tests.factories import NOW, SECOND, START, make_project, trace_of, upload_traces
from tests.traces.set_traces import random_trace

pytestmark = pytest.mark.django_db


def clock():
    return NOW


def made(project, name="Normal", **where) -> TraceSet:
    new = NewSet(name, Chosen(where=TraceFilter(**where)))
    return make_set(project=project, new=new, user_id=None, now=NOW)


def chosen(trace_set: TraceSet) -> TraceSet:
    choose_baseline(trace_set=trace_set, now=NOW)
    assert make_baseline(trace_set_id=trace_set.pk, clock=clock)
    trace_set.refresh_from_db()
    return trace_set


def steady(number: int, *, slow: float = 1.0, failed: int = 0, name: str = "steady"):
    """Twelve tool calls that take about a second, `slow` times as long."""
    source = random.Random(number)
    steps = [
        Step(
            seq=seq,
            kind=StepKind.TOOL_CALL,
            invocation=0,
            start_ns=START + seq * 10 * SECOND,
            end_ns=START
            + seq * 10 * SECOND
            + int(SECOND * slow * source.uniform(0.8, 1.2)),
            status=StepStatus.ERROR if seq < failed else StepStatus.OK,
            call=ToolCall(name=f"tool {seq % 3}"),
        )
        for seq in range(12)
    ]
    return trace_of(steps, name=f"{name} {number}")


@pytest.fixture
def normal(project):
    """A project with 60 traces that take as long as each other."""
    upload_traces(project, *[steady(n) for n in range(60)], name="normal.jsonl")
    return project


class TestFigures:
    """What is computed from the tables is what the engine computes from the traces."""

    def test_of_random_traces(self, project):
        upload_traces(project, *[random_trace(n) for n in range(150)])
        kept = chosen(made(project)).baseline
        assert kept["traces"] == 150
        traces = [engine_trace(row) for row in Trace.objects.order_by("pk")]
        latencies = latency_baseline(map(durations_by_name, traces))
        failures = error_baseline(map(failures_by_name, traces))
        assert latencies.scores
        assert failures.scores
        assert msgspec.convert(kept["latencies"], LatencyBaseline) == latencies
        assert msgspec.convert(kept["failures"], ErrorBaseline) == failures

    def test_however_few_steps_are_read_at_once(self, project, monkeypatch):
        upload_traces(project, *[random_trace(n) for n in range(40)])
        first = chosen(made(project)).baseline
        monkeypatch.setattr(baselines, "MOST_STEPS", 30)
        batches = list(baselines._batches(TraceSet.objects.get().pk))
        assert len(batches) > 10
        assert chosen(TraceSet.objects.get()).baseline["key"] == first["key"]

    def test_its_key_is_12_digits_of_its_content(self, project):
        upload_traces(project, *[random_trace(n) for n in range(20)])
        one = chosen(made(project)).baseline["key"]
        assert len(one) == 12
        assert set(one) <= set("0123456789abcdef")
        some = made(project, "Some", outcome="pass")
        assert chosen(some).baseline["key"] != one


class TestSwitching:
    def test_there_is_one_baseline_and_the_last_one_counts(self, normal):
        one, other = made(normal), made(normal, "Other")
        chosen(one)
        assert chosen(other).is_baseline
        one.refresh_from_db()
        assert (one.is_baseline, one.baseline) == (False, None)
        check = lineup_of(normal.pk).by_slug["latency-shift"].check
        assert check.baseline_key == other.baseline["key"]
        assert check.baseline_name == "Other"

    def test_what_was_chosen_last_gives_what_was_chosen_before_up(self, normal):
        one, other = made(normal), made(normal, "Other")
        choose_baseline(trace_set=one, now=NOW)
        choose_baseline(trace_set=other, now=NOW)
        assert not make_baseline(trace_set_id=one.pk, clock=clock)
        assert make_baseline(trace_set_id=other.pk, clock=clock)
        assert TraceSet.objects.get(is_baseline=True) == other

    def test_nothing_wanted_is_nothing_done(self, normal):
        found = made(normal)
        assert not make_baseline(trace_set_id=found.pk, clock=clock)
        assert not make_baseline(trace_set_id=found.pk + 99, clock=clock)

    def test_old_and_new_traces_are_checked_against_it(self, normal):
        trace_set = made(normal)
        upload_traces(normal, steady(900, slow=4, name="slow"), name="slow.jsonl")
        slow = Trace.objects.get(name="slow 900")
        before = lineup_of(normal.pk).name
        chosen(trace_set)
        assert behind_count(normal.pk, lineup_of(normal.pk).name) == 61
        caught_up(normal)
        assert lineup_of(normal.pk).name != before
        upload_traces(normal, steady(901, slow=4, name="slow"), name="slow-2.jsonl")
        signals = Signal.objects.filter(check_slug="latency-shift", state="open")
        found = set(signals.values_list("trace__name", flat=True))
        assert {"slow 900", "slow 901"} <= found
        assert (
            signals.get(trace=slow).screening.evidence["facts"]["baseline"] == "Normal"
        )

    def test_a_trace_with_failures_stands_out_too(self, normal):
        chosen(made(normal))
        upload_traces(normal, steady(900, failed=5), name="failing.jsonl")
        signals = Signal.objects.filter(check_slug="error-rate-shift")
        assert [one.trace.name for one in signals] == ["steady 900"]

    def test_the_traces_of_the_baseline_never_look_rarer_than_they_are(self, normal):
        """Each counts among those it is compared with, which makes its chance larger."""
        chosen(made(normal))
        caught_up(normal)
        current = lineup_of(normal.pk).by_slug["latency-shift"].key
        answers = Screening.objects.filter(
            check_slug="latency-shift", parameters_hash=current[2]
        )
        chances = sorted(answers.values_list("evidence__chance__value", flat=True))
        assert len(chances) == 60
        # Were they 60 others, the rarest could come out as 2 of 61.
        assert chances[0] >= 4 / 61

    def test_clearing_it_makes_the_checks_not_applicable(self, normal):
        found = chosen(made(normal))
        upload_traces(normal, steady(900, slow=4), name="slow.jsonl")
        assert Signal.objects.get(check_slug="latency-shift").state == "open"
        assert clear_baseline(trace_set=found)
        assert not clear_baseline(trace_set=found)
        caught_up(normal)
        assert lineup_of(normal.pk).by_slug["latency-shift"].check.baseline is None
        assert Signal.objects.get(check_slug="latency-shift").state == "superseded"
        # The same content is the same key, and everything is back.
        chosen(found)
        caught_up(normal)
        assert Signal.objects.get(check_slug="latency-shift").state == "open"

    def test_deleting_the_set_clears_it(self, normal):
        forget_set(trace_set=chosen(made(normal)))
        assert lineup_of(normal.pk).by_slug["latency-shift"].check.baseline is None
        assert Trace.objects.count() == 60


class TestFailing:
    def test_a_failure_leaves_the_earlier_baseline(self, normal, monkeypatch):
        one, other = chosen(made(normal)), made(normal, "Other")
        choose_baseline(trace_set=other, now=NOW)

        def broken(_trace):
            raise MemoryError

        monkeypatch.setattr(baselines, "durations_by_name", broken)
        for _ in range(3):
            with pytest.raises(MemoryError):
                make_baseline(trace_set_id=other.pk, clock=clock)
        assert not make_baseline(trace_set_id=other.pk, clock=clock)
        other.refresh_from_db()
        assert other.baseline == {"failure": GAVE_UP}
        assert TraceSet.objects.get(is_baseline=True).baseline == one.baseline
        monkeypatch.undo()
        assert chosen(other).is_baseline

    def test_stopping_and_deleting_while_it_is_computed(self, normal, monkeypatch):
        monkeypatch.setattr(
            baselines.time, "monotonic", iter(range(0, 9999, 2)).__next__
        )
        say = baselines._say_progress

        def stopped(trace_set_id, token, done, clock):
            say(trace_set_id, token, done, clock)
            if done == 2:
                clear_baseline(trace_set=TraceSet.objects.get(pk=trace_set_id))

        monkeypatch.setattr(baselines, "_say_progress", stopped)
        found = made(normal)
        choose_baseline(trace_set=found, now=NOW)
        assert not make_baseline(trace_set_id=found.pk, clock=clock)
        found.refresh_from_db()
        assert (found.is_baseline, found.baseline) == (False, None)

    def test_progress_is_written_while_it_is_computed(self, normal, monkeypatch):
        monkeypatch.setattr(
            baselines.time, "monotonic", iter(range(0, 9999, 2)).__next__
        )
        said = []
        say = baselines._say_progress

        def spoken(trace_set_id, token, done, clock):
            say(trace_set_id, token, done, clock)
            said.append(TraceSet.objects.get().baseline["wanted"]["done"])

        monkeypatch.setattr(baselines, "_say_progress", spoken)
        chosen(made(normal))
        assert said == list(range(1, 61))

    def test_what_nobody_works_on_is_found_again(self, normal):
        found = made(normal)
        choose_baseline(trace_set=found, now=NOW)
        assert waiting_baselines(now=NOW) == []
        assert waiting_baselines(now=NOW + timedelta(seconds=31)) == [found.pk]
        chosen(found)
        assert waiting_baselines(now=NOW + timedelta(days=1)) == []

    def test_a_set_without_traces_cannot_be_chosen(self, normal):
        found = made(normal)
        allow_erasing_history()
        Trace.objects.all().delete()
        with pytest.raises(CannotBeBaseline, match="removed"):
            choose_baseline(trace_set=found, now=NOW)

    def test_a_set_that_is_deleted_at_that_moment_cannot_be_chosen(
        self, normal, monkeypatch
    ):
        found = made(normal)
        lock = baselines._lock_project

        def deleted_first(project_id):
            TraceSet.objects.filter(pk=found.pk).delete()
            lock(project_id)

        monkeypatch.setattr(baselines, "_lock_project", deleted_first)
        with pytest.raises(CannotBeBaseline, match="deleted meanwhile"):
            choose_baseline(trace_set=found, now=NOW)

    def test_a_set_with_too_many_calls_cannot_be_chosen(self, normal, monkeypatch):
        monkeypatch.setattr(baselines, "MOST_CALLS", 700)
        with pytest.raises(CannotBeBaseline, match="at most 700"):
            choose_baseline(trace_set=made(normal), now=NOW)


@pytest.mark.django_db(transaction=True)
class TestWorkers:
    def test_choosing_wakes_a_worker_and_the_switch_wakes_the_catch_up(
        self, owner, monkeypatch
    ):
        sent = []

        def note(name, *_args, kwargs=None, **_more):
            sent.append((name, kwargs))

        monkeypatch.setattr("celery.current_app.send_task", note)
        project = make_project(owner=owner, name="Woken")
        upload_traces(project, *[steady(n) for n in range(5)])
        found = made(project)
        sent.clear()
        choose_baseline(trace_set=found, now=NOW)
        assert sent == [("pipeline.make_baseline", {"trace_set_id": found.pk})]
        tasks.make_baseline(trace_set_id=found.pk)
        assert sent[1:] == [("pipeline.catch_up", {"project_id": project.pk})]
        found.refresh_from_db()
        assert found.is_baseline
        while catch_up(project_id=project.pk, clock=clock):
            pass

    def test_one_worker_at_a_time_computes_a_set(self, owner):
        project = make_project(owner=owner, name="Alone")
        upload_traces(project, steady(1))
        found = made(project)
        choose_baseline(trace_set=found, now=NOW)
        other = connection.copy()
        try:
            with other.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_advisory_lock(hashtext('make_baseline'), %s)", [found.pk]
                )
            assert not make_baseline(trace_set_id=found.pk, clock=clock)
            with other.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock_all()")
        finally:
            other.close()
        assert make_baseline(trace_set_id=found.pk, clock=clock)
