"""What checks share: parameters within limits, runs over calls, a baseline."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction

import pytest

from apps.engine.check import MAX_CHANCE, Parameter, configured
from apps.engine.checks import CHECKS
from apps.engine.rules import LaneRule, Rule, SequenceRule, ShiftRule, ToolRule

BASES = (LaneRule, SequenceRule, ToolRule)
FIXED = ("slug", "label", "version", "level", "basis", "needs_bodies", "limits")


@dataclass(frozen=True)
class Loud(Rule):
    """A rule of three parameters."""

    most: int = 3
    names: tuple[str, ...] = ("a",)
    max_chance: float = 0.05

    limits = (
        Parameter("most", "Most", 1, 9),
        Parameter("names", "Names", high=2, names=True),
        MAX_CHANCE,
    )


class TestARule:
    """Its parameters are its fields, in the order of its limits, within them."""

    def test_its_parameters_are_json_values_in_the_order_of_its_limits(self):
        made = Loud(names=("b", "c"))
        assert list(made.parameters.items()) == [
            ("most", 3),
            ("names", ["b", "c"]),
            ("max_chance", 0.05),
        ]

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"most": 10}, "“Most” must be at least 1 and at most 9."),
            ({"names": ("a", "b", "c")}, "“Names” may hold at most 2 names."),
            ({"names": "ab"}, "“Names” must be a list of names."),
            ({"max_chance": 0}, "must be above 0 and at most 1."),
        ],
    )
    def test_a_value_beyond_a_limit_is_refused_when_it_is_made_or_changed(
        self, changes, sentence
    ):
        with pytest.raises(ValueError, match=sentence):
            Loud(**changes)
        with pytest.raises(ValueError, match=sentence):
            dataclasses.replace(Loud(), **changes)

    def test_another_value_makes_another_rule_and_leaves_the_first_as_it_was(self):
        one = Loud()
        other = configured(one, {"most": 5.0, "names": ["z"]})
        assert (other.most, other.names, one.most) == (5, ("z",), 3)
        assert other != one
        assert configured(other, {"most": 3, "names": ["a"]}) == one
        assert hash(Loud()) == hash(one)

    def test_a_rule_without_limits_has_no_parameters(self):
        assert (Rule().parameters, Rule.limits) == ({}, ())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.slug)
def test_nothing_of_a_check_can_be_set_but_its_parameters(check):
    fields = {field.name for field in dataclasses.fields(check)}
    assert fields.isdisjoint(FIXED)
    by_hand = {limit.name for limit in check.limits}
    assert fields - by_hand <= {"baseline", "baseline_name", "baseline_key"}
    with pytest.raises(dataclasses.FrozenInstanceError):
        check.slug = "another"


@pytest.mark.parametrize("base", BASES)
def test_a_rule_over_calls_must_say_what_it_answers(base):
    with pytest.raises(TypeError, match="abstract method"):
        base()


def test_one_run_stands_for_all_rules_over_the_same_calls():
    over = {base: [one for one in CHECKS if isinstance(one, base)] for base in BASES}
    assert all(len(found) > 1 for found in over.values())
    for base, found in over.items():
        assert all(type(one).run is base.run for one in found)


@dataclass(frozen=True)
class Scores:
    """A baseline of nothing but scores."""

    scores: tuple[float, ...]


@dataclass(frozen=True)
class Moved(ShiftRule[Scores]):
    """A comparison with a baseline in both directions."""

    directions = 2
    compared, scored, alike = "answers", "answers", "answers"
    limits = (MAX_CHANCE,)


class TestARuleBesideABaseline:
    """A rank among n traces is one of n + 1 places."""

    @pytest.mark.parametrize(
        ("traces", "max_chance", "is_enough"),
        [(0, 1, False), (1, 1, True), (38, 0.05, False), (39, 0.05, True)],
    )
    def test_a_baseline_is_large_enough_when_the_rarest_rank_is_rare_enough(
        self, traces, max_chance, is_enough
    ):
        made = Moved(max_chance=max_chance)
        said = made.too_small(Scores((0.5,) * traces))
        assert (said is None) is is_enough
        assert is_enough or f"{traces} traces" in said.headline

    def test_it_never_expects_more_signals_than_ranks_that_are_rare_enough(self):
        for traces in range(1, 200):
            ranks = [Fraction(2 * k, traces + 1) for k in range(1, traces + 2)]
            rare = sum(rank <= Fraction("0.05") for rank in ranks)
            assert Moved().most_often(traces) == rare / (traces + 1)

    def test_its_baseline_is_one_of_its_parameters(self):
        named = Moved(baseline=Scores(()), baseline_name="May", baseline_key="k")
        assert named.parameters == {"max_chance": 0.05, "baseline": "k"}

    def test_the_floor_of_a_chance_is_the_rarest_rank(self):
        found = Moved().chance(0.2, 19, assumptions="None.", method=", both ways")
        assert (found.value, found.floor) == (0.2, 2 / 20)
        assert found.method == "rank among 19 traces of the baseline, both ways"

    def test_names_that_the_baseline_lacks_are_told_by_three(self):
        said = Moved().nothing_alike(iter("abcd"), "what was")
        assert "(a, b, c)" in said.reason
