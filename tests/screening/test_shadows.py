"""A shadow answers under a key of its own and moves nothing; adopting it settles all."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from apps.engine.checks.output_decay import OutputDecay
from apps.pipeline import shadows as pipeline
from apps.pipeline import tasks
from apps.pipeline.shadows import (
    AdoptedMeanwhile,
    NothingToChange,
    Wish,
    adopt_key,
    begin_shadow,
    run_shadow,
    set_paused,
)
from apps.reports.models import Report
from apps.reports.operations import freeze
from apps.review.models import HistoryEntry, Signal
from apps.review.queries import QueueFilter, counts
from apps.review.shadow_results import compare
from apps.screening import shadows
from apps.screening.lineup import lineup_of
from apps.screening.models import Adoption, Screening, Shadow
from apps.screening.queries import answers_about, counts_per_check
from apps.screening.shadows import (
    MAX_TRIES,
    CannotShadow,
    LostShadow,
    advance,
    cancel_shadow,
    candidate,
    claim_shadow,
    free_shadow_ids,
    give_up_stuck_shadows,
)
from apps.traces.models import Trace
from tests.adopting import (
    STEEP,
    adopt,
    begun,
    caught_up,
    key,
    pair,
    shadowed,
    upload_runs,
)
from tests.factories import NOW, decay_trace, upload_traces

pytestmark = pytest.mark.django_db


@pytest.fixture
def three(project):
    upload_runs(project, "falling", "steep", "gentle")


def everything_people_see(project, user) -> list:
    lineup = lineup_of(project.pk)
    report = freeze(
        project=project,
        user=user,
        title="The same",
        where=QueueFilter(view="all"),
        now=NOW,
    )
    document = json.loads(Report.objects.get(pk=report.pk).document)
    return [
        list(Signal.objects.order_by("pk").values()),
        list(HistoryEntry.objects.order_by("pk").values()),
        counts(project=project, user=user),
        counts_per_check(project),
        [
            list(answers_about(trace.pk, lineup=lineup).values())
            for trace in Trace.objects.order_by("pk")
        ],
        list(Trace.objects.order_by("pk").values()),
        document,
    ]


class TestRunning:
    """It answers about every trace, and nothing else happens."""

    def test_the_queue_and_every_count_stay_as_they_are(self, project, three, owner):
        before = everything_people_see(project, owner)
        shadow = shadowed(project, last_percent=90, min_calls=6)
        assert (shadow.state, shadow.traces_done, shadow.traces_total) == ("done", 3, 3)
        own = Screening.objects.filter(parameters_hash=shadow.parameters_hash)
        assert own.values("trace").distinct().count() == 3
        assert everything_people_see(project, owner) == before

    def test_the_key_that_counts_is_not_tried(self, project, three):
        with pytest.raises(CannotShadow, match="counts already"):
            shadowed(project, last_percent=60)

    def test_a_key_that_is_being_tried_is_not_tried_twice(self, project, three):
        check = key(project, last_percent=30)
        one, is_new = begin_shadow(project=project, check=check, user_id=None, now=NOW)
        two, is_new_too = begin_shadow(
            project=project, check=check, user_id=None, now=NOW
        )
        assert (is_new, is_new_too) == (True, False)
        assert one == two

    def test_a_parameter_out_of_its_range_is_refused_in_a_sentence(self, project):
        lineup = lineup_of(project.pk)
        with pytest.raises(ValueError, match="must be at least 5 and at most 1,000"):
            candidate(lineup, "output-decay", version=1, values={"min_calls": 2})
        with pytest.raises(CannotShadow, match="no such version"):
            candidate(lineup, "output-decay", version=99, values={})

    def test_traces_that_have_answers_are_not_asked_again(
        self, project, three, monkeypatch
    ):
        first = shadowed(project, last_percent=30)
        asked = []
        run = OutputDecay.run

        def watched(self, trace):
            asked.append(trace.name)
            return run(self, trace)

        monkeypatch.setattr(OutputDecay, "run", watched)
        upload_traces(project, decay_trace(*STEEP, name="later"), name="later.jsonl")
        asked.clear()
        second = shadowed(project, last_percent=30)
        assert second.pk != first.pk
        assert asked == ["later"]

    def test_it_goes_on_where_another_worker_stopped(self, project, three, monkeypatch):
        monkeypatch.setattr(pipeline, "MOST_TRACES", 1)
        monkeypatch.setattr(pipeline, "LONGEST_SECONDS", 0.0)
        shadow = begun(project, last_percent=30)
        claim = claim_shadow(shadow_id=shadow.pk, lease_seconds=60)
        [first, *_] = Trace.objects.order_by("pk")
        pipeline._answer(claim, [first.pk])
        assert run_shadow(shadow_id=shadow.pk) is False, "someone has it"
        Shadow.objects.update(claimed_until=Now())
        monkeypatch.setattr(pipeline, "LONGEST_SECONDS", 10.0)
        assert run_shadow(shadow_id=shadow.pk) is False
        shadow.refresh_from_db()
        assert (shadow.state, shadow.traces_done) == ("done", 3)

    def test_a_cancelled_one_writes_nothing_more(self, project, three):
        shadow = begun(project, last_percent=30)
        claim = claim_shadow(shadow_id=shadow.pk, lease_seconds=60)
        assert cancel_shadow(shadow_id=shadow.pk)
        assert not cancel_shadow(shadow_id=shadow.pk)
        ids = list(Trace.objects.values_list("pk", flat=True))
        with pytest.raises(LostShadow):
            pipeline._answer(claim, ids)
        own = Screening.objects.filter(parameters_hash=shadow.parameters_hash)
        assert not own.exists()
        assert run_shadow(shadow_id=shadow.pk) is False

    def test_an_old_worker_whose_lease_ended_is_refused(self, project, three):
        shadow = begun(project, last_percent=30)
        old = claim_shadow(shadow_id=shadow.pk, lease_seconds=60)
        Shadow.objects.update(claimed_until=Now() - timedelta(seconds=1))
        assert claim_shadow(shadow_id=shadow.pk, lease_seconds=60) is not None
        with pytest.raises(LostShadow):
            advance(old, last_trace=1, done=1)

    def test_after_three_tries_it_has_failed_with_a_sentence(self, project, three):
        shadow = begun(project, last_percent=30)
        for _ in range(MAX_TRIES):
            assert claim_shadow(shadow_id=shadow.pk, lease_seconds=60) is not None
            assert give_up_stuck_shadows() == 0
            Shadow.objects.update(claimed_until=Now() - timedelta(seconds=1))
        assert claim_shadow(shadow_id=shadow.pk, lease_seconds=60) is None
        assert free_shadow_ids() == []
        assert give_up_stuck_shadows() == 1
        shadow.refresh_from_db()
        assert shadow.state == "failed"
        assert "ended its worker 3 times" in shadow.failure

    def test_a_version_that_is_gone_ends_it_with_a_sentence(
        self, project, three, monkeypatch
    ):
        shadow = begun(project, last_percent=30)
        monkeypatch.setattr(shadows, "versions_of", lambda slug: ())
        assert run_shadow(shadow_id=shadow.pk) is False
        shadow.refresh_from_db()
        assert (shadow.state, shadow.failure[:12]) == ("failed", "This version")

    def test_one_whose_message_was_lost_is_found(self, project, three, monkeypatch):
        shadow = begun(project, last_percent=30)
        Shadow.objects.update(created_at=Now())
        assert free_shadow_ids() == []
        Shadow.objects.update(created_at=Now() - timedelta(seconds=11))
        sent: list[int] = []
        monkeypatch.setattr(
            tasks.run_shadow, "delay", lambda *, shadow_id: sent.append(shadow_id)
        )
        tasks.resume_stuck()
        assert sent == [shadow.pk]

    def test_a_broker_that_is_away_costs_nothing(
        self, project, three, monkeypatch, django_capture_on_commit_callbacks
    ):
        def away(*_, **__):
            raise OperationalError("connection refused")

        monkeypatch.setattr("celery.current_app.send_task", away)
        with django_capture_on_commit_callbacks(execute=True) as callbacks:
            begun(project, last_percent=30)
        assert len(callbacks) == 1
        assert Shadow.objects.get().state == "running"


@pytest.mark.usefixtures("three")
class TestAdopting:
    """One act makes a key current; the history is kept and can be gone back to."""

    def change(self, project, **values) -> Adoption:
        return adopt_key(
            project_id=project.pk,
            wish=Wish(key(project, **values), note="Too many."),
            user_id=None,
            now=NOW,
        )

    def test_the_queue_is_what_the_result_said(self, project):
        shadow = shadowed(project, last_percent=30)
        said = compare(pair(project, shadow)).shadow.queued
        adopt(project, last_percent=30)
        assert Signal.objects.filter(state="open").count() == said == 1
        shadow.refresh_from_db()
        assert shadow.state == "adopted"

    def test_its_answers_are_taken_over_and_not_computed_again(
        self, project, monkeypatch
    ):
        shadowed(project, last_percent=30)
        before = Screening.objects.count()
        monkeypatch.setattr(
            "apps.traces.contents.StoredContent.decoded",
            lambda content: pytest.fail("The stored trace was read again."),
        )
        adopt(project, last_percent=30)
        assert Screening.objects.count() == before

    def test_every_change_is_a_row_of_its_own(self, project):
        self.change(project, last_percent=30)
        self.change(project, last_percent=60)
        rows = Adoption.objects.filter(check_slug="output-decay").order_by("number")
        found = [(row.number, row.parameters["last_percent"], row.note) for row in rows]
        assert found == [(1, 60, ""), (2, 30, "Too many."), (3, 60, "Too many.")]

    def test_what_counts_already_is_not_adopted_again(self, project):
        with pytest.raises(NothingToChange, match="counts already"):
            self.change(project, last_percent=60)

    def test_one_who_saw_an_older_history_is_told(self, project):
        wish = Wish(key(project, last_percent=40), seen=1)
        self.change(project, last_percent=30)
        with pytest.raises(AdoptedMeanwhile, match="since you opened the page"):
            adopt_key(project_id=project.pk, wish=wish, user_id=None, now=NOW)

    def test_a_paused_check_stays_paused(self, project):
        set_paused(
            project_id=project.pk,
            slug="output-decay",
            is_paused=True,
            user_id=None,
            now=NOW,
        )
        with pytest.raises(NothingToChange, match="is paused already"):
            set_paused(
                project_id=project.pk,
                slug="output-decay",
                is_paused=True,
                user_id=None,
                now=NOW,
            )
        assert self.change(project, last_percent=30).state == "paused"
        caught_up(project)
        assert not Signal.objects.filter(state="open").exists()
