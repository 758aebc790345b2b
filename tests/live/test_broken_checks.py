"""A check that breaks on a live trace costs neither the trace nor the other signals."""

from __future__ import annotations

import pytest

from apps.engine.checks.output_decay import OutputDecay
from apps.pipeline.live import assemble_due
from apps.review.models import Signal
from apps.screening import lineup as lineup_module
from apps.screening.answering import BROKE
from apps.screening.models import Screening
from tests.factories import NOW
from tests.faulty_checks import FAULTS, Faulty
from tests.formats.otlp_files import call
from tests.live.conftest import billing_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_once")]


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_late_spans_are_taken_and_the_other_signals_follow(send, monkeypatch, fault):
    checks = (Faulty(fault=fault), OutputDecay())
    monkeypatch.setattr(lineup_module, "CHECKS", checks)
    for spans in (billing_run(), [call(9, 2, 30)]):
        assert send(*spans).status_code == 200
        assert assemble_due(clock=lambda: NOW) == 1
    rows = Screening.objects.filter(check_slug="faulty")
    assert [(row.answer, row.reason_code) for row in rows] == [
        ("not_applicable", BROKE)
    ]
    assert Signal.objects.get(check_slug="output-decay").length == 7
