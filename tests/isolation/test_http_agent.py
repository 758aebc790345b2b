"""An agent over HTTP gets what is documented, and its account is set beside the stubs'."""

from __future__ import annotations

import random
import time

import pytest

from apps.engine.replay.case import Case, ToolOffer
from apps.engine.replay.run import (
    AnswerSource,
    EffectKind,
    Ending,
    ErrorKind,
    Limits,
    Message,
    ModelCalled,
    Regime,
    StateSeen,
    ToolAnswer,
    ToolCalled,
)
from apps.engine.trace import FinishReason, UsageState
from apps.isolation.client import Reach
from apps.isolation.hooks import Hooks, OverBudget
from apps.isolation.http_agent import (
    HttpAgentOrder,
    run_http_agent,
)
from apps.isolation.masking import MARK
from apps.isolation.wall import inner_hosts
from tests.model_server import MALFORMED, model_server

KEY = "agent-canary-0123456789"
STUBS = "http://127.0.0.1:8000/api/stubs/t0k3n/"
CASE = Case(
    agent="triage",
    name="Ticket 7",
    input={"ticket": "It burns."},
    tools=(ToolOffer(name="look up"), ToolOffer(name="escalate")),
    state={"seen": 3},
    context={"plan": "gold"},
)


def order_for(server, **more) -> HttpAgentOrder:
    return HttpAgentOrder(
        case=CASE,
        url=f"{server.origin}/agent",
        run="run-12",
        stub_base=STUBS,
        secret=KEY,
        secret_header="X-Agent-Key",
        reach=Reach(inner=inner_hosts([server.host])),
        **more,
    )


def ran(server, *, seen=(), hooks=None, **more):
    waits = hooks or Hooks(wait=lambda _: None, random=random.Random(1))
    return run_http_agent(
        order_for(server, **more), seen_calls=lambda: seen, hooks=waits
    )


def seen_call(tool, at=1, **arguments) -> ToolCalled:
    answer = ToolAnswer(source=AnswerSource.RECORDED, result="known", matched=0)
    return ToolCalled(tool=tool, arguments=arguments, answer=answer, start_ns=at)


def test_it_is_given_what_is_documented():
    with model_server("json", value={"output": "fine"}) as server:
        run = ran(server, regime=Regime(temperature=0.5), limits=Limits(seconds=9))
        (body,), (headers,) = server.stats.bodies, server.stats.headers
    assert headers["X-Agent-Key"] == KEY
    assert body == {
        "run": "run-12",
        "case": "Ticket 7",
        "agent": "triage",
        "input": {"ticket": "It burns."},
        "messages": [],
        "state": {"seen": 3},
        "context": {"plan": "gold"},
        "regime": {"kind": "determinism", "temperature": 0.5, "paraphrase": ""},
        "tools": [
            {
                "name": "look up",
                "description": "",
                "parameters": {},
                "url": "http://127.0.0.1:8000/api/stubs/t0k3n/tools/look%20up",
            },
            {
                "name": "escalate",
                "description": "",
                "parameters": {},
                "url": "http://127.0.0.1:8000/api/stubs/t0k3n/tools/escalate",
            },
        ],
        "mcp": {"url": "http://127.0.0.1:8000/api/stubs/t0k3n/mcp"},
        "limits": {
            "seconds": 9.0,
            "model_calls": 20,
            "tool_calls": 100,
            "output_tokens": 4096,
        },
    }
    assert (run.ending, run.output, run.events) == (Ending.FINISHED, "fine", ())
    assert run.proof.input_before == run.proof.input_after
    assert any("not walled" in words for words in run.proof.not_walled)


class TestItsAccount:
    """What it tells of its steps becomes events; what the stubs saw counts more."""

    STEPS = [
        {"type": "message", "role": "planner", "content": "First look."},
        {
            "type": "model",
            "model": "m-1",
            "input": "It burns.",
            "output": "Look it up.",
            "reasoning": "Fire?",
            "finish": "stop",
            "usage": {"input_tokens": 4, "output_tokens": 3},
        },
        {"type": "tool", "name": "look up", "arguments": '{"id": 7}', "result": "x"},
        {"type": "state", "state": {"seen": 4}, "turn": 1},
    ]

    def test_steps_and_stub_calls_become_one_order(self):
        value = {"output": {"route": "fire"}, "state": {"seen": 4}, "steps": self.STEPS}
        seen = (seen_call("escalate", level=1), seen_call("look up", at=2, id=7))
        with model_server("json", value=value) as server:
            run = ran(server, seen=seen)
        said, model, first, second, state = run.events
        assert said == Message(role="planner", content="First look.")
        assert isinstance(model, ModelCalled)
        assert (model.model, model.reasoning, model.finish) == (
            "m-1",
            "Fire?",
            FinishReason.STOP,
        )
        assert model.usage.output_total == 3
        # A call that it did not tell of stands before the next that it did.
        assert (first, second) == seen
        assert state == StateSeen(state={"seen": 4}, turn=1)
        assert (run.output, run.state) == ({"route": "fire"}, {"seen": 4})
        assert run.effects == ()
        assert run.proof.stubbed_calls == 2
        assert run.proof.state_copy != run.proof.state_after != ""

    def test_a_call_that_no_stub_saw_may_have_been_real(self):
        own = {"type": "tool", "name": "calculator", "arguments": {"sum": "1+1"}}
        steps = [*self.STEPS, own]
        with model_server("json", value={"output": 1, "steps": steps}) as server:
            run = ran(server)
        offered, other = run.effects
        assert (offered.kind, offered.is_breach) == (EffectKind.OTHER, True)
        assert "`look up`" in offered.what
        assert offered.was_stopped is None
        assert run.events[offered.after].tool == "look up"
        # What was never offered may be a part of the agent itself.
        assert (other.is_breach, run.has_breach) == (False, True)

    def test_usage_of_the_whole_run_is_no_usage_of_one_call(self):
        value = {
            "output": "fine",
            "model": "m-1",
            "usage": {"input_tokens": 50, "output_tokens": 9},
        }
        settled = []
        hooks = Hooks(after_call=settled.append)
        with model_server("json", value=value) as server:
            run = ran(server, hooks=hooks)
        (call,) = run.events
        assert call.usage.state is UsageState.AGGREGATE_ONLY
        assert call.model == "m-1"
        (spent,) = settled
        assert (spent.usage.state, spent.usage.output_total) == (UsageState.REPORTED, 9)

    def test_calls_that_say_their_usage_are_added_up_for_the_budget(self):
        settled = []
        steps = [self.STEPS[1], self.STEPS[1]]
        for value in (
            {"output": 1, "steps": steps},
            {"output": 1, "steps": [*steps, {"type": "model"}]},
            {"output": 1},
        ):
            with model_server("json", value=value) as server:
                ran(server, hooks=Hooks(after_call=settled.append))
        assert [one.usage.output_total for one in settled] == [6, None, None]


class TestItsFailures:
    """An agent that fails is reported as it failed, with what its stubs saw."""

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ({"answer": 1}, 'no "output"'),
            ([1], 'no "output"'),
            (None, 'no "output"'),
            ({"output": 1, "steps": {}}, "no list"),
            ({"output": 1, "steps": [{"type": "dream"}]}, "Step 1"),
            ({"output": 1, "steps": [7]}, "Step 1"),
            ({"output": 1, "steps": [{"type": "tool"}]}, "without a name"),
            ({"output": 1, "steps": [{"type": "state"}] * 2_001}, "2,000 steps"),
        ],
    )
    def test_an_answer_of_another_form_is_named(self, value, words):
        with model_server("json", value=value) as server:
            run = ran(server, seen=(seen_call("look up", id=7),))
        assert (run.ending, run.error.kind) == (Ending.FAILED, ErrorKind.BAD_ANSWER)
        assert words in run.error.sentence
        told, called = run.events
        assert told.role == "target"
        assert isinstance(called, ToolCalled)

    def test_no_malformed_answer_breaks_the_run(self):
        for variant in MALFORMED:
            with model_server("malformed", variant=variant) as server:
                run = ran(server)
            assert run.ending is Ending.FAILED, variant
            assert run.error.sentence.endswith("."), variant

    def test_a_text_is_an_output_and_a_page_is_none(self):
        plain = {"Content-Type": "text/plain; charset=utf-8"}
        with model_server("json", value="fine", headers=plain) as server:
            assert ran(server).output == '"fine"'
        page = {"Content-Type": "text/html"}
        with model_server("json", value="fine", headers=page) as server:
            assert "neither JSON nor plain text" in ran(server).error.sentence

    def test_an_inner_error_is_its_own_and_not_tried_again(self):
        error = {"error": "ZeroDivisionError"}
        with model_server("json", value=error, status=500) as server:
            run = ran(server)
            assert server.stats.calls == 1
        assert run.error.kind is ErrorKind.TARGET
        assert "ZeroDivisionError" in run.error.sentence
        (told,) = run.events
        assert told.content["answer"]["status"] == 500

    def test_a_limit_is_waited_for_only_while_the_stubs_are_fresh(self):
        after = {"Retry-After": "1"}
        with model_server("json", value={}, status=429, headers=after) as server:
            run = ran(server, seen=(seen_call("look up", id=7),))
            assert server.stats.calls == 1
            assert run.error.kind is ErrorKind.RATE_LIMITED
        with model_server("json", value={}, status=429, headers=after) as server:
            run = ran(server)
            assert server.stats.calls == 5
        assert [one.role for one in run.events] == ["target"] * 5

    def test_its_key_is_masked_wherever_it_comes_back(self):
        def echo(_body):
            return {"error": {"message": f"bad key {KEY}"}}

        with model_server("json", value=echo, status=401) as server:
            run = ran(server)
        assert MARK in run.error.sentence
        assert KEY not in repr(run)
        assert not run.has_breach
        with model_server("json", value={"output": {KEY: [KEY]}}) as server:
            run = ran(server)
        assert run.output == {MARK: [MARK]}
        assert run.has_breach

    def test_the_deadline_and_the_budget_end_it(self):
        began = time.monotonic()
        with model_server("hanging") as server:
            run = ran(server, limits=Limits(seconds=0.3))
        assert run.ending is Ending.TIMED_OUT
        assert time.monotonic() - began < 2

        def refuse(worst):
            assert worst.input_tokens is None
            assert worst.total == 20 * 4_096
            raise OverBudget("No money is left.")

        with model_server("hanging") as server:
            run = ran(server, hooks=Hooks(before_call=refuse))
            assert server.stats.calls == 0
        assert run.ending is Ending.OVER_BUDGET
