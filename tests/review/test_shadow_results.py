"""What a shadow would change in the queue, with the decisions already taken."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.engine.check import Level
from apps.engine.checks.output_decay import OutputDecay
from apps.pipeline.shadows import (
    begin_shadow,
    run_shadow,
)
from apps.review.models import Signal
from apps.review.shadow_results import Change, Pair, changed_page, compare
from apps.review.transitions import Verdict
from apps.screening import shadows
from apps.screening.models import Screening
from tests.adopting import STEEP, decide, pair, shadowed, upload_runs
from tests.factories import NOW, decay_trace, upload_traces

pytestmark = pytest.mark.django_db


@pytest.fixture
def three(project):
    upload_runs(project, "falling", "steep", "gentle")


class TestTheResult:
    """What appears, vanishes and persists, with what people said of it."""

    def test_signals_are_sorted_by_what_becomes_of_them(self, project, three):
        found = compare(pair(project, shadowed(project, last_percent=90)))
        assert {c: d.total for c, d in found.changes.items()} == {
            Change.APPEAR: 1,
            Change.VANISH: 0,
            Change.PERSIST: 2,
        }
        tight = compare(pair(project, shadowed(project, last_percent=30)))
        assert {c: d.total for c, d in tight.changes.items()} == {
            Change.APPEAR: 0,
            Change.VANISH: 1,
            Change.PERSIST: 1,
        }
        assert (tight.current.queued, tight.shadow.queued) == (2, 1)
        assert (tight.compared, tight.unanswered) == (3, 0)

    def test_it_says_which_decisions_would_be_lost(self, project, three, reviewer):
        decide("falling", reviewer, Verdict.CONFIRM)
        decide("steep", reviewer, Verdict.DISMISS, "converged")
        found = compare(pair(project, shadowed(project, last_percent=30)))
        vanishing = found.changes[Change.VANISH]
        assert (vanishing.confirmed, vanishing.dismissals) == (1, 0)
        persisting = found.changes[Change.PERSIST]
        assert persisting.dismissed == {"converged": 1}

    def test_precision_of_both_is_that_of_inherited_decisions(
        self, project, three, reviewer
    ):
        decide("falling", reviewer, Verdict.CONFIRM)
        decide("steep", reviewer, Verdict.DISMISS, "converged")
        found = compare(pair(project, shadowed(project, last_percent=30)))
        now, then = found.current.decided, found.shadow.decided
        assert (now.confirmed, now.dismissals) == (1, 1)
        assert (then.confirmed, then.dismissals) == (0, 1)
        assert now.precision is not None
        assert now.precision.low < 0.5 < now.precision.high

    def test_without_a_decision_there_is_no_precision(self, project, three):
        found = compare(pair(project, shadowed(project, last_percent=30)))
        assert found.current.decided.precision is None

    def test_what_chance_gives_stands_beside_both(self, project, three):
        found = compare(pair(project, shadowed(project, last_percent=30)))
        for side in (found.current, found.shadow):
            assert side.chance is not None
            assert side.chance.tested == side.applicable == 3
        assert found.shadow.chance.expected <= found.current.chance.expected

    def test_telemetry_is_counted_apart(self, project):
        upload_traces(
            project, decay_trace(5, 5, 5, 5, 1, name="tied"), decay_trace(*STEEP)
        )
        shadow = shadowed(project, max_chance=1.0)
        found = compare(pair(project, shadow))
        assert (found.current.queued, found.current.telemetry) == (1, 1)
        assert (found.shadow.queued, found.shadow.telemetry) == (2, 0)
        tied = Screening.objects.filter(trace__name="tied", check_slug="output-decay")
        levels = {row.parameters_hash: row.level for row in tied}
        assert levels[shadow.parameters_hash] == Level.REVIEW_SIGNAL

    def test_each_signal_is_listed_with_its_trace_and_decision(
        self, project, three, reviewer
    ):
        decide("falling", reviewer, Verdict.CONFIRM)
        both = pair(project, shadowed(project, last_percent=30))
        [row] = changed_page(both, Change.VANISH)
        assert (row.trace.name, row.decided_verdict) == ("falling", "confirm")
        assert row.signal_there == Signal.objects.get(trace__name="falling").pk
        [row] = changed_page(both, Change.PERSIST)
        assert (row.trace.name, row.decided_verdict) == ("steep", None)
        assert row.reads_the_same
        assert changed_page(both, Change.PERSIST, after=row.pk) == []

    def test_another_version_that_reads_otherwise_is_matched_by_scope(
        self, project, three, reviewer, monkeypatch
    ):
        decide("steep", reviewer, Verdict.CONFIRM)

        @dataclass(frozen=True)
        class Newer(OutputDecay):
            version = 2

            def run(self, trace):
                for answer in OutputDecay.run(self, trace):
                    yield msgspec.structs.replace(answer, input_hash="e" * 64)

        newer = Newer()
        monkeypatch.setattr(shadows, "versions_of", lambda slug: (newer, OutputDecay()))
        shadow, _ = begin_shadow(project=project, check=newer, user_id=None, now=NOW)
        assert run_shadow(shadow_id=shadow.pk) is False
        both = Pair(project, OutputDecay(), newer)
        found = compare(both)
        assert found.changes[Change.PERSIST].total == 2
        assert {row.reads_the_same for row in changed_page(both, Change.PERSIST)} == {
            False
        }
        # What nobody saw has no decision: it is not inherited by scope.
        assert found.current.decided.confirmed == 1
        assert found.shadow.decided.confirmed == 0

    def test_traces_that_came_since_are_said(self, project, three):
        shadow = shadowed(project, last_percent=30)
        upload_traces(project, decay_trace(*STEEP, name="later"), name="later.jsonl")
        found = compare(pair(project, shadow))
        assert (found.compared, found.unanswered) == (3, 1)

    def test_it_takes_the_same_queries_for_many_traces(self, project, three):
        def queries() -> int:
            both = pair(project, shadowed(project, last_percent=30))
            with CaptureQueriesContext(connection) as seen:
                compare(both)
                changed_page(both, Change.PERSIST)
            return len(seen)

        few = queries()
        upload_traces(
            project,
            *(decay_trace(*STEEP, name=f"more {n}") for n in range(12)),
            name="more.jsonl",
        )
        assert queries() == few
