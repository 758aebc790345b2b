"""What a project does not keep never lies in the tables of live spans."""

from __future__ import annotations

import pytest

from apps.accounts.models import RawBytes
from apps.live.models import LiveSpan, LiveTrace
from apps.pipeline.live import assemble_due
from apps.review.models import Signal
from apps.traces.encryption import key_of, new_key_text
from apps.traces.models import Trace, Upload
from apps.traces.queries import bodies_between
from tests.factories import NOW
from tests.formats.otlp_files import as_json, call
from tests.live.conftest import billing_run

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at_once")]

WORDS = "my dearest private wish"


def telling_run(words: str = WORDS) -> list[dict]:
    one, *rest = [
        call(20, 2, 40, attributes={"input.value": words, "output.value": words})
    ]
    return [*billing_run(), one, *rest]


def kept() -> bytes:
    return b"".join(bytes(row.data) for row in LiveSpan.objects.all())


def bodies() -> str:
    trace = Trace.objects.get()
    return str(bodies_between(trace.pk, first=0, last=trace.step_count))


@pytest.mark.parametrize("content_type", ["application/x-protobuf", "application/json"])
def test_a_structure_only_project_writes_no_word_of_a_body(send, project, content_type):
    project.structure_only = True
    project.save()
    run = telling_run()
    if content_type == "application/json":
        send(body=as_json(*run), content_type=content_type)
    else:
        send(*run)
    assert LiveSpan.objects.count() == 9
    assert WORDS.encode() not in kept()
    assemble_due(clock=lambda: NOW)
    assert WORDS not in bodies()
    assert Signal.objects.get().length == 7


def test_secrets_are_replaced_and_counted_once_however_often_it_is_assembled(
    send, project
):
    send(*telling_run("mail me at olga.nowak@example.org"))
    assemble_due(clock=lambda: NOW)
    assert "olga.nowak" not in bodies()
    counted = Upload.objects.get().redactions
    assert sum(counted.values()) > 0
    send(call(21, 2, 30))
    assemble_due(clock=lambda: NOW)
    assert Upload.objects.get().redactions == counted


class TestSealing:
    @pytest.fixture(autouse=True)
    def key(self, settings):
        settings.RAW_KEYS = [key_of(new_key_text())]

    @pytest.mark.parametrize("policy", [RawBytes.ENCRYPTED, RawBytes.NOT_KEPT])
    def test_spans_wait_sealed(self, send, project, policy):
        project.raw_bytes = policy
        project.save()
        send(*telling_run())
        assert WORDS.encode() not in kept()
        assemble_due(clock=lambda: NOW)
        assert WORDS in bodies()

    def test_what_is_not_kept_is_forgotten_with_the_end_of_the_trace(
        self, send, project
    ):
        project.raw_bytes = RawBytes.NOT_KEPT
        project.save()
        send(*telling_run())
        assemble_due(clock=lambda: NOW)
        assert LiveSpan.objects.count() == 0
        answer = send(call(21, 2, 30))
        assert b"after their trace was closed" in answer.content
        assert Trace.objects.get().step_count == 9

    def test_a_project_that_must_seal_asks_senders_to_wait_without_a_key(
        self, send, project, settings
    ):
        settings.RAW_KEYS = []
        project.raw_bytes = RawBytes.ENCRYPTED
        project.save()
        answer = send(*telling_run())
        assert answer.status_code == 503
        assert b"EVALSITE_RAW_KEY" in answer.content
        assert LiveTrace.objects.count() == 0

    def test_a_lost_key_is_said_in_the_receipt_and_the_spans_are_kept(
        self, send, project, settings
    ):
        project.raw_bytes = RawBytes.ENCRYPTED
        project.save()
        send(*telling_run())
        settings.RAW_KEYS = [key_of(new_key_text())]
        assemble_due(clock=lambda: NOW)
        assert Trace.objects.count() == 0
        assert LiveSpan.objects.count() == 9
        assert "key" in LiveTrace.objects.get().failure
