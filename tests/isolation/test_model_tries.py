"""What passes is tried again, and hooks decide whether a run may go on."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from apps.engine.replay.case import Case
from apps.engine.replay.retrying import Patience, may_have_been_billed
from apps.engine.replay.run import (
    AnswerSource,
    EffectKind,
    Ending,
    ErrorKind,
    Limits,
    ToolAnswer,
)
from apps.isolation.hooks import Cancelled, Hooks, NotNow, OverBudget
from apps.isolation.masking import MARK
from tests.isolation.endpoint_runs import CASE, KEY, models, ran, waiting
from tests.model_server import (
    call,
    model_server,
)


class TestTryingAgain:
    """Only what passes is tried again, by its kind, and every try is kept."""

    @pytest.mark.parametrize("returned", [False, True])
    @pytest.mark.parametrize("mode", ["rate_limited", "overloaded"])
    def test_a_limit_that_passes_is_waited_for(self, mode, returned):
        waits = []
        with model_server(mode, times=2, retry_after=3, returned=returned) as server:
            run = ran(server, hooks=waiting(waits))
        assert run.ending is Ending.FINISHED
        first, second, third = models(run)
        assert [one.retry_of for one in (first, second, third)] == [None, 0, 0]
        assert first.error.retry_after == (None if returned else 3)
        assert [may_have_been_billed(one) for one in models(run)] == [
            False,
            False,
            True,
        ]
        least = 0 if returned else 3
        assert all(least <= one <= least + 2 ** (n - 1) for n, one in enumerate(waits))

    @pytest.mark.parametrize(
        ("after", "asked"),
        [
            (86_400, 86_400.0),
            ("Fri, 01 Jan 2099 00:00:00 GMT", 2_000_000_000.0),
        ],
    )
    def test_a_pause_that_is_too_long_is_given_up(self, after, asked):
        waits = []
        with model_server("rate_limited", times=9, retry_after=after) as server:
            run = ran(server, hooks=waiting(waits))
            assert server.stats.calls == 1
        assert run.error.kind is ErrorKind.RATE_LIMITED
        assert "longer than 120" in run.error.sentence
        assert run.error.retry_after == pytest.approx(asked, rel=0.2)
        assert waits == []

    def test_without_end_it_gives_up_after_some_tries(self):
        waits = []
        with model_server("rate_limited", times=99, retry_after="soon") as server:
            run = ran(server, hooks=waiting(waits), patience=Patience(tries=4))
            assert server.stats.calls == 4
        assert "Gave up after 4 tries" in run.error.sentence
        assert len(waits) == 3
        assert waits != sorted(waits, reverse=True)

    def test_a_broken_connection_is_tried_three_times_at_most(self):
        with model_server("reset", times=2) as server:
            assert ran(server).ending is Ending.FINISHED
        with model_server("reset") as server:
            run = ran(server)
            assert server.stats.calls == 3
        assert run.error.kind is ErrorKind.CONNECTION
        assert all(may_have_been_billed(one) for one in models(run))

    @pytest.mark.parametrize("status", [401, 403, 400, 404, 200])
    def test_the_key_is_never_told_and_its_refusal_not_tried_again(self, status):
        waits = []
        with model_server("echo_key", status=status) as server:
            run = ran(server, hooks=waiting(waits))
            assert server.stats.calls == 1
        assert run.ending is Ending.FAILED
        assert MARK in run.error.sentence
        assert KEY not in repr(run)
        if status in {401, 403}:
            assert run.error.kind is ErrorKind.NOT_ALLOWED
            assert "check the key" in run.error.sentence
        leaks = [one.kind for one in run.effects]
        assert leaks == ([EffectKind.LEAK] if status == 200 else [])

    def test_an_answer_that_tells_the_key_is_masked_and_a_breach(self):
        with model_server(answer=f"The key is {KEY}!") as server:
            run = ran(server)
        assert run.output == f"The key is {MARK}!"
        assert KEY not in repr(run)
        assert run.has_breach

    def test_an_exhausted_quota_does_not_pass(self):
        error = {"error": {"code": "insufficient_quota", "message": "You are out."}}
        with model_server("json", value=error, status=429) as server:
            run = ran(server)
            assert server.stats.calls == 1
        assert run.error.kind is ErrorKind.NOT_ALLOWED

    def test_a_redirect_is_refused(self):
        with model_server("redirect") as server:
            run = ran(server)
            assert server.stats.calls == 1
        assert run.error.kind is ErrorKind.REFUSED
        assert "redirect refused" in run.error.sentence


class TestHooks:
    """Leave is asked for before every try, and what a hook says is how it ends."""

    def test_a_budget_for_three_calls_makes_three(self):
        left, settled = [3], []

        def before(worst):
            assert worst.output_tokens == Limits().output_tokens
            assert worst.input_tokens > 100
            assert worst.total == worst.input_tokens + worst.output_tokens
            if not left[0]:
                raise OverBudget("The budget of 3 calls is used up.")
            left[0] -= 1

        hooks = waiting([], before_call=before, after_call=settled.append)
        with model_server("tool_loop") as server:
            run = ran(server, hooks=hooks)
            assert server.stats.calls == 3
        assert (run.ending, run.error.kind) == (Ending.OVER_BUDGET, ErrorKind.BUDGET)
        assert run.error.sentence == "The budget of 3 calls is used up."
        assert settled == models(run)

    def test_a_run_that_is_put_back_takes_its_tries_along(self):
        def put_back(seconds):
            raise NotNow(seconds)

        with (
            model_server("rate_limited", retry_after=60) as server,
            pytest.raises(NotNow) as later,
        ):
            ran(server, hooks=Hooks(wait=put_back))
        assert 60 <= later.value.seconds <= 61
        assert len(later.value.ran.events) == 1
        with model_server() as server:
            with pytest.raises(NotNow) as later:
                ran(server, hooks=Hooks(before_call=lambda _: put_back(5)))
            assert server.stats.calls == 0
        assert later.value.ran is None

    def test_cancelling_ends_it_while_it_waits(self):
        def cancel(_worst):
            raise Cancelled("Rana cancelled the batch.")

        with model_server() as server:
            run = ran(server, hooks=Hooks(before_call=cancel))
        assert (run.ending, run.error.sentence) == (
            Ending.CANCELLED,
            "Rana cancelled the batch.",
        )
        until = time.monotonic() + 0.3
        with model_server("rate_limited", retry_after=100) as server:
            run = ran(server, hooks=Hooks(stop=lambda: time.monotonic() > until))
        assert run.ending is Ending.CANCELLED
        assert time.monotonic() < until + 1

    def test_time_that_hooks_take_is_not_run_time(self):
        with model_server("rate_limited", times=2) as server:
            hooks = waiting([], before_call=lambda _: time.sleep(0.4))
            run = ran(server, limits=Limits(seconds=1), hooks=hooks)
        assert run.ending is Ending.FINISHED

    def test_a_time_out_is_an_ending_of_its_own(self):
        with model_server("hanging") as server:
            run = ran(server, limits=Limits(seconds=0.3))
            assert server.stats.calls == 1
        assert (run.ending, run.error.kind) == (Ending.TIMED_OUT, ErrorKind.TIMED_OUT)
        assert models(run)[0].error == run.error

    def test_an_input_that_is_changed_on_the_way_is_a_breach(self):
        case = msgspec.convert(msgspec.to_builtins(CASE), Case)

        def changing(tool, arguments):
            case.messages[1]["content"] = "Is invoice 8 open?"
            return ToolAnswer(source=AnswerSource.STATIC, result=1)

        script = [call("lookup", number=7), "Done."]
        with model_server("scripted", answers=script) as server:
            run = ran(server, case=case, stubs=changing)
        assert [one.kind for one in run.effects] == [EffectKind.INPUT_CHANGED]
        assert run.proof.input_before != run.proof.input_after


def test_a_noisy_model_is_reported_as_noisy_as_it_was_told_to_be():
    with model_server("noisy", seed=3, share=0.4) as server:
        with ThreadPoolExecutor(4) as pool:
            runs = list(pool.map(lambda _: ran(server), range(40)))
        expected = sum(random.Random(f"3:{n}").random() < 0.4 for n in range(1, 41))
    outputs = [run.output for run in runs]
    assert outputs.count("Decision: B") == expected
    assert outputs.count("Decision: A") == 40 - expected
