"""A conversation of one run a turn: its record is that of all of its turns."""

from __future__ import annotations

from apps.engine.memory_tests import (
    Fact,
    MemoryTest,
    TrialRecord,
    planned_trial,
    run_trial,
)
from apps.engine.replay.case import Case
from apps.engine.replay.run import UNKNOWN, Ending, Proof, Ran
from apps.isolation.asked_turns import AskedTurns

TEST = MemoryTest(
    facts=(
        Fact(
            slug="card",
            value="27",
            telling="My card ends in {value}.",
            probe="What does my card end in?",
        ),
    ),
    depths=(1,),
    repeats=1,
)
TRIAL = planned_trial(TEST, depth=1, repeat=1)


def asked(*proofs: Proof) -> Ran:
    """The record of a trial whose turns have these proofs, the last one again and again."""
    left = list(proofs)

    def ask(_case: Case) -> Ran:
        proof = left.pop(0) if len(left) > 1 else left[0]
        return Ran(
            ending=Ending.FINISHED, output="27", proof=proof, start_ns=1, end_ns=2
        )

    turns = AskedTurns(Case(agent="memory"), ask)
    return turns.ran(run_trial(TRIAL, turns.as_agent()))


def test_what_the_stubs_answered_in_all_turns_is_added_up():
    first = Proof(
        level="namespaces",
        stubbed_calls=2,
        missed_calls=1,
        intended_writes=1,
        unconsumed=(1, 2),
        state_copy="before",
    )
    proof = asked(first, Proof(level="namespaces", unconsumed=(0, 2))).proof
    assert (proof.stubbed_calls, proof.missed_calls, proof.intended_writes) == (2, 1, 1)
    assert (proof.unconsumed, proof.state_copy) == ((2,), "before")


def test_a_turn_that_changed_its_input_is_not_hidden_by_the_next_one():
    changed = Proof(level="namespaces", input_before="a", input_after="b")
    same = Proof(level="namespaces", input_before="c", input_after="c")
    proof = asked(changed, same).proof
    assert (proof.input_before, proof.input_after) == ("a", "b")


def test_a_trial_without_a_turn_reached_no_level_that_is_known():
    turns = AskedTurns(Case(agent="memory"), lambda _case: None)
    assert turns.ran(TrialRecord(trial=TRIAL, heard=())).proof.level == UNKNOWN
