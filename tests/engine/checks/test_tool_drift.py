"""Tool drift: every published example, the real file, both directions."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.tool_drift import ToolDrift
from apps.engine.trace import ModelCall, Step, StepKind, ToolCall
from tests.engine.traces import tool, tools_trace, trace_of


def answers(trace, **parameters):
    return list(ToolDrift(**parameters).run(trace))


def answer(*names, **parameters):
    (screening,) = answers(tools_trace(*names), **parameters)
    return screening


HARD = (
    "find_user_id_by_name_zip",
    "list_all_product_types",
    "get_product_details",
    "get_user_details",
    *["get_order_details"] * 4,
)
MID = ("find", "get_user", *["get_order"] * 5, "exchange")
STABLE = (
    *("find", "get_user", "get_order", "get_order"),
    *("product", "think", "exchange", "think"),
)


def test_four_tools_then_one_is_a_hard_collapse_of_log_4():
    found = answer(*HARD)
    assert found.answer is Answer.SIGNAL
    assert found.reason_code == "hard_collapse"
    assert found.evidence.effect == pytest.approx(1.386, abs=5e-4)
    assert found.evidence.last == 0
    assert found.evidence.facts["hard"] is True
    assert found.evidence.facts["delta_of_log_window"] == pytest.approx(1)


def test_a_narrower_mix_of_0_477_is_a_collapse_and_not_a_hard_one():
    found = answer(*MID)
    assert found.answer is Answer.SIGNAL
    assert found.reason_code == "collapse"
    assert found.evidence.effect == pytest.approx(0.477, abs=5e-4)
    assert found.evidence.facts["hard"] is False


def test_an_even_mix_is_quiet_with_a_difference_of_zero():
    found = answer(*STABLE)
    assert (found.answer, found.reason_code) == (Answer.QUIET, "no_collapse")
    assert found.evidence.effect == pytest.approx(0, abs=1e-12)
    assert found.evidence.facts["direction"] == "unchanged"


def test_the_mirror_event_is_a_fact_with_its_own_chance_and_never_a_signal():
    found = answer(*reversed(HARD))
    mirrored = answer(*HARD)
    assert (found.answer, found.reason_code) == (Answer.QUIET, "broadened")
    assert found.level is Level.TELEMETRY
    assert found.evidence.chance.value == mirrored.evidence.chance.value
    assert found.evidence.facts["direction"] == "widened"
    assert found.evidence.series is not None


def test_a_collapse_that_shuffling_gives_often_is_telemetry():
    found = answer("a", "b", "c", "d", "d", "d", "e", "d", "d", "e")
    assert found.answer is Answer.SIGNAL
    assert found.level is Level.TELEMETRY
    assert found.evidence.chance.value > 0.05
    assert "not queued" in found.reason


def test_a_collapse_that_shuffling_rarely_gives_is_queued_with_an_exact_fraction():
    found = answer(*HARD)
    chance = found.evidence.chance
    assert Fraction(chance.numerator, chance.denominator) == Fraction(1, 70)
    assert found.level is Level.REVIEW_SIGNAL
    assert chance.floor == chance.value


def test_the_stricter_null_keeps_the_transitions_and_says_how_it_was_computed():
    kept = answer(*HARD).evidence.facts["transitions_kept"]
    assert (kept["p"], kept["orders"], kept["floor"]) == (1, 1, 1)
    assert kept["method"].startswith("exact")
    many = ("abcd" * 15) + "dddd"
    sampled = answer(*many).evidence.facts["transitions_kept"]
    assert sampled["standard_error"] > 0
    assert "seeded" in sampled["method"]
    assert sampled == answer(*many).evidence.facts["transitions_kept"]


def test_the_evidence_shows_the_windows_and_the_values_that_delta_can_take():
    evidence = answer(*HARD).evidence
    assert evidence.facts["early_window"] == list(HARD[:4])
    assert evidence.facts["late_window"] == ["get_order_details"] * 4
    assert evidence.facts["possible_sizes_of_delta"][1:3] == [0.1308, 0.3466]
    series = evidence.series
    assert len(series.values) == len(series.labels) == len(series.steps) == 5
    assert (series.values[0], series.values[-1]) == (evidence.first, evidence.last)
    assert series.threshold == pytest.approx(evidence.first - 0.3)
    assert evidence.length == 8
    assert len(evidence.not_modelled) == 3


def test_seven_calls_are_too_few():
    found = answer(*HARD[:7])
    assert found.answer is Answer.NOT_APPLICABLE
    assert found.headline == "7 tool calls, needs 8"


def test_a_trace_without_tools_says_so():
    (found,) = answers(trace_of())
    assert found.reason_code == "no_tool_calls"


def test_each_agent_invocation_is_judged_by_its_own_tools():
    steps = [
        tool(seq, name, invocation=seq % 2)
        for seq, name in enumerate(
            n for pair in zip(HARD, STABLE, strict=True) for n in pair
        )
    ]
    found = answers(trace_of(*steps, agents=("one", "two")))
    assert [(one.evidence.agent, one.answer) for one in found] == [
        ("one", Answer.SIGNAL),
        ("two", Answer.QUIET),
    ]


def test_the_smallest_step_of_the_lattice_above_the_bound_is_not_lost_to_rounding():
    # 2-1-1 against 2-2 is log 4 - 1/2 log 2 - log 2 = 0.3466, one step above 0.3.
    found = answer("a", "a", "b", "c", "d", "d", "e", "e")
    assert found.answer is Answer.SIGNAL
    assert found.evidence.effect == pytest.approx(0.3466, abs=5e-5)


def test_a_bound_on_a_lattice_value_includes_it():
    delta = answer(*MID).evidence.effect
    assert answer(*MID, collapse_at=delta).answer is Answer.SIGNAL


@pytest.mark.parametrize(
    "parameters",
    [
        {"window": 1},
        {"window": 7},
        {"collapse_at": 0},
        {"collapse_at": 0.6},
        {"hard_at": 1.5},
        {"max_chance": 0},
    ],
)
def test_parameters_outside_their_range_are_refused(parameters):
    with pytest.raises(ValueError, match="must"):
        ToolDrift(**parameters)


def tau_trace(record):
    steps = []
    for message in record["traj"]:
        if message["role"] != "assistant":
            continue
        kind = StepKind.MODEL_CALL
        steps.append(Step(seq=len(steps), kind=kind, call=ModelCall()))
        for asked in message.get("tool_calls") or []:
            name = ToolCall(name=asked["function"]["name"])
            steps.append(Step(seq=len(steps), kind=StepKind.TOOL_CALL, call=name))
    return trace_of(*steps, agents=())


@pytest.fixture(scope="module")
def airline(shared_data):
    path = shared_data / "tau_bench_results" / "gpt-4o-airline.json"
    if not path.exists():
        pytest.skip("The tau-bench file lies outside of the repository and is absent.")
    records = json.loads(path.read_text("utf-8"))
    return [found for record in records for found in answers(tau_trace(record))]


def test_the_airline_file_has_61_scorable_22_collapsed_10_hard_12_broadened(airline):
    scorable = [one for one in airline if one.answer is not Answer.NOT_APPLICABLE]
    signals = [one for one in airline if one.answer is Answer.SIGNAL]
    assert (len(airline), len(scorable), len(signals)) == (200, 61, 22)
    assert sum(one.evidence.facts["hard"] for one in signals) == 10
    assert sum(one.reason_code == "broadened" for one in airline) == 12


def test_shuffling_gives_the_airline_file_31_6_percent_collapses_by_chance(airline):
    scorable = [one for one in airline if one.answer is not Answer.NOT_APPLICABLE]
    expected = sum(one.evidence.chance_of_signal for one in scorable) / len(scorable)
    assert expected == pytest.approx(0.316, abs=0.001)


def test_four_of_the_22_collapses_are_queued(airline):
    # Counted exactly. The next smallest chance is 43/735 = 5.9 %, near enough to 5 %
    # for a simulation with few draws to count a fifth.
    queued = [one for one in airline if one.level is Level.REVIEW_SIGNAL]
    chances = sorted(one.evidence.chance.value for one in queued)
    assert chances == pytest.approx([1 / 126, 1 / 66, 0.021333, 1 / 35], abs=1e-6)


def test_no_collapse_of_the_airline_file_is_rare_once_its_transitions_are_kept(airline):
    signals = [one for one in airline if one.answer is Answer.SIGNAL]
    kept = [one.evidence.facts["transitions_kept"] for one in signals]
    assert min(entry["p"] for entry in kept) > 0.1


@pytest.mark.parametrize(
    ("window", "counts", "collapse_at"),
    [
        (2, (2, 3), 0.3),
        (2, (1, 1, 2), 0.6931),
        (3, (3, 3, 1), 0.3),
        (4, (4, 5), 0.01),
        (4, (3, 3, 2), 0.1308),
        (5, (5, 5), 0.3),
        (5, (2, 8), 0.5),
        (6, (6, 6), 0.01),
        (6, (9, 3), 0.3),
    ],
)
def test_the_chance_of_a_signal_is_the_share_of_orders_at_which_it_fires(
    window, counts, collapse_at
):
    names = "".join(name * count for name, count in zip("abc", counts, strict=False))
    # Orders that only swap calls of one tool look the same, as often for each.
    orders = orders_of(names)
    bounds = {"collapse_at": collapse_at, "hard_at": max(collapse_at, 0.5)}
    found = [answer(*order, window=window, **bounds) for order in orders]
    fired = sum(one.answer is Answer.SIGNAL for one in found) / len(found)
    [said] = {one.evidence.chance_of_signal for one in found}
    assert said == pytest.approx(fired)


def orders_of(names: str) -> list[str]:
    """Every distinct order of the letters."""
    if not names:
        return [""]
    return [
        first + rest
        for first in sorted(set(names))
        for rest in orders_of(names.replace(first, "", 1))
    ]


def test_a_bound_below_rounding_errors_is_refused_so_that_no_drop_is_no_collapse():
    for bound in (1e-300, 1e-9, 0.009):
        with pytest.raises(ValueError, match="must be"):
            ToolDrift(collapse_at=bound)
    found = answer(*STABLE, collapse_at=0.01)
    assert (found.answer, found.reason_code) == (Answer.QUIET, "no_collapse")


def test_bounds_out_of_reach_of_the_window_are_refused_with_the_most_it_allows():
    with pytest.raises(ValueError, match=r"at most 0\.6931 nats, .* of 2 calls\.$"):
        ToolDrift(window=2, hard_at=0.7)
