"""Local code as runs with a record: events, effects, and what shows that it was alone."""

from __future__ import annotations

import itertools
import time

import msgspec
import pytest

from apps.engine.memory_tests.conversation import Said, TurnFailed
from apps.engine.replay.case import Case, RecordedCall, ToolOffer, hash_of
from apps.engine.replay.run import ModelCalled, ToolAnswer
from apps.isolation.hooks import NotNow, OverBudget
from apps.isolation.local_code import (
    LocalOrder,
    run_callable,
    run_command,
    run_stateful,
)
from apps.isolation.sandbox import Allowed, RelayResponse, probe
from tests.isolation.sandbox.runs import SMALL, ordered

CASE = Case(
    agent="desk",
    name="first",
    input={"amount": 5},
    state=["before"],
    tools=(ToolOffer(name="look_up"),),
    calls=(RecordedCall(tool="look_up"), RecordedCall(tool="refund", writes=True)),
)


def recorded(tool, arguments):
    if tool != "look_up":
        return ToolAnswer(source="miss", error="no such tool")
    return ToolAnswer(source="recorded", result=14, matched=0, writes=True)


def local(target, **changes):
    return LocalOrder(case=CASE, sandbox=ordered(target, **changes), temperature=0.0)


def hooks(answer=recorded, **changes):
    clock = itertools.count(100)
    found = {
        "answer": answer,
        "stop": lambda: False,
        "clock_ns": lambda: next(clock),
    }
    return {**found, **changes}


def test_a_callable_is_recorded_with_what_shows_that_it_was_alone():
    ran = run_callable(local("good:plain"), **hooks())
    assert (ran.ending, ran.error, ran.effects) == ("finished", None, ())
    assert ran.output == {"found": 14, "input": {"amount": 5}, "case": "first"}
    called, said = ran.events
    assert (called.tool, called.arguments, called.answer.matched) == (
        "look_up",
        {"number": 7},
        0,
    )
    assert ran.start_ns < called.start_ns < called.end_ns < ran.end_ns
    assert (said.role, said.content) == ("assistant", "thinking")
    proof = ran.proof
    assert proof.level == probe().level
    assert proof.input_before == proof.input_after != ""
    assert proof.state_copy == proof.state_after == hash_of(["before"])
    assert (proof.real_calls, proof.stubbed_calls, proof.missed_calls) == (0, 1, 0)
    assert (proof.unconsumed, proof.intended_writes) == ((1,), 1)
    assert {"python", "kernel", "landlock_abi"} <= set(proof.versions)
    assert proof.limits == SMALL
    assert proof.wall
    assert proof.not_walled


def test_a_breach_lies_among_the_events_that_surround_it():
    def static(_tool, _arguments):
        return ToolAnswer(source="static", result=1)

    ran = run_callable(local("defects:opens_a_socket"), **hooks(static))
    assert ran.has_breach
    assert [(one.kind, one.after) for one in ran.effects] == [("socket", 2)]
    assert [one.answer.source for one in ran.events] == ["static", "static"]


def test_a_command_is_recorded_in_the_same_way():
    script = (
        'read order; echo \'{"ask": "tool", "tool": "look_up", "arguments": {}}\'; '
        'read answer; echo "{\\"output\\": $answer}"'
    )
    ran = run_command(local(("/bin/sh", "-c", script)), **hooks())
    assert ran.output == {"result": 14}
    assert [one.tool for one in ran.events] == ["look_up"]
    assert ran.proof.input_before == ran.proof.input_after


def test_only_of_a_command_it_is_said_that_its_input_hash_shows_nothing():
    command = run_command(local(("/bin/sh", "-c", "true")), **hooks())
    function = run_callable(local("good:plain"), **hooks())
    said = "A command is handed a copy of its input"
    assert any(one.startswith(said) for one in command.proof.not_walled)
    assert not any(one.startswith(said) for one in function.proof.not_walled)


ENDS = [
    (ToolAnswer(source="miss", stops=True, note="Nothing fits."), "stopped", "stopped"),
    (OverBudget("The budget is spent."), "over_budget", "budget"),
]


@pytest.mark.parametrize(("answer", "ending", "kind"), ENDS)
def test_an_answer_may_end_the_run(answer, ending, kind):
    def end(_tool, _arguments):
        if isinstance(answer, Exception):
            raise answer
        return answer

    ran = run_callable(local("good:plain"), **hooks(end))
    assert (ran.ending, ran.error.kind, ran.output) == (ending, kind, None)


def test_calls_are_limited_and_what_is_on_no_list_is_not_run():
    few = msgspec.structs.replace(SMALL, tool_calls=3)
    ran = run_callable(local("good:from_many_threads", limits=few), **hooks())
    assert (ran.error.kind, len(ran.events)) == ("limit", 3)
    ran = run_callable(local("good:plain", allowed=Allowed()), **hooks())
    assert (ran.ending, ran.error.kind, ran.events) == ("failed", "not_allowed", ())
    assert "list of callables" in ran.error.sentence
    assert ran.proof.level == probe().level


def test_a_model_call_is_an_event_and_may_put_the_run_back():
    def relay(request):
        return RelayResponse(body=b"yes", event=ModelCalled(request=request.path))

    ran = run_callable(local("good:asks_its_model", relay=relay), **hooks())
    assert (ran.output, [one.request for one in ran.events]) == (
        "yes",
        ["/v1/chat/completions"],
    )

    def later(_request):
        raise NotNow(7.0)

    with pytest.raises(NotNow) as put_back:
        run_callable(local("good:asks_its_model", relay=later), **hooks())
    assert (put_back.value.seconds, put_back.value.ran) == (7.0, None)


def test_waiting_for_leave_to_ask_is_no_time_of_the_run():
    def relay(request):
        with request.waiting(), request.waiting():
            time.sleep(1.2)
        return RelayResponse(body=b"yes")

    ran = run_callable(local("good:asks_its_model", relay=relay, seconds=1), **hooks())
    assert (ran.ending, ran.output) == ("finished", "yes")


def test_a_conversation_goes_turn_by_turn_and_may_begin_anew():
    def drive(conversation):
        first = conversation.turn("one")
        kept = conversation.state()
        conversation.restart()
        return first, kept, conversation.turn("two").answer, conversation.state()

    ran, found = run_stateful(local("good:Remembers"), drive, **hooks())
    first, kept, answer, state = found
    assert isinstance(first, Said)
    assert (first.answer, [one.tool for one in first.events]) == (
        "heard 2",
        ["look_up"],
    )
    assert (kept, answer, state) == (["before", "one"], "heard 2", ["before", "two"])
    assert ran.ending == "finished"
    assert (ran.output, ran.state) == ("heard 2", ["before", "two"])
    kinds = [type(one).__name__ for one in ran.events]
    assert kinds == ["Message", "ToolCalled", "Message", "StateSeen"] * 2


def test_a_conversation_that_breaks_says_why():
    def drive(conversation):
        conversation.turn("one")
        with pytest.raises(TurnFailed, match="raised ValueError: forgot how to"):
            conversation.turn("crash")
        with pytest.raises(TurnFailed, match="forgot how to"):
            conversation.turn("more")
        return "driven"

    ran, found = run_stateful(local("good:Remembers"), drive, **hooks())
    assert (found, ran.ending, ran.error.kind) == ("driven", "failed", "target")
    ran, found = run_stateful(
        local("good:plain"), lambda conversation: conversation.turn, **hooks()
    )
    assert "is no class with start, turn and state" in ran.error.sentence
