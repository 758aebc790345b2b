"""Live spans become traces, once, like the same spans in a file."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db.models import Sum
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from apps.live.arrival import spans_of
from apps.live.encoding import PROTOBUF, decode
from apps.live.models import LiveSpan, LiveTrace
from apps.live.operations import claim_live_trace, forget_spans, receive_spans
from apps.pipeline.live import assemble_due
from apps.review.models import HistoryEntry, Signal
from apps.screening.models import Screening
from apps.traces.models import BodyChunk, Step, Trace, Upload
from apps.traces.operations import allow_erasing_history
from apps.traces.queries import engine_trace
from tests.factories import NOW, make_project, upload_bytes
from tests.formats.otlp_files import TRACE, as_json, as_protobuf, call, span
from tests.live.conftest import billing_run

pytestmark = pytest.mark.django_db


def assemble() -> int:
    return assemble_due(clock=lambda: NOW)


def make_due() -> None:
    LiveTrace.objects.filter(due_at__isnull=False).update(
        due_at=datetime(2026, 1, 1, tzinfo=UTC)
    )


def receive(project, *spans: dict) -> None:
    arrival = spans_of(decode(as_protobuf(*spans), PROTOBUF))
    receive_spans(project=project, spans=arrival.spans, now=NOW)


def only_trace(project):
    return engine_trace(Trace.objects.get(project=project))


class TestOneTrace:
    def test_a_complete_run_ends_as_a_signal_in_the_queue(self, send, at_once, project):
        assert send(*billing_run()).status_code == 200
        assert assemble() == 1
        signal = Signal.objects.get(project=project)
        assert (signal.check_slug, signal.agent) == ("output-decay", "billing")
        assert signal.trace.native_id == TRACE

    def test_it_is_the_trace_that_a_file_of_the_same_spans_gives(
        self, send, at_once, project
    ):
        send(*billing_run())
        assemble()
        elsewhere = make_project(name="Files")
        upload_bytes(elsewhere, as_protobuf(*billing_run()), name="run.pb")
        assert only_trace(project) == only_trace(elsewhere)
        live, file = Trace.objects.order_by("project_id")
        assert live.content_hash == file.content_hash
        assert live.format == file.format == "otlp-protobuf"

    def test_json_gives_the_trace_of_protobuf(self, send, at_once, project):
        run = billing_run()
        send(body=as_json(*run), content_type="application/json")
        assemble()
        elsewhere = make_project(name="Files")
        upload_bytes(elsewhere, as_json(*run), name="run.json")
        assert only_trace(project) == only_trace(elsewhere)

    def test_it_waits_until_its_root_has_ended_and_nothing_more_comes(
        self, send, settings, project
    ):
        settings.LIVE_SETTLE_SECONDS = 30
        root, *rest = billing_run()
        send(*rest)
        assert assemble() == 0
        quiet = LiveTrace.objects.get().due_at
        send(root)
        assert assemble() == 0
        assert LiveTrace.objects.get().due_at > quiet
        make_due()
        assert assemble() == 1
        assert assemble() == 0

    def test_a_root_that_never_ends_does_not_hold_its_trace_back(self, send, settings):
        settings.LIVE_QUIET_SECONDS = 0
        root, *rest = billing_run()
        del root["endTimeUnixNano"]
        send(root, *rest)
        assert assemble() == 1
        assert Trace.objects.get().step_count == 8

    def test_the_same_request_again_changes_nothing(self, send, at_once, project):
        send(*billing_run())
        assemble()
        before = LiveTrace.objects.values().get()
        assert send(*billing_run()).status_code == 200
        after = LiveTrace.objects.values().get()
        assert {**after, "last_seen": None} == {**before, "last_seen": None}
        assert LiveSpan.objects.count() == 8
        assert assemble() == 0

    def test_of_two_copies_of_a_span_the_fuller_one_is_kept(self, send, at_once):
        begun = call(3, 1, attributes={"gen_ai.usage.output_tokens": 0})
        del begun["endTimeUnixNano"]
        root = span(1, name="run")
        send(call(3, 1, 77), root)
        send(begun)
        assemble()
        assert Step.objects.get(seq=1).output_total == 77
        assert LiveTrace.objects.get().span_count == 2


class TestTheStream:
    def test_the_traces_of_a_day_lie_in_one_upload_that_counts_them(
        self, send, at_once, project
    ):
        for number in range(3):
            other = f"{number + 1:032x}"
            send(*({**one, "traceId": other} for one in billing_run()))
        assemble()
        upload = Upload.objects.get(project=project)
        assert upload.name.startswith("Live OTLP 20")
        assert (upload.state, upload.source) == ("done", "live")
        assert (upload.trace_count, upload.step_count) == (3, 24)
        assert (upload.model_call_count, upload.usage_known) == (18, 18)
        assert upload.signal_count == 3
        assert upload.agents_seen == ["billing"]
        assert upload.size == LiveTrace.objects.aggregate(n=Sum("byte_count"))["n"]
        ordinals = Trace.objects.order_by("ordinal").values_list("ordinal", flat=True)
        assert list(ordinals) == [0, 1, 2]

    def test_late_spans_leave_its_counters_right(self, send, at_once, project):
        run = billing_run(112, 100, 86)
        send(*run)
        assemble()
        send(*billing_run())
        assemble()
        upload = Upload.objects.get(project=project)
        assert (upload.trace_count, upload.step_count) == (1, 8)
        assert (upload.model_call_count, upload.signal_count) == (6, 1)
        assert upload.size == LiveTrace.objects.get().byte_count
        assert Trace.objects.get().signal_count == 1


class TestATraceThatCameInAFileToo:
    def test_the_same_content_is_here_already(self, send, at_once, project):
        upload_bytes(project, as_protobuf(*billing_run()), name="run.pb")
        send(*billing_run())
        assemble()
        assert Trace.objects.count() == 1
        assert Upload.objects.get(source="live").duplicate_count == 1
        assert Signal.objects.count() == 1

    def test_other_content_is_kept_beside_it_and_says_so(self, send, at_once, project):
        upload_bytes(project, as_protobuf(*billing_run(5, 6, 7)), name="run.pb")
        send(*billing_run())
        assemble()
        live = Trace.objects.get(upload__source="live")
        assert live.native_id is None
        assert TRACE in live.notes[-1]
        assert "Both are kept" in live.notes[-1]
        assert Trace.objects.get(upload__source="file").native_id == TRACE

    def test_late_spans_change_the_live_one_and_never_the_file(
        self, send, at_once, project
    ):
        upload_bytes(project, as_protobuf(*billing_run()), name="run.pb")
        send(*billing_run())
        assemble()
        send(call(20, 2, 30))
        assemble()
        assert Trace.objects.get(upload__source="file").step_count == 8
        live = Trace.objects.get(upload__source="live")
        assert live.step_count == 9
        send(call(21, 2, 20))
        assemble()
        assert Trace.objects.get(pk=live.pk).step_count == 10
        assert Trace.objects.count() == 2

    def test_a_file_that_comes_later_finds_the_live_one(self, send, at_once, project):
        send(*billing_run())
        assemble()
        upload = upload_bytes(project, as_protobuf(*billing_run()), name="run.pb")
        assert upload.duplicate_count == 1
        assert Trace.objects.count() == 1


class TestWhatHasToEnd:
    def test_a_trace_that_outgrows_the_cap_is_closed_with_a_note(
        self, send, at_once, settings, project
    ):
        settings.LIVE_MAX_TRACE_SPANS = 5
        answer = send(*billing_run())
        assert answer.status_code == 200
        assemble()
        trace = Trace.objects.get()
        assert trace.step_count == 5
        assert trace.notes[-1].endswith("closed already: 3.")

    def test_spans_are_forgotten_once_they_are_too_old_for_late_ones(
        self, send, at_once, settings
    ):
        send(*billing_run())
        assemble()
        assert forget_spans() == 0
        settings.LIVE_LATE_SECONDS = 0
        assert forget_spans() == 1
        assert LiveSpan.objects.count() == 0
        send(call(20, 2, 30))
        assert assemble() == 0
        assert Trace.objects.get().step_count == 8
        assert LiveTrace.objects.get().refused_count == 1

    def test_spans_that_wait_are_never_forgotten(self, send, settings):
        settings.LIVE_LATE_SECONDS = 0
        send(*billing_run())
        assert forget_spans() == 0
        assert LiveSpan.objects.count() == 8

    def test_removing_the_trace_removes_its_spans(self, send, at_once, project):
        send(*billing_run())
        assemble()
        with_history = Signal.objects.get()
        assert HistoryEntry.objects.filter(signal=with_history).exists()
        allow_erasing_history()
        Trace.objects.all().delete()
        assert LiveTrace.objects.count() == LiveSpan.objects.count() == 0


def trees():
    """Spans of one trace: each with a parent before it, times that may be equal."""
    return st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 200), st.integers(0, 4)),
        min_size=1,
        max_size=8,
    )


@pytest.fixture
def never_waiting(settings):
    settings.LIVE_SETTLE_SECONDS = settings.LIVE_QUIET_SECONDS = 0


@limits(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(tree=trees(), data=st.data())
def test_any_split_in_any_order_with_repeats_gives_the_trace_of_the_whole(
    never_waiting, tree, data
):
    spans = [span(1, name="run", lasts=60)]
    for number, (parent, output, at) in enumerate(tree, start=2):
        above = 1 + parent % (number - 1)
        spans.append(call(number, above, output, at=at))
    whole, split = make_project(), make_project()
    receive(whole, *spans)
    repeats = data.draw(st.lists(st.sampled_from(spans), max_size=6))
    order = data.draw(st.permutations([*spans, *repeats]))
    while order:
        size = data.draw(st.integers(1, len(order)))
        receive(split, *order[:size])
        order = order[size:]
        if data.draw(st.booleans()):
            assemble()
    assemble()
    assert only_trace(split) == only_trace(whole)
    counts = [
        Upload.objects.values(
            "trace_count",
            "step_count",
            "usage_known",
            "notes",
            "usage_states",
            "error_count",
            "models_seen",
            "readers",
        ).get(project=project)
        for project in (whole, split)
    ]
    assert counts[0] == counts[1]
    for model in (Screening, BodyChunk, Step):
        first, second = (
            model.objects.filter(trace__project=project).count()
            for project in (whole, split)
        )
        assert first == second
    assert claim_live_trace(lease_seconds=1) is None
