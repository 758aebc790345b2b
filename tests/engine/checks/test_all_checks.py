"""What holds for every check: four texts, stable answers, stated parameters."""

from __future__ import annotations

import json
import math
import time
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.check import (
    Answer,
    Basis,
    Level,
    configured,
    exact_chance,
    odds,
    percent,
)
from apps.engine.checks import CHECKS, by_slug
from apps.engine.trace import Body, StepStatus
from tests.engine.random_traces import shuffled, traces
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


# Not a number that somebody types: the project names a trace set.
CHOSEN_AS_A_SET = {"baseline"}


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
def test_its_parameters_are_json_and_it_is_found_by_its_slug(check):
    json.dumps(check.parameters)
    assert check.version >= 1
    assert by_slug(check.slug) is check


@every_check
def test_every_parameter_has_a_limit_and_every_limit_a_parameter(check):
    by_hand = [name for name in check.parameters if name not in CHOSEN_AS_A_SET]
    assert [limit.name for limit in check.limits] == by_hand
    assert all(limit.label for limit in check.limits)


def limits_of(checks):
    pairs = [(check, limit) for check in checks for limit in check.limits]
    names = [f"{check.slug}, {limit.name}" for check, limit in pairs]
    return pytest.mark.parametrize(("check", "limit"), pairs, ids=names)


def values_beyond(limit):
    """Values below and above the range, and of a wrong type."""
    if limit.names:
        return [["a"] * (int(limit.high) + 1), [""], [7], "name", None, 3]
    below = limit.low if limit.above_low else limit.low - 1
    fraction = [limit.low + 0.5] if limit.is_whole else []
    return [below, limit.high + 1, math.nan, math.inf, "3", True, None, [3], *fraction]


@limits_of(CHECKS)
def test_a_value_beyond_a_limit_is_refused_with_a_sentence(check, limit):
    for value in values_beyond(limit):
        with pytest.raises(ValueError, match=r"^“.+” (must|may) .+\.$"):
            configured(check, {limit.name: value})


@limits_of(CHECKS)
def test_both_ends_of_a_range_may_be_taken_with_some_other_parameters(check, limit):
    if limit.names:
        least, most = [], [f"n{at}" for at in range(int(limit.high))]
    else:
        step = 1 if limit.is_whole else (limit.high - limit.low) / 1_000
        least, most = limit.low + step * limit.above_low, limit.high
    for value in (least, most):
        assert limit.refusal(value) == ""


@every_check
def test_a_class_made_with_a_value_beyond_a_limit_refuses_it_itself(check):
    for limit in check.limits:
        values = check.parameters | {limit.name: values_beyond(limit)[1]}
        with pytest.raises(ValueError, match=r"m(ust|ay)"):
            type(check)(**values)


@every_check
def test_configured_gives_the_same_check_back_for_its_own_parameters(check):
    names = [limit.name for limit in check.limits]
    same = configured(check, {name: check.parameters[name] for name in names})
    assert same == check
    assert json.loads(json.dumps(same.parameters)) == check.parameters


@every_check
def test_an_unknown_parameter_is_refused_with_a_sentence(check):
    with pytest.raises(ValueError, match="has no parameter “no_such”"):
        configured(check, {"no_such": 1})


def another_value(limit, value):
    """Another value that the limit admits, near to the one that is set."""
    if limit.names:
        return [*value, "rub_out"]
    if limit.is_whole:
        return value + 1 if value < limit.high else value - 1
    return value * 0.75 if not limit.refusal(value * 0.75) else value * 1.25


@every_check
def test_each_parameter_is_told_in_a_text_that_changes_with_it(check):
    texts = [getattr(check, name) for name in TEXTS]
    for limit in check.limits:
        value = another_value(limit, getattr(check, limit.name))
        try:
            changed = configured(check, {limit.name: value})
        except ValueError:
            # Two bounds that must ascend move together.
            value = getattr(check, limit.name) * 1.25
            changed = configured(check, {limit.name: value})
        assert [getattr(changed, name) for name in TEXTS] != texts, limit.name


@every_check
def test_its_texts_are_those_of_its_class_where_nothing_is_changed(check):
    assert type(check)().observes == check.observes
    assert type(check)().material_when == check.material_when


@every_check
def test_a_fact_says_that_it_has_no_null_model_and_a_statistic_names_one(check):
    is_fact = check.basis is Basis.FACT
    assert check.null_model.startswith("None: ") is is_fact
    assert ("max_chance" in check.parameters) is not is_fact


def holds_for(check, found):
    """What is true of every answer, whatever the trace."""
    scopes = [one.evidence.scope for one in found]
    assert found
    assert len(set(scopes)) == len(scopes)
    assert all(0 < len(scope) <= 80 for scope in scopes)
    for one in found:
        is_queued = one.level is Level.REVIEW_SIGNAL
        assert not is_queued or one.answer is Answer.SIGNAL
        assert not is_queued or check.level is Level.REVIEW_SIGNAL
        assert_chances(check, one, is_queued=is_queued)
        assert one.headline
        assert one.reason
        assert one.reason.rstrip().endswith(".")
        assert set(one.evidence.steps) <= set(range(30_000))
        json.dumps(msgspec.to_builtins(one), allow_nan=False)


def assert_chances(check, one, *, is_queued):
    evidence = one.evidence
    if check.basis is Basis.FACT:
        assert evidence.chance is None
        assert evidence.chance_of_signal is None
        return
    assert (evidence.chance_of_signal is None) is (one.answer is Answer.NOT_APPLICABLE)
    if one.answer is Answer.SIGNAL:
        assert is_queued is (evidence.chance.value <= check.max_chance)


@given(trace=traces(), source=st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_any_trace_is_answered_and_its_steps_in_any_order_the_same(trace, source):
    other = shuffled(trace, source)
    for check in CHECKS:
        found = list(check.run(trace))
        holds_for(check, found)
        assert list(check.run(other)) == found


@every_check
def test_what_holds_for_any_trace_holds_for_the_ones_above(check):
    for trace in TRACES:
        holds_for(check, list(check.run(trace)))


def test_slugs_are_unique_and_an_unknown_one_is_an_error():
    assert len({check.slug for check in CHECKS}) == len(CHECKS)
    with pytest.raises(KeyError):
        by_slug("no-such-check")


SIZE = 25_000
FAILED = StepStatus.ERROR


def alternating():
    """Model and tool calls in turns, of one agent."""
    steps = []
    for n in range(SIZE // 2):
        steps.append(call(2 * n, 1 + n * 7919 % 977))
        steps.append(tool(2 * n + 1, f"tool {n * 31 % 23}", invocation=0))
    return trace_of(*steps)


def failing_tools():
    """One tool that fails again and again, with the same arguments and answer."""
    body = Body(input={"id": 7}, output={"error": "busy"})
    steps = [tool(n, "send_email", status=FAILED, body=body) for n in range(SIZE)]
    return trace_of(*steps, agents=())


def failing_now_and_then():
    steps = [
        tool(n, "get", status=FAILED if n * 7919 % 5 else StepStatus.OK, invocation=0)
        for n in range(SIZE)
    ]
    return trace_of(*steps)


def retried_models():
    """Every model call fails and is tried again."""
    return trace_of(*[call(n, None, step={"status": FAILED}) for n in range(SIZE)])


def overlapping():
    """All calls at the same time."""
    return trace_of(*[call(n, 9, start=0, end=SIZE) for n in range(SIZE)])


def many_agents():
    """An agent invocation for every five steps."""
    steps = [call(n, 9, step={"invocation": n // 5}) for n in range(SIZE)]
    return trace_of(*steps, agents=("a", "b") * (SIZE // 10))


def nested():
    """Every step lies in the one before."""
    return trace_of(
        *[tool(n, f"t{n % 3}", parent=n - 1 if n else None) for n in range(SIZE)],
        agents=(),
    )


KINDS = (
    alternating,
    failing_tools,
    failing_now_and_then,
    retried_models,
    overlapping,
    many_agents,
    nested,
)


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_all_checks_over_a_trace_of_25_000_steps_take_seconds_not_minutes(make):
    trace = make()
    started = time.process_time()
    for check in CHECKS:
        assert list(check.run(trace))
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
        (0.9996, "more than 99.9 %"),
        (1 - 1e-12, "more than 99.9 %"),
        (0.9994, "99.9 %"),
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
