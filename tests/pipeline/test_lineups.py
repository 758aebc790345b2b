"""Catching up with a line-up: whole batches, in parallel, through kills, beside uploads."""

from __future__ import annotations

import pytest
from django.db import transaction
from kombu.exceptions import OperationalError

from apps.accounts.models import Project
from apps.engine.check import Answer
from apps.engine.checks import CHECKS
from apps.engine.checks.output_decay import OutputDecay
from apps.pipeline import lineups, tasks
from apps.pipeline.lineups import (
    answer_batch,
    catch_up,
    wake_catch_up,
    wake_projects_behind,
)
from apps.pipeline.shadows import Wish, adopt_key
from apps.review.models import HistoryEntry, Signal
from apps.review.ranking import is_unranked
from apps.screening import lineup as lineup_module
from apps.screening.answering import BROKE
from apps.screening.lineup import lineup_of, parameters_hash
from apps.screening.models import Adoption, Screening
from apps.traces.behind import behind, behind_count
from apps.traces.models import Trace, Upload
from tests.adopting import FALLING, STEEP, adopt, caught_up, key
from tests.factories import (
    NOW,
    decay_trace,
    make_project,
    tools_trace,
    upload_traces,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def older(monkeypatch):
    """A release that knew fewer checks: what is uploaded lacks the others' answers."""
    monkeypatch.setattr(lineup_module, "CHECKS", (OutputDecay(),))
    return lambda: monkeypatch.setattr(lineup_module, "CHECKS", CHECKS)


def is_caught_up(project: Project) -> bool:
    return behind_count(project.pk, lineup_of(project.pk).name) == 0


def answers() -> list[tuple]:
    """Everything that is said about everything, without ids."""
    return sorted(
        Screening.objects.values_list(
            "trace__name",
            "check_slug",
            "check_version",
            "parameters_hash",
            "scope",
            "answer",
            "level",
            "headline",
            "input_hash",
        )
    )


def upload_some(project: Project, name: str = "some", count: int = 6) -> Upload:
    traces = [
        decay_trace(*lengths, name=f"{name} {number}")
        for number, lengths in enumerate([FALLING, STEEP, (9, 8, 9)] * (count // 3))
    ]
    return upload_traces(
        project, *traces, tools_trace("a", "b", name=f"{name} t"), name=f"{name}.jsonl"
    )


class TestCatchingUp:
    """What is behind is answered by what is missing, and by nothing else."""

    def test_new_checks_of_a_release_answer_about_what_is_here(self, project, older):
        upload_some(project)
        upgrade = older
        elsewhere = make_project(name="Elsewhere")
        upgrade()
        upload_some(elsewhere)
        fresh = Screening.objects.filter(project=elsewhere)
        expected = sorted(
            fresh.values_list("trace__name", "check_slug", "scope", "answer")
        )
        assert not is_caught_up(project)
        caught_up(project)
        assert is_caught_up(project)
        mine = Screening.objects.filter(project=project)
        found = mine.values_list("trace__name", "check_slug", "scope", "answer")
        assert sorted(found) == expected
        signals = Signal.objects.values_list("project", "trace__name", "headline")
        of_both = [
            sorted(row[1:] for row in signals if row[0] == one.pk)
            for one in (project, elsewhere)
        ]
        assert of_both[0] == of_both[1]

    def test_a_new_check_is_pinned_then(self, project, older):
        upload_some(project)
        older()
        caught_up(project)
        pinned = set(Adoption.objects.values_list("check_slug", flat=True))
        assert pinned == {check.slug for check in CHECKS}

    def test_only_the_key_that_changed_answers_again(self, project):
        upload_some(project)
        before = set(Screening.objects.values_list("pk", flat=True))
        adopt(project, last_percent=30)
        new = Screening.objects.exclude(pk__in=before)
        assert set(new.values_list("check_slug", flat=True)) == {"output-decay"}
        assert set(new.values_list("parameters_hash", flat=True)) == {
            parameters_hash(key(project))
        }

    def test_doing_it_again_changes_nothing(self, project):
        upload_some(project)
        adopt(project, last_percent=30)
        before = answers(), list(HistoryEntry.objects.order_by("pk").values())
        Trace.objects.update(screened_as="")
        caught_up(project)
        assert before == (answers(), list(HistoryEntry.objects.order_by("pk").values()))
        assert is_caught_up(project)

    def test_traits_of_old_traces_are_filled_in(self, project):
        upload_some(project)
        expected = dict(Trace.objects.values_list("name", "traits"))
        assert all(expected.values())
        Trace.objects.update(traits=[], screened_as="")
        caught_up(project)
        assert dict(Trace.objects.values_list("name", "traits")) == expected

    def test_a_batch_is_bounded_by_steps_and_a_large_trace_goes_alone(
        self, project, monkeypatch
    ):
        monkeypatch.setattr(lineups, "MOST_STEPS", 12)
        lengths = [(1,) * 5, (2,) * 5, (3,) * 30, (4,) * 5]
        upload_traces(
            project, *(decay_trace(*one, name=str(one[0])) for one in lengths)
        )
        Trace.objects.update(screened_as="")
        done = []
        while waiting := behind(project.pk, lineup_of(project.pk).name, most=200):
            done.append(answer_batch(waiting, project_id=project.pk, now=NOW))
        assert done == [2, 1, 1]

    def test_a_check_that_breaks_is_an_answer_that_says_so(self, project, monkeypatch):
        upload_some(project)

        def broken(self, trace):
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(OutputDecay, "run", broken)
            adopt(project, last_percent=30)
        rows = Screening.objects.filter(reason_code=BROKE)
        assert rows.count() == Trace.objects.count()
        assert {row.answer for row in rows} == {Answer.NOT_APPLICABLE}
        assert "our fault" in rows[0].evidence["reason"]
        assert is_caught_up(project)

    def test_a_killed_batch_leaves_nothing_half_done(self, project, monkeypatch):
        upload_some(project)
        adopt_key(
            project_id=project.pk,
            wish=Wish(key(project, last_percent=30)),
            user_id=None,
            now=NOW,
        )
        before = answers()

        def killed(**_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(lineups, "mark_screened", killed)
            with pytest.raises(KeyboardInterrupt), transaction.atomic():
                catch_up(project_id=project.pk, clock=lambda: NOW)
        assert answers() == before
        assert behind_count(project.pk, lineup_of(project.pk).name) == 7
        caught_up(project)
        assert is_caught_up(project)

    def test_the_signals_are_ranked_when_it_has_caught_up(self, project):
        upload_some(project)
        Signal.objects.update(rank=0.7, q=None)
        adopt(project, last_percent=30)
        decay = Signal.objects.filter(check_slug="output-decay", state="open")
        assert {signal.q is not None and signal.rank < 0.7 for signal in decay} == {
            True
        }

    def test_a_run_whose_time_is_over_leaves_the_ranking_to_the_next(
        self, project, monkeypatch
    ):
        upload_some(project)
        adopt_key(
            project_id=project.pk,
            wish=Wish(key(project, last_percent=30)),
            user_id=None,
            now=NOW,
        )
        waiting = behind(project.pk, lineup_of(project.pk).name, most=200)
        answer_batch(waiting, project_id=project.pk, now=NOW)
        assert is_caught_up(project)
        assert is_unranked(project.pk, lineup_of(project.pk))
        assert catch_up(project_id=project.pk, clock=lambda: NOW) is False
        waits = Signal.objects.filter(check_slug="output-decay", state="open")
        assert waits.exists()
        assert not waits.filter(q=None).exists()

    def test_a_worker_killed_before_the_ranking_is_noticed(self, project, monkeypatch):
        upload_some(project)
        woken: list[int] = []
        monkeypatch.setattr(
            lineups, "wake", lambda name, *, project_id: woken.append(project_id)
        )

        def killed(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(lineups, "rank_signals", killed)
            with pytest.raises(KeyboardInterrupt):
                adopt(project, last_percent=30)
        assert is_caught_up(project)
        assert wake_projects_behind() == 1
        assert woken == [project.pk]
        caught_up(project)
        assert wake_projects_behind() == 0


class TestWaking:
    """A worker is told when the change has been committed, and only then."""

    @pytest.fixture
    def woken(self, monkeypatch) -> list[int]:
        """The projects for which a worker was told to catch up."""
        projects: list[int] = []

        def note(name, *, kwargs):
            assert name == "pipeline.catch_up"
            projects.append(kwargs["project_id"])

        monkeypatch.setattr("celery.current_app.send_task", note)
        return projects

    def test_it_waits_for_the_commit(
        self, project, woken, django_capture_on_commit_callbacks
    ):
        with django_capture_on_commit_callbacks(execute=True):
            wake_catch_up(project_id=project.pk)
            assert woken == []
        assert woken == [project.pk]

    def test_a_broker_that_is_away_costs_nothing(
        self, project, monkeypatch, django_capture_on_commit_callbacks
    ):
        def away(*_, **__):
            raise OperationalError("connection refused")

        monkeypatch.setattr("celery.current_app.send_task", away)
        with django_capture_on_commit_callbacks(execute=True) as callbacks:
            wake_catch_up(project_id=project.pk)
        assert len(callbacks) == 1

    def test_projects_that_are_behind_are_found_and_others_are_left(
        self, project, woken, older
    ):
        upload_some(project)
        empty = make_project(name="Empty")
        assert wake_projects_behind() == 0
        older()
        assert wake_projects_behind() == 1
        assert woken == [project.pk] != [empty.pk]

    def test_the_task_goes_on_until_nothing_is_behind(self, project, monkeypatch):
        upload_some(project)
        Trace.objects.update(screened_as="")
        monkeypatch.setattr(lineups, "LONGEST_SECONDS", 0.0)
        sent: list[int] = []
        monkeypatch.setattr(
            tasks.catch_up, "delay", lambda *, project_id: sent.append(project_id)
        )
        tasks.catch_up(project_id=project.pk)
        assert sent == [project.pk]
        monkeypatch.setattr(lineups, "LONGEST_SECONDS", 10.0)
        tasks.catch_up(project_id=project.pk)
        assert sent == [project.pk]
