"""A check that breaks, or answers what cannot be stored, stops nothing and nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from apps.engine.checks.output_decay import OutputDecay
from apps.pipeline.flow import read_again
from apps.pipeline.reading import read_upload
from apps.review.models import Signal
from apps.screening import lineup as lineup_module
from apps.screening.answering import BROKE
from apps.screening.lineup import lineup_of
from apps.screening.models import Screening
from apps.traces.behind import behind_count
from apps.traces.contents import StoredContent
from apps.traces.models import Trace
from tests.adopting import FALLING, STEEP, caught_up, shadowed
from tests.factories import NOW, decay_trace, upload_traces
from tests.faulty_checks import FAULTS, Faulty

pytestmark = pytest.mark.django_db


@pytest.fixture(params=sorted(FAULTS))
def faulty(request, monkeypatch) -> Any:
    """Registers the faulty check when it is called."""
    check = Faulty(fault=request.param)

    def register() -> None:
        monkeypatch.setattr(lineup_module, "CHECKS", (check, OutputDecay()))

    return register


def said() -> list[tuple[str, str, str]]:
    rows = Screening.objects.filter(check_slug="faulty").order_by("trace__name")
    return list(rows.values_list("trace__name", "answer", "reason_code"))


def upload_two(project):
    return upload_traces(
        project,
        decay_trace(*FALLING, name="falling"),
        decay_trace(*STEEP, name="steep"),
    )


def test_an_upload_is_read_and_the_answer_says_what_broke(project, faulty):
    faulty()
    upload = upload_two(project)
    assert (upload.state, upload.failure, upload.trace_count) == ("done", "", 2)
    assert said()[0] == ("falling", "not_applicable", BROKE)
    assert said()[1][:2] == ("steep", "signal")
    assert Signal.objects.filter(check_slug="output-decay").count() == 2
    assert behind_count(project.pk, lineup_of(project.pk).name) == 0


def test_the_catch_up_answers_everything_else(project, faulty, monkeypatch):
    monkeypatch.setattr(lineup_module, "CHECKS", (OutputDecay(),))
    upload_two(project)
    faulty()
    caught_up(project)
    assert said()[0] == ("falling", "not_applicable", BROKE)
    assert said()[1][:2] == ("steep", "signal")
    assert behind_count(project.pk, lineup_of(project.pk).name) == 0
    assert Signal.objects.filter(trace__name="steep").count() == 2


def test_a_shadow_comes_to_its_end(project, monkeypatch):
    upload_two(project)
    with monkeypatch.context() as patch:
        patch.setattr(OutputDecay, "run", lambda self, trace: iter(()))
        shadow = shadowed(project, last_percent=30)
    assert (shadow.state, shadow.traces_done) == ("done", 2)
    own = Screening.objects.filter(parameters_hash=shadow.parameters_hash)
    assert {row.reason_code for row in own} == {BROKE}


def test_reading_again_keeps_every_signal(project, faulty):
    upload = upload_two(project)
    faulty()
    Trace.objects.update(content_hash="0" * 64)
    read_again(upload=upload, format_override="")
    read_upload(upload_id=upload.pk, clock=lambda: NOW)
    upload.refresh_from_db()
    assert (upload.state, upload.reread_note) == ("done", "")
    assert said()[0] == ("falling", "not_applicable", BROKE)
    assert Signal.objects.filter(check_slug="output-decay").count() == 2


def test_a_stored_trace_that_cannot_be_read_does_not_hold_up_the_others(
    project, monkeypatch
):
    upload_two(project)
    broken = Trace.objects.get(name="falling")
    whole = StoredContent.decoded

    def unreadable(content):
        if content.trace.pk == broken.pk:
            raise ValueError("a chunk of bodies is damaged")
        return whole(content)

    with monkeypatch.context() as patch:
        patch.setattr(StoredContent, "decoded", unreadable)
        shadow = shadowed(project, last_percent=30)
    own = Screening.objects.filter(parameters_hash=shadow.parameters_hash)
    assert dict(own.values_list("trace__name", "reason_code"))["falling"] == BROKE
    assert own.filter(trace__name="steep").exclude(reason_code=BROKE).exists()
    assert shadow.state == "done"
