"""Numbers in texts: strict where they are claimed, generous where they support."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.bodies.amounts import (
    amounts_in,
    claims_in,
    readings_of,
    values_in,
    words_in,
)


def texts(text):
    return [claim.text for claim in claims_in(text)]


def first(text):
    return claims_in(text)[0].readings[0][0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$1,234.56", 1234.56),
        ("1.234,56 €", 1234.56),
        ("1'234'567", 1234567),
        ("1 234 567", 1234567),
        ("1\u202f234\u202f567", 1234567),
        ("1,23,456 rupees", 123456),
        ("12,5 %", 12.5),
        ("3.14159", 3.14159),
        ("٤٢", 42),
        ("\uff14\uff12", 42),
        ("1.5 million", 1_500_000),
        ("37k", 37_000),
        ("-42", 42),
    ],
)
def test_a_number_is_read_in_many_styles(text, value):
    assert first(text) == pytest.approx(value)


def test_a_lone_separator_may_be_either():
    assert {value for value, _ in readings_of("1.234")} == {1234, 1.234}
    assert {value for value, _ in readings_of("1,234")} == {1234, 1.234}
    assert {value for value, _ in readings_of("1,2345")} == {1.2345}


def test_half_a_unit_of_the_last_digit_is_the_rounding():
    assert readings_of("12.50")[-1] == (12.5, pytest.approx(0.005))
    assert readings_of("42") == ((42.0, 0.5),)
    assert readings_of("1500") == ((1500.0, 50.0),)


def test_zeros_are_significant_behind_a_decimal_mark_only():
    digits = {
        claim.text: claim.digits
        for claim in claims_in(
            "100, 4200, 0.50, 1.05, 42.00, 0.00, 1,500, 1.234,50, 1,500.00"
        )
    }
    assert digits == {
        "100": 1, "4200": 2, "0.50": 2, "1.05": 3, "42.00": 4, "0.00": 0, "1,500": 2,
        "1.234,50": 6, "1,500.00": 6,
    }  # fmt: skip


def test_each_number_is_claimed_once():
    assert texts("42 and 42 and 43%") == ["42", "43%"]


def test_a_year_with_a_currency_is_an_amount():
    assert texts("in 2024 for $2024") == ["2024"]


def test_a_list_without_blanks_has_pieces():
    (claim,) = claims_in("rows 12,13")
    assert claim.pieces == (12.0, 13.0)


def test_any_run_of_digits_is_a_value_that_supports():
    assert {4421486.0} <= set(values_in("credit_card_4421486"))
    assert {2024.0, 5.0, 26.0} <= set(values_in("2024-05-26"))
    assert {1234.5, 1.0, 234.0, 5.0} <= set(values_in("1,234.5"))
    assert 1234567.0 in set(values_in("1 234 567"))
    assert list(values_in("9" * 30)) == []


def test_amounts_leave_out_ids_dates_and_times():
    text = "A-100 on 2024-05-26 at 17:45 (user_88, 3 bags, 15%, 1999, 007): 42.5"
    assert list(amounts_in(text)) == [(3.0, False), (15.0, True), (42.5, False)]


def test_numbers_in_words():
    assert list(words_in("Twenty-five of a dozen, ninety two")) == [25, 12, 92]


@given(st.text())
def test_no_text_makes_it_fail(text):
    assert isinstance(claims_in(text), list)
    assert all(value >= 0 for value in values_in(text))
    assert list(amounts_in(text)) is not None


@given(st.integers(10, 999_999_999).filter(lambda n: not 1800 <= n <= 2100))
def test_a_whole_number_is_claimed_and_supports_itself(number):
    for text in (f"{number}", f"{number:,}", f"{number:_}".replace("_", "'")):
        (claim,) = claims_in(f"It is {text} in all")
        assert number in {value for value, _ in claim.readings}
        assert number in set(values_in(text))


@pytest.mark.parametrize(
    "text",
    [
        "postgresql.  #  1234",
        "Septiembre.   21",
        "ES 1234",
        "see\nLINE\t1234",
        "v12.34.56",
        "ftp://host/1234",
        "nr.1234",
    ],
)
def test_the_longest_and_shortest_names_before_a_number_are_no_amounts(text):
    assert claims_in(text) == []
    assert claims_in(f"(so {text})") == []
    assert [one.text for one in claims_in(f"98.70 in all; {text}")] == ["98.70"]
