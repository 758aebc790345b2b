"""What holds for every check: four texts, stable answers, stated parameters."""

from __future__ import annotations

import json
import time
from fractions import Fraction

import msgspec
import pytest

from apps.engine.check import Answer, Level, exact_chance, odds, percent
from apps.engine.checks import CHECKS, by_slug
from tests.engine.traces import call, outputs_trace, tool, tools_trace, trace_of

TEXTS = ("observes", "null_model", "material_when", "next_step")
TRACES = [
    trace_of(),
    outputs_trace(100, 90, 80, 70, 60),
    outputs_trace(100, None, 80),
    tools_trace(*"abcdeeee"),
    trace_of(*[call(n, start=0, end=3) for n in range(3)], tool(3, "x")),
    outputs_trace(2**70, 2**69, 2**68, 7, 6),
]

every_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.slug)


@every_check
def test_it_answers_its_four_questions_in_sentences(check):
    texts = [getattr(check, name) for name in TEXTS]
    assert all(len(text.split()) >= 8 and text.endswith(".") for text in texts)
    assert len(set(texts)) == 4
    assert not any("full confidence" in text for text in texts)


@every_check
def test_it_says_something_about_every_trace_and_the_same_again(check):
    for trace in TRACES:
        found = list(check.run(trace))
        assert found
        assert found == list(check.run(trace))
        assert len({one.evidence.scope for one in found}) == len(found)


@every_check
def test_an_answer_is_complete_and_can_be_stored_as_json(check):
    for trace in TRACES:
        for one in check.run(trace):
            assert one.headline
            assert one.reason
            assert one.reason_code.replace("_", "").isalpha()
            assert int(one.input_hash, 16) >= 0
            json.dumps(msgspec.to_builtins(one))
            if one.answer is not Answer.SIGNAL:
                assert one.level is Level.TELEMETRY


@every_check
def test_only_its_inputs_change_the_input_hash(check):
    one, other = (
        [s.input_hash for s in check.run(trace)]
        for trace in (
            outputs_trace(9, 8, 7, 6, 5),
            outputs_trace(9, 8, 7, 6, 5, task="another"),
        )
    )
    assert one == other


@every_check
def test_its_parameters_are_json_and_it_reads_no_text(check):
    json.dumps(check.parameters)
    assert check.needs_bodies is False
    assert check.version >= 1
    assert by_slug(check.slug) is check


def test_slugs_are_unique_and_an_unknown_one_is_an_error():
    assert len({check.slug for check in CHECKS}) == len(CHECKS)
    with pytest.raises(KeyError):
        by_slug("no-such-check")


def test_all_checks_over_a_trace_of_25_000_calls_take_seconds_not_minutes():
    steps = []
    for n in range(12_500):
        steps.append(call(2 * n, 1 + n * 7919 % 977))
        steps.append(tool(2 * n + 1, f"tool {n * 31 % 23}"))
    trace = trace_of(*steps)
    started = time.process_time()
    assert all(list(check.run(trace)) for check in CHECKS)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (1 / 120, "0.83 %"),
        (1 / 720, "0.14 %"),
        (1 / 6, "16.7 %"),
        (0.6, "60 %"),
        (0.05, "5 %"),
        (1, "100 %"),
        (0, "0 %"),
        (1e-5, "0.001 %"),
        (1e-9, "less than 0.0001 %"),
    ],
)
def test_shares_read_as_a_person_would_write_them(share, text):
    assert percent(share) == text


def test_odds_name_the_fraction_while_it_can_be_read():
    assert odds(Fraction(1, 720)) == "1 of 720 (0.14 %)"
    assert odds(Fraction(1, 10**9)) == "less than 0.0001 %"


def test_a_fraction_of_more_than_300_digits_is_left_out_of_a_chance():
    words = {"model": "m", "assumptions": "a", "method": "e", "floor": Fraction(1)}
    assert exact_chance(Fraction(1, 10**299), **words).denominator == 10**299
    assert exact_chance(Fraction(1, 10**301), **words).denominator is None
