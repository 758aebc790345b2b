"""Handoff ping-pong: returns in a row, and the turns that are none."""

from __future__ import annotations

import random

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.handoff_ping_pong import HandoffPingPong
from apps.engine.trace import (
    AgentInvocation,
    Step,
    StepKind,
    StepStatus,
    Trace,
    Via,
)
from tests.engine.random_traces import shuffled
from tests.engine.traces import SECOND, call, tool


class Play:
    """Writes a trace turn by turn, the way readers do."""

    def __init__(self, *, invocation_each=True):
        self.each = invocation_each
        self.steps = []
        self.invocations = []

    def turn(self, agent, *, via=Via.ROOT, tools=(), hands_over=False, failed=False):
        """`agent` answers, calls `tools`, and may hand over."""
        number = self._invocation(agent, via)
        self.steps.append(call(self._next, step={"invocation": number}))
        for name in tools:
            self.steps.append(tool(self._next, name, invocation=number))
        if hands_over:
            status = StepStatus.ERROR if failed else StepStatus.OK
            self._add(StepKind.HANDOFF, invocation=number, status=status)
        return self

    def user(self):
        self._add(StepKind.USER_MESSAGE)
        return self

    def rally(self, agents, **turn):
        """Each of `agents` hands over to the next."""
        for agent in agents:
            self.turn(agent, hands_over=True, **turn)
        return self

    @property
    def trace(self):
        return Trace(
            name="t", steps=tuple(self.steps), invocations=tuple(self.invocations)
        )

    @property
    def _next(self):
        return len(self.steps)

    def _invocation(self, agent, via):
        known = {one.agent: one.number for one in self.invocations}
        if not self.each and agent in known:
            return known[agent]
        number = len(self.invocations)
        self.invocations.append(AgentInvocation(number=number, agent=agent, via=via))
        return number

    def _add(self, kind, **fields):
        start = self._next * SECOND
        self.steps.append(Step(seq=self._next, kind=kind, start_ns=start, **fields))


def answer(trace, **parameters):
    (found,) = HandoffPingPong(**parameters).run(trace)
    assert found.evidence.scope == "trace"
    return found


@pytest.mark.parametrize("each", [True, False])
def test_two_returns_in_a_row_are_a_signal_however_invocations_are_cut(each):
    found = answer(Play(invocation_each=each).rally("ABAB").trace)
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
    assert found.headline == "Work handed back 2 times between two agents"
    assert found.reason == (
        "A and B handed the work to each other 3 times; 2 of these handoffs went "
        "straight back, with no other agent and no word of the user in between. A "
        "prompt to look closer, not by itself a finding."
    )
    evidence = found.evidence
    assert evidence.facts == {"handoffs": 3, "returns": 2, "agents": ["A", "B"]}
    assert evidence.steps == (1, 3, 5)
    assert (evidence.effect, evidence.effect_bound) == (2, 2)


def test_handoffs_that_show_only_in_how_an_invocation_began_count_too():
    play = Play().turn("A")
    for agent in "BAB":
        play.turn(agent, via=Via.HANDOFF)
    found = answer(play.trace)
    assert found.answer is Answer.SIGNAL
    assert found.evidence.steps == (1, 2, 3)


def test_one_return_is_quiet():
    found = answer(Play().rally("ABA").trace)
    assert (found.answer, found.reason_code) == (Answer.QUIET, "few_returns")
    assert found.headline == "2 handoffs, 1 handed straight back in a row"


def test_false_alarm_of_a_third_agent_in_between():
    assert answer(Play().rally("ABCABC").trace).answer is Answer.QUIET
    assert answer(Play().rally("ABCBA").trace).evidence.facts["returns"] == 1


def test_false_alarm_of_an_agent_without_a_name_in_between():
    play = Play().rally("AB").turn(None).rally("AB")
    assert answer(play.trace).answer is Answer.QUIET


def test_false_alarm_of_a_user_who_asks_for_something_else_each_time():
    play = Play()
    for agent in "ABABAB":
        play.user().turn(agent, hands_over=True)
    assert answer(play.trace).answer is Answer.QUIET


def test_false_alarm_of_a_user_who_spoke_once_between_two_rallies():
    assert answer(Play().rally("ABA").user().rally("ABA").trace).answer is Answer.QUIET


def test_false_alarm_of_a_supervisor_who_hands_out_work_and_gets_it_back():
    play = Play()
    for _ in range(3):
        play.turn("lead", hands_over=True).turn(
            "worker", tools=["search"], hands_over=True
        )
    found = answer(play.trace)
    assert (found.answer, found.reason_code) == (Answer.QUIET, "worked_in_between")
    assert "called tools in between" in found.reason
    assert answer(play.trace, most_calls=1).answer is Answer.SIGNAL


def test_work_before_the_first_handoff_and_after_the_last_is_not_in_between():
    play = Play().turn("A", tools=["look"], hands_over=True).rally("BA")
    assert answer(play.turn("B", tools=["pay"]).trace).answer is Answer.SIGNAL


def test_false_alarm_of_a_group_chat_that_deals_the_turns_out():
    play = Play(invocation_each=False)
    for agent in "ABABABAB":
        play.turn(agent, via=Via.MANAGED)
    found = answer(play.trace)
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "no_handoffs")


def test_false_alarm_of_getting_the_work_back_because_a_callee_finished():
    # One invocation of A, itself begun by a handoff, goes on after each one of B.
    play = Play(invocation_each=False).turn("lead").turn("A", via=Via.HANDOFF)
    for _ in range(3):
        play.each = True
        play.turn("B", via=Via.HANDOFF)
        play.each = False
        play.turn("A")
    found = answer(play.trace)
    assert (found.answer, found.evidence.facts["returns"]) == (Answer.QUIET, 0)
    assert found.evidence.facts["handoffs"] == 4


def test_a_turn_that_was_dealt_out_is_no_handoff_to_return_from():
    play = Play().turn("A").turn("B", hands_over=True).turn("A", hands_over=True)
    found = answer(play.turn("B").trace)
    assert (found.answer, found.evidence.facts["returns"]) == (Answer.QUIET, 1)


def test_false_alarm_of_a_handoff_that_failed():
    play = Play(invocation_each=False)
    for agent in "ABAB":
        play.turn(agent, hands_over=True, failed=True)
    assert answer(play.trace).answer is Answer.QUIET


def test_false_alarm_of_an_agent_that_hands_over_to_itself():
    assert answer(Play().rally("AAAAB").trace).answer is Answer.QUIET


def test_the_longest_row_is_shown():
    found = answer(Play().rally("ABAB").user().rally("CDCDCD").trace)
    assert found.evidence.facts["agents"] == ["C", "D"]
    assert found.evidence.facts["returns"] == 4


def test_one_agent_has_nobody_to_hand_over_to():
    found = answer(Play().turn("A").trace)
    assert (found.reason_code, found.headline) == ("one_agent", "1 named agent")
    assert answer(Trace(name="t", steps=())).headline == "No named agents"


def test_two_agents_without_a_handoff_are_not_applicable():
    assert answer(Play().turn("A").turn("B").trace).reason_code == "no_handoffs"


def test_parameters_can_be_set_and_are_told():
    play = Play().rally("ABAB")
    assert answer(play.trace, min_returns=3).answer is Answer.QUIET
    text = HandoffPingPong(min_returns=5, most_calls=3).material_when
    assert "at least 5 times" in text
    assert "more than 3 tool calls" in text
    for wrong in ({"min_returns": 1}, {"min_returns": 101}, {"most_calls": -1}):
        with pytest.raises(ValueError, match="must be"):
            HandoffPingPong(**wrong)


def test_shuffled_steps_give_the_same_answer():
    trace = Play().rally("ABABCAB").user().rally("BA").trace
    other = shuffled(trace, random.Random(6))
    assert list(HandoffPingPong().run(other)) == list(HandoffPingPong().run(trace))


def test_the_hash_depends_on_what_was_read_and_not_on_the_parameters():
    one, other = Play().rally("ABAB").trace, Play().rally("ABAC").trace
    assert answer(one).input_hash == answer(one, min_returns=9).input_hash
    assert answer(one).input_hash != answer(other).input_hash
