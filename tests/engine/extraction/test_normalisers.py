"""What does not count as a difference, and only where it is declared."""

from __future__ import annotations

import pytest

from apps.engine.extraction import DecisionNormaliser
from apps.engine.extraction.dates import iso_date
from tests.engine.extraction.doings import at, gave


def value(decision, *normalisers):
    found = at("d", gave({"d": decision, "e": 1}), normalisers=list(normalisers))
    assert found.state == "decided"
    return found.value


def are_one(decisions, *normalisers):
    return len({value(one, *normalisers) for one in decisions}) == 1


def test_nothing_is_normalised_where_none_is_declared():
    for one, other in (
        ("Billing", "billing "),
        ("1", 1),
        ("a  b", "a b"),
        ("X9-1", "X91"),
    ):
        assert value(one) != value(other)
    assert value(1) == value(1.0)


def test_case_and_white_space():
    assert are_one(["Billing", "billing ", " BILLING\n"], "case", "white_space")
    assert not are_one(["Billing", "billing "], "case")
    assert not are_one(["Billing", "billing "], "white_space")


def test_one_number_in_all_its_writings():
    numbers = [1000, 1000.0, "1000", "1000.00", "1,000", "1 000", "1'000", "+1,000.0"]
    assert are_one(numbers, "number")
    assert value("1.00", "number") == value(1, "number") == "1"
    assert value("-0.50", "number") == "-0.5"
    assert value(1e20, "number") == value("1" + "0" * 20, "number")


@pytest.mark.parametrize(
    "text",
    [
        "1,00",
        "007",
        "1.2.3",
        "1e5",
        "12%",
        "$5",
        "1,0000",
        "abc",
        "1 2",
        "0x1f",
        "١٢",
    ],
)
def test_a_text_that_is_no_number_stays_itself(text):
    assert value(text, "number") == value(text)


def test_numbers_with_more_digits_than_json_keeps_stay_apart():
    long = "0.1234567890123456789"
    assert value(long, "number") != value(long + "1", "number")


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-14", "2026/3/14", "March 14, 2026", "14 March 2026", "Mar 14th 2026",
        "14-Mar-2026", "Saturday, March 14, 2026", "14th of march, 2026", "14/03/2026",
        "03/14/2026", "14.3.2026",
    ],
)  # fmt: skip
def test_a_date_in_all_its_writings(text):
    assert value(text, "date") == '"2026-03-14"'


@pytest.mark.parametrize(
    "text",
    ["2026-02-30", "13/13/2026", "14/03/26", "20260314", "Marching 14, 2026", "x"],
)
def test_what_is_no_date_stays_itself(text):
    assert value(text, "date") == value(text)


def test_a_date_with_two_readings_stays_as_written_and_that_is_said():
    found = at("d", gave({"d": "03/04/2026"}), normalisers=["date"])
    assert found.value == '"03/04/2026"'
    assert "“03/04/2026” is a date with two readings" in found.how
    same = at("d", gave({"d": "04/04/2026"}), normalisers=["date"])
    assert (same.value, "readings" in same.how) == ('"2026-04-04"', False)


def test_moments_are_one_in_all_zones():
    assert are_one(
        ["2026-03-14T10:00:00Z", "2026-03-14 11:00+01:00", "2026-03-14T10:00:00.000z"],
        "date",
    )
    assert iso_date("2026-03-14T10:00") == "2026-03-14T10:00:00"
    assert iso_date("0001-01-01T00:00+14:00") is None


def test_an_id_with_and_without_its_separators():
    assert are_one(["X9 4417", "X9-4417", "x9_4417", " X9.4417"], "id")
    assert not are_one(["X9-4417", "X9-4418"], "id")
    assert value("--", "id") == '"--"'


def test_they_apply_to_the_leaves_of_json_and_to_json_in_texts():
    one = {"a": [{"n": "1,000"}], "b": '{"c": "Yes "}'}
    other = {"b": {"c": "yes"}, "a": [{"n": 1000.0}]}
    assert are_one([one, other], "number", "case", "white_space")
    assert not are_one([{"A": 1}, {"a": 1}], "case")


def test_they_are_applied_in_one_order_however_they_are_declared():
    declared = [one.value for one in DecisionNormaliser]
    assert (
        value("#1,000 ", *declared) == value("#1,000 ", *reversed(declared)) == "1000"
    )
