"""Declared facts in recorded traces: every trap, the distance, and who answered."""

from __future__ import annotations

import msgspec
import pytest

from apps.engine.memory import (
    Place,
    Recall,
    Source,
    State,
    counted,
    memory_of,
    recall_of,
)
from tests.engine.memory.conversations import NOISE, PROBE, TOLD, Talk, asked, fact


@pytest.mark.parametrize(
    ("answer", "value", "how", "expected"),
    [
        ("Your number is 84920.", "84920", "space", State.RECALLED),
        ("Your number is 1284920.", "84920", "space", State.LOST),
        ("It is not 84920.", "84920", "space", State.CONTRADICTED),
        ("It is 84921.", "84920", "space", State.CONTRADICTED),
        ("One of 84920, 84921 or 11111.", "84920", "space", State.AMBIGUOUS),
        ("It runs on srv-010.", "srv-01", "space", State.LOST),
        ("It runs on srv-01.", "srv-01", "space", State.RECALLED),
        ("It is X9 4417.", "X9-4417", "id", State.RECALLED),
        ("It is X9 4417.", "X9-4417", "space", State.LOST),
        ("I do not know.", "84920", "space", State.LOST),
    ],
)
def test_a_trap_of_earlier_tools_is_none_here(answer, value, how, expected):
    assert recall_of(asked(answer, value=value), fact(value, how=how)).state is expected


def test_a_declared_decoy_contradicts():
    spec = fact("green", "my number", decoys=("blue",))
    trace = asked("It was blue.", told="My colour is green.")
    found = recall_of(trace, spec)
    assert (found.state, found.others) == (State.CONTRADICTED, ("blue",))


def test_the_distance_is_counted_between_telling_and_needing():
    found = recall_of(asked("It is 84920."), fact())
    assert (found.told_step, found.needed_step, found.answer_step) == (0, 6, 7)
    assert (found.turns_between, found.steps_between) == (2, 5)
    assert (found.source, found.place, found.probe) == (Source.DECLARED, None, 1)


def test_a_fact_that_nothing_asks_for_is_not_probed():
    trace = Talk().user(TOLD).says("Noted.").user("Bye.").says("Bye.").trace()
    found = recall_of(trace, fact())
    assert (found.state, found.told_step, found.place) == (State.NOT_PROBED, 0, None)


def test_a_fact_that_nothing_tells_is_not_told():
    trace = asked("It is 84920.", told="Hello.")
    assert recall_of(trace, fact()).state is State.NOT_TOLD


def test_a_question_that_names_the_fact_shows_no_memory():
    talk = Talk().user(TOLD).says("Noted.").user("Is my number 84920?").says("Yes.")
    assert recall_of(talk.trace(), fact()).state is State.UNDECIDED


def test_a_probe_without_an_answer_is_undecided():
    trace = Talk().user(TOLD).says("Noted.").user(PROBE).trace()
    assert recall_of(trace, fact()).state is State.UNDECIDED


def test_a_trace_without_bodies_is_undecided():
    trace = asked("It is 84920.")
    bare = tuple(msgspec.structs.replace(step, body=None) for step in trace.steps)
    found = recall_of(msgspec.structs.replace(trace, steps=bare), fact())
    assert (found.state, found.told_step) == (State.UNDECIDED, None)
    assert "No body" in found.sentence


def test_each_message_that_needs_the_fact_has_an_answer_of_its_own():
    trace = (
        Talk()
        .user(TOLD)
        .says("Noted.")
        .user(PROBE)
        .says("It is 84920.")
        .user("Again, my number?")
        .says("I do not know.")
        .trace()
    )
    found = memory_of(trace, [("number", fact())])
    assert [each.state for each in found] == [State.RECALLED, State.LOST]
    assert [each.probe for each in found] == [1, 2]
    assert {each.fact for each in found} == {"number"}
    assert recall_of(trace, fact()).state is State.LOST
    assert counted(found) == (1, 2)


def test_only_decided_answers_are_counted():
    found = [
        recall_of(asked(answer), fact())
        for answer in ("It is 84920.", "84920 or 84921.", "No idea.", "It is 84929.")
    ]
    assert counted(found) == (1, 3)
    assert counted([]) == (0, 0)


def test_the_agent_is_the_one_that_answered():
    talk = Talk("triage", "writer")
    talk.user(TOLD, by=0).says("Noted.", by=0).user(PROBE, by=1)
    talk.says("It is 84920.", by=1)
    assert recall_of(talk.trace(), fact()).agent == "writer"


def test_a_recall_is_compact_json_and_comes_back_the_same():
    found = recall_of(asked("It is 84921."), fact())
    stored = msgspec.json.encode(found)
    assert msgspec.json.decode(stored, type=Recall) == found
    assert len(stored) < 1_000
    assert found.place is Place.CANNOT_TELL


def test_many_facts_of_one_trace_are_answered_in_order():
    trace = asked(NOISE)
    found = memory_of(trace, [("a", fact()), ("b", fact("11111"))])
    assert [(each.fact, each.state) for each in found] == [
        ("a", State.LOST),
        ("b", State.NOT_TOLD),
    ]
