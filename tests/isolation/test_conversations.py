"""Turn by turn, an endpoint and an HTTP agent are talked with, and forget on demand."""

from __future__ import annotations

import pytest

from apps.engine.memory_tests.conversation import Summarises, TurnFailed
from apps.engine.replay.case import Case
from apps.engine.replay.run import Ending, ErrorKind, Message, ModelCalled, StateSeen
from apps.engine.replay.turns import Api
from apps.isolation.client import Reach
from apps.isolation.hooks import Hooks, NotNow
from apps.isolation.http_agent import HttpAgentOrder, run_http_turns
from apps.isolation.model_endpoint import (
    SUMMARISE,
    SUMMARY_IS,
    EndpointOrder,
    run_endpoint_turns,
)
from apps.isolation.wall import inner_hosts
from tests.isolation.endpoint_runs import CASE, Stubs
from tests.model_server import call, model_server
from tests.model_server.answers import last_user_text


def with_endpoint(server, drive, *, hooks=None, **more):
    order = EndpointOrder(
        case=CASE,
        base_url=server.url,
        reach=Reach(inner=inner_hosts([server.host])),
        **more,
    )
    return run_endpoint_turns(order, drive, answer=Stubs(), hooks=hooks)


def with_agent(server, drive, **more):
    order = HttpAgentOrder(
        case=Case(agent="a", state={"heard": ["Hello."]}),
        url=f"{server.origin}/agent",
        reach=Reach(inner=inner_hosts([server.host])),
        **more,
    )
    return run_http_turns(order, drive)


class TestAnEndpoint:
    """Every request holds what was said before, until all is forgotten."""

    @pytest.mark.parametrize("api", Api)
    def test_it_keeps_what_was_said_until_it_begins_anew(self, api):
        def drive(talk):
            told = [talk.turn("My code is X9."), talk.turn("Code?")]
            talk.restart()
            return [*told, talk.turn("Code?")]

        with model_server() as server:
            run, (first, second, third) = with_endpoint(server, drive, api=api)
            key = "messages" if api is Api.CHAT_COMPLETIONS else "input"
            sent = [body[key] for body in server.stats.bodies]
        recorded = list(CASE.messages)
        assert sent[0] == [*recorded, {"role": "user", "content": "My code is X9."}]
        assert sent[1] == [
            *sent[0],
            {"role": "assistant", "content": first.answer},
            {"role": "user", "content": "Code?"},
        ]
        assert sent[2] == [*recorded, {"role": "user", "content": "Code?"}]
        assert [type(one) for one in second.events] == [ModelCalled]
        assert (run.ending, run.output) == (Ending.FINISHED, third.answer)
        assert len(run.events) == 6

    def test_its_tools_are_answered_in_every_turn(self):
        script = [call("lookup", number=7), "It is open."]
        with model_server("scripted", answers=script) as server:
            _, told = with_endpoint(
                server, lambda talk: [talk.turn("7?"), talk.turn("?")]
            )
        assert [len(one.events) for one in told] == [3, 3]

    def test_it_goes_on_from_its_own_summary_alone(self):
        def answer(body):
            asks = last_user_text(body) == SUMMARISE
            return "The code is X9." if asks else f"{len(body['messages'])} messages"

        def drive(talk):
            assert isinstance(talk, Summarises)
            assert talk.state() is None
            return [talk.turn("My code is X9."), talk.summarise(), talk.turn("Code?")]

        with model_server(answer=answer) as server:
            run, told = with_endpoint(server, drive)
            last = server.stats.bodies[-1]["messages"]
        assert told[1].answer == "The code is X9."
        assert last == [
            *CASE.messages,
            {"role": "user", "content": f"{SUMMARY_IS}The code is X9."},
            {"role": "user", "content": "Code?"},
        ]
        summaries = [one for one in run.events if getattr(one, "role", "") == "summary"]
        assert [one.content for one in summaries] == ["The code is X9."]
        assert told[2].answer == "4 messages"

    def test_a_turn_that_fails_is_how_the_run_ends(self):
        def drive(talk):
            with pytest.raises(TurnFailed, match="limits the rate") as failed:
                talk.turn("Code?")
            return failed.value

        hooks = Hooks(wait=lambda _: None)
        with model_server("rate_limited", times=9) as server:
            run, failed = with_endpoint(server, drive, hooks=hooks)
        assert failed.error.kind is ErrorKind.RATE_LIMITED
        assert len(failed.events) == 5
        assert (run.ending, run.error) == (Ending.FAILED, failed.error)

    def test_one_that_is_put_back_takes_its_record_along(self):
        def put_back(seconds):
            raise NotNow(seconds)

        with (
            model_server("rate_limited", times=9, retry_after=7) as server,
            pytest.raises(NotNow) as later,
        ):
            with_endpoint(
                server, lambda talk: talk.turn("?"), hooks=Hooks(wait=put_back)
            )
        assert [type(one) for one in later.value.ran.events] == [Message, ModelCalled]


class TestAnHttpAgent:
    """Messages and state are sent along, and the state that came back is given out."""

    def test_its_state_goes_with_every_turn_until_it_begins_anew(self):
        def agent(body):
            heard = [*(body["state"] or {}).get("heard", []), body["input"]]
            return {"output": f"I heard {len(heard)}.", "state": {"heard": heard}}

        def drive(talk):
            before = talk.state()
            told = [talk.turn("One."), talk.turn("Two.")]
            kept = talk.state()
            talk.restart()
            return before, [*told, talk.turn("Three.")], kept

        with model_server("json", value=agent) as server:
            run, (before, told, kept) = with_agent(server, drive)
            second = server.stats.bodies[1]
        assert before is None
        answers = [one.answer for one in told]
        assert answers == ["I heard 2.", "I heard 3.", "I heard 2."]
        assert kept == {"heard": ["Hello.", "One.", "Two."]}
        assert second["messages"] == [
            {"role": "user", "content": "One."},
            {"role": "assistant", "content": "I heard 2."},
            {"role": "user", "content": "Two."},
        ]
        seen = [one for one in run.events if isinstance(one, StateSeen)]
        assert [(one.state, one.turn) for one in seen] == [(kept, 1)]
        assert run.output == "I heard 2."
        assert run.proof.input_before == run.proof.input_after

    def test_one_without_a_state_gets_that_of_the_case_again(self):
        with model_server("json", value={"output": {"a": 1}}) as server:
            _, told = with_agent(server, lambda talk: [talk.turn("1"), talk.turn("2")])
            states = [body["state"] for body in server.stats.bodies]
        assert states == [{"heard": ["Hello."]}] * 2
        assert told[1].answer == {"a": 1}
