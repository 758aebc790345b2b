"""Catching up while people and other workers do something else."""

from __future__ import annotations

import threading
import time

import pytest

from apps.accounts.models import Project
from apps.accounts.permissions import Role
from apps.pipeline import lineups
from apps.pipeline.alone import alone
from apps.pipeline.lineups import (
    answer_batch,
    catch_up,
)
from apps.pipeline.shadows import Wish, adopt_key, set_paused
from apps.review import operations as review
from apps.review.models import Signal
from apps.review.operations import Conflict, DecisionInput
from apps.review.transitions import Verdict
from apps.screening.lineup import lineup_of
from apps.screening.models import Adoption, Screening
from apps.traces.behind import behind, behind_count
from apps.traces.models import Trace, Upload
from tests.adopting import STEEP, adopt, caught_up, key
from tests.at_once import at_once
from tests.factories import (
    NOW,
    decay_trace,
    make_member,
    upload_traces,
)
from tests.pipeline.test_lineups import is_caught_up, upload_some


@pytest.mark.django_db(transaction=True)
class TestAtTheSameTime:
    """Uploads, adoptions and other workers go on meanwhile."""

    @pytest.fixture(autouse=True)
    def quiet_broker(self, monkeypatch):
        monkeypatch.setattr("celery.current_app.send_task", lambda *_, **__: None)

    def test_only_one_worker_catches_up_with_a_project(self, project):
        upload_some(project)
        Trace.objects.update(screened_as="")
        with alone("catch_up", project.pk) as is_mine:
            assert is_mine
            [answer] = at_once(
                lambda: catch_up(project_id=project.pk, clock=lambda: NOW)
            )
        assert answer is False
        assert behind_count(project.pk, lineup_of(project.pk).name) == 7
        [answer] = at_once(lambda: catch_up(project_id=project.pk, clock=lambda: NOW))
        assert answer is False
        assert is_caught_up(project)

    def test_batches_in_parallel_answer_everything_once(self, project, monkeypatch):
        monkeypatch.setattr(lineups, "MOST_STEPS", 10)
        upload_some(project, count=30)
        adopt_key(
            project_id=project.pk,
            wish=Wish(key(project, last_percent=30)),
            user_id=None,
            now=NOW,
        )

        def work():
            done = 0
            while waiting := behind(project.pk, lineup_of(project.pk).name, most=200):
                done += answer_batch(waiting, project_id=project.pk, now=NOW)
            return done

        done = at_once(work, work, work)
        assert all(isinstance(one, int) for one in done), done
        self.assert_whole(project)

    def test_adopting_while_an_upload_is_read_ends_in_the_same_queue(self, project):
        upload_some(project, "first")

        def upload():
            return upload_some(project, "second", count=60).state

        def change():
            for percent in (30, 60, 40):
                adopt(project, last_percent=percent)

        at_once(upload, change)
        caught_up(project)
        assert Trace.objects.count() == 68
        self.assert_whole(project)

    def test_a_decision_that_waits_for_the_catch_up_is_told_of_the_change(
        self, project, monkeypatch
    ):
        upload_traces(project, decay_trace(*STEEP))
        reviewer = make_member(project, Role.REVIEWER)
        signal = Signal.objects.get(check_slug="output-decay")
        signal = review.claim(signal_id=signal.pk, user=reviewer)
        wish = Wish(key(project, last_percent=30))
        adopt_key(project_id=project.pk, wish=wish, user_id=None, now=NOW)
        is_settled, whole = threading.Event(), lineups.mark_screened

        def later(**values):
            is_settled.set()
            time.sleep(0.5)
            whole(**values)

        def decide():
            assert is_settled.wait(10)
            return review.decide(
                signal_id=signal.pk,
                user=reviewer,
                decision=DecisionInput(verdict=Verdict.CONFIRM),
                base_version=signal.version,
            )

        monkeypatch.setattr(lineups, "mark_screened", later)
        _, said = at_once(lambda: caught_up(project), decide)
        assert isinstance(said, Conflict)
        assert "has changed since you opened it" in str(said)

    def test_pausing_never_takes_back_what_is_adopted_at_the_same_time(self, project):
        for percent in (20, 30, 40, 50):
            wish = Wish(key(project, last_percent=percent))
            at_once(
                lambda wish=wish: adopt_key(
                    project_id=project.pk, wish=wish, user_id=None, now=NOW
                ),
                *(
                    lambda is_paused=is_paused: set_paused(
                        project_id=project.pk,
                        slug="output-decay",
                        is_paused=is_paused,
                        user_id=None,
                        now=NOW,
                    )
                    for is_paused in (True, False)
                ),
            )
            now = lineup_of(project.pk).by_slug["output-decay"].check
            assert now.parameters["last_percent"] == percent
        numbers = Adoption.objects.filter(check_slug="output-decay").order_by("number")
        found = list(numbers.values_list("number", flat=True))
        assert found == list(range(1, len(found) + 1))

    def test_of_two_who_adopt_at_once_one_is_told(self, project):
        upload_some(project)
        wishes = [Wish(key(project, last_percent=p), seen=1) for p in (30, 40, 50)]
        results = at_once(
            *(
                lambda wish=wish: adopt_key(
                    project_id=project.pk, wish=wish, user_id=None, now=NOW
                )
                for wish in wishes
            )
        )
        adopted = [one for one in results if isinstance(one, Adoption)]
        refused = [str(one) for one in results if isinstance(one, Exception)]
        assert [one.number for one in adopted] == [2]
        assert ["Somebody" in sentence for sentence in refused] == [True, True]
        caught_up(project)
        self.assert_whole(project)

    def assert_whole(self, project: Project) -> None:
        """The queue is what a project would have that began with this line-up."""
        assert is_caught_up(project)
        lineup = lineup_of(project.pk)
        traces = Trace.objects.filter(project=project)
        for entry in lineup.entries:
            slug, version, parameters = entry.key
            rows = Screening.objects.filter(
                project=project,
                check_slug=slug,
                check_version=version,
                parameters_hash=parameters,
            )
            assert rows.values("trace").distinct().count() == traces.count(), slug
        queued = Screening.objects.filter(
            lineup.current(), project=project, answer="signal", level="review_signal"
        )
        standing = Signal.objects.filter(project=project).exclude(state="superseded")
        assert set(standing.values_list("screening", flat=True)) == set(
            queued.values_list("pk", flat=True)
        )
        for upload in Upload.objects.filter(project=project):
            mine = standing.filter(trace__upload=upload)
            assert upload.signal_count == mine.count()
