from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from apps.reports import words
from apps.reports.document import (
    MAX_VALUES,
    ChancePart,
    bounded_series,
    canonical,
    sha256_of,
)
from apps.reports.inert import one_line, visible
from apps.reports.rates import rate_of
from apps.reports.signal_parts import evidence_part
from tests.reports import documents


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_wilsons_as_scipy_has_it(pair):
    hits, of = pair
    expected = binomtest(hits, of).proportion_ci(0.95, method="wilson")
    rate = rate_of(hits, of)
    assert rate.low == pytest.approx(expected.low, abs=1e-9)
    assert rate.high == pytest.approx(expected.high, abs=1e-9)


def test_nothing_of_nothing_has_no_share():
    assert rate_of(0, 0).share is None
    assert words.rate(rate_of(0, 0)) == "no decisions yet"


def test_canonical_json_has_sorted_keys_and_one_form():
    document = documents.with_decision()
    text = canonical(document)
    assert text == json.dumps(
        json.loads(text), sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
    assert canonical(json.loads(text)) == text
    assert len(sha256_of(text)) == 64


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("a\x00b", "a\u2400b"),
        ("\x1b[31m", "\u241b[31m"),
        ("a\u202eb", "a[U+202E]b"),
        ("a\u200bb", "a[U+200B]b"),
        ("a\u200db", "a[U+200D]b"),
        ("👩\u200d👩", "👩\u200d👩"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("日本語 עברית", "日本語 עברית"),
        ("e" + "\u0301" * 50, "e" + "\u0301" * 4),
    ],
)
def test_hidden_characters_are_shown_and_the_rest_is_unchanged(given_text, shown):
    assert visible(given_text) == shown


@given(st.text())
def test_showing_twice_changes_nothing(text):
    assert one_line(one_line(text)) == one_line(text)


def test_a_cut_text_says_by_how_much():
    assert visible("x" * 5_000, limit=10) == "x" * 10 + "… [4,990 more characters]"


def test_a_long_series_keeps_its_ends_and_says_what_is_left_out():
    values = [float(n) for n in range(1_000)]
    part = bounded_series({"unit": "t", "steps": list(range(1_000)), "values": values})
    assert len(part.values) == MAX_VALUES
    assert part.values[0] == 0.0
    assert part.values[-1] == 999.0
    assert part.left_out == 600
    assert part.gap_after == 200


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (None, "no null model"),
        (ChancePart(1 / 720, "m", "a", "e", "1", "720"), "1 of 720 (0.14 %)"),
        (
            ChancePart(0.018, "m", "a", "e", standard_error=0.003),
            "1.8 % ± 0.3 % (simulated)",
        ),
        (
            ChancePart(1e-20, "m", "a", "e", "1", "1" + "0" * 20),
            "1 of 1.00e20 (less than 0.0001 %)",
        ),
    ],
)
def test_a_chance_in_words(part, expected):
    assert words.chance(part).replace("\u202f", " ") == expected


def test_stored_evidence_is_bounded_and_made_visible():
    part = evidence_part(
        {
            "scope": "invocation 1\u202e",
            "reason": "x" * 9_000,
            "agent": "a\x00",
            "usage_known": 3,
            "usage_missing": 2,
            "facts": {"deep": [[[[[[1]]]]]], "many": list(range(500)), "n": 1.5},
            "series": {
                "unit": "t",
                "steps": [1, 2],
                "values": [1.0, None],
                "labels": ["\u202ex", None],
                "threshold": None,
            },
            "chance": {
                "value": 0.1,
                "model": "m",
                "assumptions": "a",
                "method": "e",
                "numerator": "1",
                "denominator": "10",
                "floor": 0.1,
                "standard_error": None,
            },
        }
    )
    assert part.scope == "invocation 1[U+202E]"
    assert part.agent == "a\u2400"
    assert "more characters" in part.reason
    assert part.facts["many"][-1] == "[400 more]"
    assert part.facts["n"] == 1.5
    assert part.series is not None
    assert part.series.values == (1.0, None)
    assert part.series.labels == ("[U+202E]x", None)
    assert part.chance is not None
    assert part.chance.denominator == "10"
