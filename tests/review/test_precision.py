"""Which decisions count for the key of a check that is current now."""

from __future__ import annotations

import pytest

from apps.engine.check import configured
from apps.engine.checks import by_slug
from apps.pipeline.lineups import catch_up
from apps.review import operations as review
from apps.review.models import Signal
from apps.review.operations import DecisionInput
from apps.review.queries import check_precision
from apps.review.transitions import Verdict
from apps.screening.lineup import Choice, adopt, lineup_of
from tests.factories import NOW, decay_trace, upload_traces


@pytest.mark.parametrize(
    ("last_percent", "expected"),
    [(60, (2, 2, 1)), (50, (1, 1, 1)), (10, (0, 0, 0))],
    ids=["both are given", "one is given", "none is given"],
)
def test_decisions_count_where_the_current_key_gives_the_signal(
    project, owner, last_percent, expected
):
    upload_traces(
        project,
        decay_trace(100, 90, 80, 70, 40, name="deep"),
        decay_trace(100, 90, 80, 70, 60, name="shallow"),
    )
    for signal in Signal.objects.select_related("trace"):
        is_deep = signal.trace.name == "deep"
        review.decide(
            signal_id=signal.pk,
            user=owner,
            decision=DecisionInput(verdict=Verdict.CONFIRM)
            if is_deep
            else DecisionInput(verdict=Verdict.DISMISS, reason="converged"),
            base_version=signal.version,
        )
    check = configured(by_slug("output-decay"), {"last_percent": last_percent})
    adopt(project_id=project.pk, choice=Choice(check), user_id=owner.pk, now=NOW)
    while catch_up(project_id=project.pk, clock=lambda: NOW):
        pass
    found = check_precision(project=project, lineup=lineup_of(project.pk))
    assert found.get("output-decay", (0, 0, 0)) == expected
