"""What a test may say, and which turns follow from it."""

from __future__ import annotations

import re

import msgspec
import pytest

from apps.engine.contracts.mentions import alike, mentions
from apps.engine.contracts.spec import BadDefinition
from apps.engine.memory.values import tokens_in
from apps.engine.memory_tests import (
    LANGUAGES,
    ActKind,
    MemoryTest,
    Plan,
    TurnKind,
    acts_of,
    decoded_memory_test,
    encoded_memory_test,
    planned,
    planned_trial,
)
from tests.engine.memory_tests.agents import (
    COLOUR,
    LOCKER,
    NUMBER,
    a_test,
    as_json,
    spec,
)


def test_a_test_survives_its_encoding_with_depths_in_order():
    test = a_test(LOCKER, NUMBER, depths=[8, 1, 3, 3], filler={"languages": ["de"]})
    assert test.depths == (1, 3, 8)
    assert decoded_memory_test(as_json(encoded_memory_test(test))) == test


DECIDED = {"kind": "jmespath", "expression": "code"}


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"facts": []}, "facts", "1 to 20 facts"),
        ({"depth": [1]}, "", "“depth” is not known"),
        ({"depths": []}, "depths", "1 to 30 depths"),
        ({"depths": [-1, 2]}, "depths", "between 0 and 1,000"),
        ({"depths": ["a"]}, "depths[0]", "Expected `int`"),
        ({"facts": [LOCKER, NUMBER]}, "depths", "at least 1 turns"),
        ({"repeats": 0}, "repeats", "1 to 200 times"),
        ({"depths": [1000], "repeats": 200}, "repeats", "more than 200,000 turns"),
        ({"certain_from": 1.0}, "certain_from", "between 0 and 1"),
        ({"mode": "summarised"}, "summary_every", "how many turns"),
        ({"summary_every": 4}, "summary_every", "Only a summarised"),
        ({"mode": "dreamt"}, "mode", "dreamt"),
        ({"filler": {"languages": ["tlh"]}}, "filler.languages", "no texts in “tlh”"),
        ({"filler": {"languages": []}}, "filler", "Name a language"),
        ({"filler": {"texts": [" "]}}, "filler.texts[0]", "1 to 4,000 characters"),
        ({"facts": [LOCKER | {"slug": "My Code"}]}, "facts[0].slug", "small letters"),
        ({"facts": [LOCKER | {"value": "--"}]}, "facts[0].value", "letter or a digit"),
        (
            {"facts": [LOCKER | {"value": "x", "normaliser": "number"}]},
            "facts[0].value",
            "not a number",
        ),
        ({"facts": [LOCKER | {"accepted": ["."]}]}, "facts[0].accepted", "a digit"),
        (
            {"facts": [LOCKER | {"accepted": ["x9 4418"]}]},
            "facts[0].decoys",
            "the value itself",
        ),
        ({"facts": [LOCKER | {"telling": "No."}]}, "facts[0].telling", "{value} in it"),
        ({"facts": [LOCKER | {"probe": " "}]}, "facts[0].probe", "something to say"),
        (
            {"facts": [LOCKER | {"probe": "Is it x9 4417?"}]},
            "facts[0].probe",
            "would tell it again",
        ),
        (
            {"facts": [LOCKER | {"probe": "Is it x9 4418?"}]},
            "facts[0].probe",
            "names the decoy",
        ),
        (
            {"facts": [LOCKER, COLOUR | {"telling": "X9-4417 is {value}."}]},
            "facts[1].telling",
            "value of “locker”",
        ),
        ({"facts": [LOCKER, LOCKER]}, "facts[1].slug", "Two facts"),
        (
            {"facts": [LOCKER, NUMBER | {"value": "x9 4417", "normaliser": "id"}]},
            "facts[1].value",
            "value of “locker” too",
        ),
        ({"facts": [LOCKER | {"expected": 1}]}, "facts[0].decision", "belongs to a"),
        ({"facts": [LOCKER | {"decision": DECIDED}]}, "facts[0].expected", "which"),
        (
            {"facts": [LOCKER | {"decision": {"kind": "regex"}, "expected": 1}]},
            "facts[0].decision.expression",
            "expression is empty",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_field_and_sentence(fields, field, words):
    with pytest.raises(BadDefinition, match=r"\.$") as refused:
        decoded_memory_test(spec() | fields)
    assert (refused.value.field, words in str(refused.value)) == (field, True), refused


def test_our_own_texts_are_many_and_hold_nothing_like_a_fact():
    assert len(LANGUAGES) >= 6
    for texts in LANGUAGES.values():
        assert len(set(texts)) == len(texts) >= 25
        for text in texts:
            assert not re.search(r"\d|[A-Z]{2}|@", text)
            assert not list(tokens_in(text))


class TestThePlan:
    test = a_test(LOCKER, COLOUR, NUMBER, depths=[2, 4, 9], repeats=4)
    plan = planned(test)

    def test_it_is_the_same_for_the_same_seed_and_survives_json(self):
        again = planned(decoded_memory_test(encoded_memory_test(self.test)))
        assert again == self.plan
        assert planned(self.test, seed=2) != self.plan
        assert msgspec.convert(as_json(self.plan), Plan) == self.plan

    def test_a_trial_does_not_depend_on_which_others_there_are(self):
        fewer = planned(msgspec.structs.replace(self.test, depths=(4, 9), repeats=2))
        kept = [t.turns for t in self.plan.trials if t.depth > 2 and t.repeat <= 2]
        assert [trial.turns for trial in fewer.trials] == kept

    @pytest.mark.parametrize("length", ["grows", "equal"])
    def test_one_trial_alone_is_that_of_the_plan(self, length):
        test = a_test(LOCKER, COLOUR, depths=[2, 9], repeats=3, length=length)
        for trial in planned(test).trials:
            alone = planned_trial(test, depth=trial.depth, repeat=trial.repeat)
            assert alone == trial
        with pytest.raises(ValueError, match="no trial 4 at depth 9"):
            planned_trial(test, depth=9, repeat=4)

    def test_every_fact_lies_exactly_as_deep_as_planned(self):
        assert [t.number for t in self.plan.trials] == list(range(1, 13))
        for trial in self.plan.trials:
            for slug in trial.facts:
                told = trial.place_of(TurnKind.PLANT, slug)
                asked = trial.place_of(TurnKind.PROBE, slug)
                assert asked - told - 1 == trial.depth

    def test_facts_change_places_from_repeat_to_repeat(self):
        firsts = [trial.facts[0] for trial in self.plan.trials[:3]]
        assert sorted(firsts) == ["colour", "locker", "order"]

    def test_only_the_telling_names_a_value(self):
        for trial in self.plan.trials:
            for fact in self.test.facts:
                named = [
                    turn.kind
                    for turn in trial.turns
                    if mentions(turn.text, fact.value, fact.normaliser)
                ]
                assert named == [TurnKind.PLANT]

    def test_decoys_stand_in_between_where_there_is_room_and_else_before(self):
        for trial in self.plan.trials:
            kinds = [turn.kind for turn in trial.turns]
            decoy, plant = kinds.index(TurnKind.DECOY), kinds.index(TurnKind.PLANT)
            assert (decoy > plant) == (trial.depth > 2)

    def test_what_is_asked_of_an_agent_is_counted_before_it_starts(self):
        assert self.plan.calls == sum(len(t.turns) for t in self.plan.trials)


def test_conversations_of_equal_length_differ_in_the_place_of_the_fact_only():
    plan = planned(a_test(COLOUR, depths=[0, 4, 10], length="equal", repeats=1))
    assert {len(trial.turns) for trial in plan.trials} == {12}
    places = [trial.place_of(TurnKind.PLANT, "colour") for trial in plan.trials]
    assert places == [10, 6, 0]


def test_decoys_without_room_in_between_take_the_place_of_turns_before():
    plan = planned(a_test(LOCKER, depths=[0, 4, 10], length="equal", repeats=1))
    assert {len(trial.turns) for trial in plan.trials} == {12}


def test_given_texts_that_name_a_value_or_one_that_looks_like_it_are_left_out():
    texts = ["The code is x9 4417.", "Mine is Q2-1111.", "Hello.", "X9-4418?", "Bye."]
    plan = planned(a_test(filler={"texts": texts}, depths=[40], repeats=1))
    assert plan.left_out == 3
    [trial] = plan.trials
    said = [turn.text for turn in trial.turns if turn.kind is TurnKind.FILLER]
    assert len(said) == 39  # a decoy takes one turn of the depth
    assert set(said) == {"Hello.", "Bye."}
    assert not any(alike(text, "X9-4417", "id") for text in said)
    with pytest.raises(BadDefinition, match="nothing is left"):
        planned(a_test(filler={"texts": texts[:2]}))


def test_states_are_read_after_telling_around_summaries_and_before_asking():
    test = a_test(COLOUR, depths=[0, 5], repeats=1, mode="summarised", summary_every=3)
    shallow, deep = planned(test).trials
    assert (shallow.summaries, deep.summaries) == ((), (2, 5))
    kinds = [(act.kind.value[:2], act.turn) for act in acts_of(shallow)]
    assert kinds == [("tu", 0), ("st", 0), ("tu", 1)]
    kinds = [(act.kind.value[:2], act.turn) for act in acts_of(deep)]
    assert kinds[:2] == [("tu", 0), ("st", 0)]
    assert kinds[4:8] == [("st", 2), ("su", 2), ("st", 2), ("tu", 3)]
    assert kinds[-4:] == [("st", 5), ("su", 5), ("st", 5), ("tu", 6)]
    assert sum(act.kind is ActKind.SUMMARISE for act in acts_of(deep)) == 2
    assert planned(test).calls == 2 + 7 + 2
    assert isinstance(test, MemoryTest)
