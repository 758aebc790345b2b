"""What is acted on disappears between being found and being locked: 404 in words."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.review.models import BlindLook, Signal
from apps.traces.models import Trace
from apps.traces.operations import allow_erasing_history
from apps.verdicts.models import TrialNote
from apps.web.access import Place
from tests.factories import NOW, decay_trace, upload_traces

FALLING = (100, 90, 80, 70, 60)
DECIDED = {"verdict": "confirm", "version": "0"}
LOOKED = {"verdict": "failure", "version": "0"}


@pytest.fixture
def gone(project, monkeypatch):
    """A signal and a blind look whose trace is erased as soon as they are found."""
    upload_traces(project, decay_trace(*FALLING))
    trace = Trace.objects.get()
    BlindLook.objects.create(
        project=project, trace=trace, was_flagged=True, place=0.5, created_at=NOW
    )

    def then_erased(find):
        def found(place, number):
            thing = find(place, number)
            allow_erasing_history()
            Trace.objects.all().delete()
            return thing

        return found

    for name in ("signal", "look"):
        monkeypatch.setattr(Place, name, then_erased(getattr(Place, name)))
    return project


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("signal-claim", {}),
        ("signal-release", {}),
        ("signal-decide", DECIDED),
        ("signal-undo", {"version": "0"}),
        ("blind-claim", {}),
        ("blind-release", {}),
        ("blind-decide", LOOKED),
        ("blind-undo", {"version": "0"}),
        ("blind-reveal", {}),
    ],
)
def test_it_says_that_it_is_gone(web, gone, name, fields):
    model = Signal if name.startswith("signal") else BlindLook
    address = reverse(name, args=[gone.slug, model.objects.get().pk])
    answer = web.post(address, fields)
    assert answer.status_code == 404
    assert "read again or erased meanwhile" in answer.content.decode()
    assert not model.objects.exists()


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("trace-task", ""),
        ("trace-task-undo", "trace-task"),
        ("task-note", ""),
        ("task-note-withdraw", "task-note"),
    ],
)
def test_a_trial_that_is_erased_meanwhile_is_gone_and_nothing_is_written(
    web, project, monkeypatch, name, before
):
    upload_traces(project, decay_trace(*FALLING, task="refund", trial=1))
    trace = Trace.objects.get()

    def send(act: str):
        pk = trace.pk if act.startswith("trace") else trace.task_id
        fields = {"task": "other", "trial": "2", "kind": "right_by_luck"}
        return web.post(
            reverse(act, args=[project.slug, pk]), {**fields, "trace": trace.pk}
        )

    if before:
        assert send(before).status_code == 302
    find = Place.recorded_trace

    def found(place, number):
        thing = find(place, number)
        allow_erasing_history()
        Trace.objects.all().delete()
        return thing

    monkeypatch.setattr(Place, "recorded_trace", found)
    answer = send(name)
    assert answer.status_code == 404
    assert "read again or erased meanwhile" in answer.content.decode()
    assert not TrialNote.objects.exists()
