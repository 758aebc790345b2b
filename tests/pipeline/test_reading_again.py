"""Reading an upload again: nothing goes before it worked, and no id or decision is lost."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from django.db import OperationalError

from apps.engine import formats
from apps.engine.format import Item, Note, Rejected, UnreadableTrace
from apps.pipeline.flow import read_again
from apps.review.models import HistoryEntry, Signal
from apps.review.operations import DecisionInput, decide
from apps.review.transitions import Verdict
from apps.screening.models import Screening
from apps.traces.models import RejectedRecord, Step, Trace, Upload
from apps.traces.operations import claim_upload, give_up_stuck_uploads
from apps.traces.rereading import STAYS
from apps.traces.transitions import MAX_TRIES
from apps.traces.trials import place_trace
from tests.factories import decay_trace, upload_traces
from tests.pipeline.waiting import expire, read, waiting

FALLING = decay_trace(100, 90, 80, 70, 60)
STEEPER = decay_trace(100, 90, 80, 70, 60, 50)
RISING = decay_trace(5, 6, 7, 8, 9)


def named(native_id: str, *lengths: int):
    return decay_trace(*lengths, native_id=native_id)


class Reader:
    """A format that finds what the test says; an exception is raised in its place."""

    slug = "made-up"
    label = "Made up"
    version = 1
    description = "For tests."

    def __init__(self) -> None:
        self.items: list[Item | Exception] = []
        self.times = 0
        self.dies_in_time = 0

    def recognises(self, _source) -> bool:
        return True

    def read(self, _source) -> Iterator[Item]:
        self.times += 1
        for item in self.items:
            if isinstance(item, Exception):
                if self.dies_in_time in {0, self.times}:
                    raise item
                continue
            yield item


@pytest.fixture
def reader(monkeypatch) -> Reader:
    made = Reader()
    monkeypatch.setattr(formats, "FORMATS", (made,))
    return made


@pytest.fixture
def finds(project, reader):
    """Read an upload that has these items in it, then again with others."""
    upload = None

    def read_as(*items: Item | Exception) -> Upload:
        nonlocal upload
        reader.items = list(items)
        if upload is None:
            upload = waiting(project)
        else:
            read_again(upload=upload, format_override="")
        read(upload)
        return upload

    return read_as


def ids() -> dict[int, int]:
    """Ids of the traces by their places."""
    return dict(Trace.objects.order_by("ordinal").values_list("ordinal", "pk"))


def lengths(pk: int) -> int:
    return Step.objects.filter(trace_id=pk).count()


def confirm(signal: Signal, user) -> Signal:
    return decide(
        signal_id=signal.pk,
        user=user,
        decision=DecisionInput(verdict=Verdict.CONFIRM),
        base_version=signal.version,
    )


def test_a_wrong_format_takes_nothing_away_and_is_told(project):
    upload = upload_traces(project, FALLING)
    before = ids(), upload.signal_count, upload.readers
    read_again(upload=upload, format_override="langfuse")
    upload.refresh_from_db()
    assert (upload.state, upload.trace_count) == ("received", 1)
    assert read(upload)
    assert (upload.state, upload.format) == ("done", "evalsite-jsonl")
    assert (ids(), upload.signal_count, upload.readers) == before
    assert (upload.reread_as, upload.format_override) == (None, "")
    assert "Reading it again as Langfuse" in upload.reread_note
    assert "found nothing, so what was read before stays." in upload.reread_note


def test_the_next_reading_that_works_takes_the_sentence_away(project):
    upload = upload_traces(project, FALLING)
    read_again(upload=upload, format_override="langfuse")
    read(upload)
    read_again(upload=upload, format_override="evalsite-jsonl")
    read(upload)
    assert (upload.reread_note, upload.format_override) == ("", "evalsite-jsonl")


def test_the_same_content_keeps_its_id_its_answers_and_its_signals(finds, reader):
    finds(FALLING, RISING)
    before = (
        ids(),
        set(Screening.objects.values_list("pk", flat=True)),
        list(Signal.objects.values_list("pk", "version")),
    )
    reader.version = 2
    upload = finds(FALLING, RISING)
    assert before == (
        ids(),
        set(Screening.objects.values_list("pk", flat=True)),
        list(Signal.objects.values_list("pk", "version")),
    )
    assert (upload.trace_count, upload.signal_count, upload.duplicate_count) == (
        2,
        1,
        0,
    )
    assert (upload.reader_version, upload.readers[0]["version"]) == (2, 2)


def test_equal_traces_of_one_file_do_not_change_places(finds):
    finds(RISING, RISING, FALLING)
    before = ids()
    finds(RISING, RISING, FALLING)
    assert ids() == before


def test_a_trace_with_other_content_is_replaced_under_its_id(finds):
    finds(named("a", 100, 90, 80, 70, 60), RISING)
    before = ids()
    upload = finds(named("a", 100, 90, 80, 70, 60, 50), RISING)
    assert ids() == before
    assert lengths(before[0]) == 6
    assert (upload.step_count, upload.model_call_count) == (11, 11)
    assert upload.usage_states == {"reported": 11}


def test_traces_keep_their_ids_when_others_are_found_before_them(finds):
    finds(named("a", 5, 6), RISING)
    before = ids()
    finds(FALLING, named("b", 1, 2), RISING, named("a", 5, 6, 7))
    after = ids()
    assert (after[3], after[2]) == (before[0], before[1])
    assert len(after) == 4


def test_a_decision_and_its_evidence_outlive_new_content(finds, reviewer):
    finds(FALLING)
    signal = confirm(Signal.objects.get(), reviewer)
    said = signal.screening.headline
    finds(RISING)
    signal.refresh_from_db()
    assert (signal.state, signal.verdict) == ("decided", "confirm")
    assert signal.screening.headline == said
    entry = HistoryEntry.objects.filter(signal=signal).latest("base_version")
    assert entry.act == "rescreened"
    assert entry.note.startswith("This trace was read again")


def test_an_open_signal_gets_the_new_evidence_and_keeps_its_id(finds):
    finds(FALLING)
    signal = Signal.objects.get()
    upload = finds(STEEPER)
    signal.refresh_from_db()
    assert signal.length == 6
    assert upload.signal_count == Signal.objects.count() == 1


def test_a_trace_that_is_not_found_again_goes_when_nobody_decided(finds):
    finds(RISING, FALLING)
    kept = ids()[0]
    upload = finds(RISING)
    assert ids() == {0: kept}
    assert (upload.trace_count, upload.signal_count) == (1, 0)
    assert upload.notes == []


def test_a_decided_trace_that_is_not_found_again_stays_with_a_note(finds, reviewer):
    finds(RISING, FALLING)
    signal = confirm(Signal.objects.get(), reviewer)
    upload = finds(RISING)
    trace = Trace.objects.get(pk=signal.trace_id)
    assert STAYS in trace.notes
    assert upload.trace_count == 2
    [note] = upload.notes
    assert "Of an earlier reading 1 trace" in note["sentence"]
    finds(RISING, STEEPER, FALLING)
    trace.refresh_from_db()
    assert (trace.ordinal, trace.notes) == (2, [])
    assert Trace.objects.count() == 3


def test_a_reading_that_does_not_come_to_the_end_takes_nothing_away(finds):
    finds(RISING, FALLING)
    before = set(ids().values())
    upload = finds(RISING, UnreadableTrace("The rest is noise."))
    assert before == set(ids().values())
    assert RejectedRecord.objects.get().reason == "The rest is noise."
    assert "did not come to the end" in upload.notes[0]["sentence"]
    assert upload.state == "done"


@pytest.mark.parametrize(
    ("items", "why"),
    [
        ([], "found nothing"),
        ([Rejected("line 1", "It is red.")], "found nothing"),
        ([UnreadableTrace("It is noise.")], "found nothing"),
        ([ValueError("odd")], "did not come to its end"),
        ([RISING, ValueError("odd")], "did not come to its end"),
    ],
)
def test_a_reading_that_finds_nothing_or_breaks_leaves_all_as_it_was(finds, items, why):
    finds(RISING, FALLING)
    before = ids()
    upload = finds(*items)
    assert (upload.state, upload.trace_count, ids()) == ("done", 2, before)
    assert f"Reading it again by its content {why}, so" in upload.reread_note
    assert not RejectedRecord.objects.exists()


def test_a_task_that_was_set_by_hand_survives(finds):
    finds(named("a", 5, 6), RISING)
    for trace in Trace.objects.all():
        place_trace(trace=trace, task="mine", trial=trace.ordinal)
    finds(named("a", 5, 6, 7), decay_trace(5, 6, 7))
    found = Trace.objects.order_by("ordinal").values_list("task__key", "trial")
    assert list(found) == [("mine", 0), ("mine", 1)]
    assert Trace.objects.filter(is_task_set=True).count() == 2


def test_a_trace_that_another_upload_has_too_is_counted_as_here(project, finds):
    finds(named("a", 5, 6))
    other = waiting(project, b"{}")
    read(other)
    assert other.duplicate_count == 1
    read_again(upload=other, format_override="")
    read(other)
    assert (other.trace_count, other.duplicate_count, other.state) == (0, 1, "done")


def test_a_new_native_id_that_belongs_to_another_upload_is_not_taken(
    project, finds, reader
):
    finds(named("a", 5, 6))
    reader.items = [RISING]
    other = waiting(project, b"{}")
    read(other)
    reader.items = [msgspec.structs.replace(RISING, native_id="a"), FALLING]
    read_again(upload=other, format_override="")
    read(other)
    assert (other.trace_count, other.rejected_count) == (1, 1)
    assert Trace.objects.filter(upload=other).get().native_id is None


def test_a_worker_that_dies_while_it_writes_over_is_followed_to_the_end(
    project, finds, reader, monkeypatch
):
    monkeypatch.setattr("apps.traces.batches.COPY_BATCH_STEPS", 5)
    upload = finds(FALLING, RISING, named("c", 1, 2, 3, 4, 5))
    before = ids()
    reader.items = [
        STEEPER,
        decay_trace(5, 6, 7, 8, 9, 10),
        OperationalError("gone"),
        named("c", 1, 2, 3, 4, 5, 6),
        RISING,
    ]
    reader.times, reader.dies_in_time = 0, 2
    read_again(upload=upload, format_override="")
    with pytest.raises(OperationalError):
        read(upload)
    upload.refresh_from_db()
    assert upload.state == "reading"
    assert set(before.values()) <= set(ids().values())
    expire(upload)
    assert read(upload)
    after = ids()
    assert (after[0], after[3], after[2]) == (before[0], before[1], before[2])
    assert [lengths(after[place]) for place in range(4)] == [6, 6, 6, 5]
    assert (upload.state, upload.trace_count, upload.step_count) == ("done", 4, 23)
    assert upload.signal_count == Signal.objects.count() == 1


def test_an_upload_whose_reading_again_kills_workers_keeps_what_it_had(finds, reader):
    upload = finds(FALLING)
    read_again(upload=upload, format_override="made-up")
    for _ in range(MAX_TRIES):
        claim_upload(upload_id=upload.pk, lease_seconds=60)
        expire(upload)
    assert give_up_stuck_uploads() == 1
    upload.refresh_from_db()
    assert (upload.state, upload.trace_count, upload.reread_as) == ("done", 1, None)
    assert "ended the worker 3 times" in upload.reread_note


def test_what_the_new_reading_says_is_the_receipt(finds):
    finds(RISING, Note("odd", "Something was odd."))
    upload = finds(RISING, Rejected("line 2", "It is bad."))
    assert (upload.notes, upload.rejected_count) == ([], 1)


def test_a_failed_upload_without_traces_starts_afresh(finds):
    upload = finds(Rejected("line 1", "It is red."))
    assert upload.state == "failed"
    upload = finds(RISING)
    assert (upload.state, upload.failure, upload.rejected_count) == ("done", "", 0)
