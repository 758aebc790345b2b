"""What is tried again follows from the kind of the error, and from nothing else."""

from __future__ import annotations

import random

import pytest

from apps.engine.replay.retrying import (
    Patience,
    error_in,
    failure_of,
    gave_up,
    may_have_been_billed,
    pause_before_retry,
    retry_after,
)
from apps.engine.replay.run import ErrorKind, ModelCalled, RunError

NOW = 1_796_000_000.0  # Monday, 30 Nov 2026, 00:53:20 GMT


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "999999"}, 999_999.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Mon, 30 Nov 2026 00:54:20 GMT"}, 60.0),
        ({"retry-after": "Mon, 30 Nov 2026 01:54:20 +0100"}, 60.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "Sun, 99 Nov 2026 17:34:20 GMT"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_the_pause_asked_for_is_read_in_every_form(headers, seconds):
    assert retry_after(headers, now=NOW) == seconds


STATUSES = [
    (429, {}, ErrorKind.RATE_LIMITED),
    (503, {}, ErrorKind.OVERLOADED),
    (529, {}, ErrorKind.OVERLOADED),
    (502, {}, ErrorKind.OVERLOADED),
    (401, {}, ErrorKind.NOT_ALLOWED),
    (403, {}, ErrorKind.NOT_ALLOWED),
    (400, {"error": {"message": "rate limit? timeout? 429?"}}, ErrorKind.TARGET),
    (404, {"error": "no such model"}, ErrorKind.TARGET),
    (307, {}, ErrorKind.REFUSED),
    (429, {"error": {"code": "insufficient_quota"}}, ErrorKind.NOT_ALLOWED),
    (200, {"error": {"code": 429, "message": "slow"}}, ErrorKind.RATE_LIMITED),
    (200, {"error": {"code": "429"}}, ErrorKind.RATE_LIMITED),
    (200, {"error": {"type": "overloaded_error"}}, ErrorKind.OVERLOADED),
    (200, {"choices": [{"error": {"code": 502}}]}, ErrorKind.OVERLOADED),
    (200, {"type": "error", "code": "rate_limit_exceeded"}, ErrorKind.RATE_LIMITED),
    (200, {"error": {"message": "a timeout in my code"}}, ErrorKind.TARGET),
]


class TestKinds:
    """A status that is returned and an error inside a good status are one policy."""

    @pytest.mark.parametrize(("status", "body", "kind"), STATUSES)
    def test_the_kind_follows_from_status_and_code(self, status, body, kind):
        error = failure_of(status, {}, body, now=NOW, is_model=True)
        assert error.kind is kind
        assert error.sentence.endswith((".", '"'))

    @pytest.mark.parametrize(
        "body", [None, {}, [], "x", {"error": None}, {"error": {}}]
    )
    def test_a_good_answer_is_no_failure(self, body):
        assert failure_of(200, {}, body, now=NOW, is_model=True) is None
        assert error_in(body) == (None, "", "")

    def test_an_inner_error_of_an_agent_is_its_own(self):
        kinds = [
            failure_of(500, {}, None, now=NOW, is_model=one).kind
            for one in (True, False)
        ]
        assert kinds == [ErrorKind.OVERLOADED, ErrorKind.TARGET]

    def test_what_it_said_is_cut_and_shown_as_text(self):
        body = {"error": {"message": "a\0\ud800\n" + "b" * 5_000}}
        error = failure_of(400, {}, body, now=NOW, is_model=True)
        assert len(error.sentence) < 400
        assert "a\ufffd\ufffd b" in error.sentence


def pause(kind, tries, asked=None, *, patience=None):
    error = RunError(kind=kind, sentence="No.", retry_after=asked)
    return pause_before_retry(
        error, tries=tries, patience=patience or Patience(), chance=random.Random(tries)
    )


class TestPauses:
    """The back-off is full jitter over a pause that was asked for."""

    @pytest.mark.parametrize("kind", ErrorKind)
    def test_only_what_passes_is_tried_again(self, kind):
        passes = {ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED, ErrorKind.CONNECTION}
        assert (pause(kind, 1) is not None) == (kind in passes)
        event = ModelCalled(request=None, error=RunError(kind=kind, sentence="No."))
        turned_away = {
            ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED, ErrorKind.NOT_ALLOWED,
            ErrorKind.REFUSED,
        }  # fmt: skip
        assert may_have_been_billed(event) == (kind not in turned_away)

    def test_it_grows_up_to_its_bound_and_is_the_same_for_the_same_seed(self):
        for tries in range(1, 60):
            found = pause(ErrorKind.OVERLOADED, tries, patience=Patience(tries=99))
            assert 0 <= found <= min(30.0, 0.5 * 2 ** (tries - 1))
            again = pause(ErrorKind.OVERLOADED, tries, patience=Patience(tries=99))
            assert found == again

    def test_it_waits_at_least_as_long_as_asked_and_gives_up_beyond(self):
        assert 120 <= pause(ErrorKind.RATE_LIMITED, 1, 120) <= 120.5
        assert pause(ErrorKind.RATE_LIMITED, 1, 120.1) is None
        error = RunError(
            kind=ErrorKind.RATE_LIMITED, sentence="Slow down.", retry_after=600
        )
        told = gave_up(error, tries=1, patience=Patience())
        assert told.sentence == (
            "Slow down. Gave up: it asks to wait 600 seconds, longer than 120."
        )

    def test_tries_are_counted_by_kind(self):
        assert pause(ErrorKind.CONNECTION, 2) is not None
        assert pause(ErrorKind.CONNECTION, 3) is None
        assert pause(ErrorKind.RATE_LIMITED, 4) is not None
        assert pause(ErrorKind.RATE_LIMITED, 5) is None
        error = RunError(kind=ErrorKind.CONNECTION, sentence="It broke.")
        told = gave_up(error, tries=1, patience=Patience())
        assert told.sentence == "It broke. Gave up after 1 try."
        plain = RunError(kind=ErrorKind.TARGET, sentence="No.")
        assert gave_up(plain, tries=1, patience=Patience()) == plain
