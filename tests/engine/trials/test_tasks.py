"""The score of a task from those of its trials: agreement, forks, verdicts, masking."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from apps.engine.agent_contracts import compiled, decoded_agent_contract
from apps.engine.trials import (
    AgentAsked,
    Asked,
    Trial,
    branching_of_trials,
    score_task,
    score_trace,
)
from tests.desks import FAIL, PASS, UNKNOWN, desk_trace
from tests.engine.random_traces import traces


def trials_of(*made, wanted: Asked | None = None, findings=()) -> list[Trial]:
    return [
        Trial(
            id=f"t{number:02}",
            label=f"trial {number}",
            score=score_trace(trace, wanted, findings),
        )
        for number, trace in enumerate(made)
    ]


def run(*acts, outcome=PASS, **fields):
    """`router` gives a route, then whoever else acts."""
    return desk_trace(*acts, outcome=outcome, **fields)


def routed(route="a", **fields):
    return run(("router", [("says", {"route": route})]), **fields)


def crashed(**fields):
    return run(("router", [("breaks", "timeout")]), **fields)


def says(pattern: str, agent: str = "router") -> Asked:
    spec = {"name": "n", "kind": "regex", "pattern": pattern}
    contract = compiled(decoded_agent_contract(spec))
    return Asked(agents={agent: AgentAsked(contracts=(contract,))})


def scored(*made, wanted: Asked | None = None, findings=()):
    return score_task(trials_of(*made, wanted=wanted, findings=findings))


def of(task, agent: str = "router"):
    return next(one for one in task.agents if one.agent == agent)


def test_equal_decisions_alone_make_no_agent_green():
    task = scored(*[routed()] * 6)
    router = of(task)
    assert router.consistency == "stable"
    assert router.colour == "unknown"
    assert not router.is_masked


def test_a_contract_that_held_in_a_stable_task_makes_green_and_one_that_broke_red():
    assert of(scored(*[routed()] * 6, wanted=says("a"))).colour == "green"
    task = scored(*[routed()] * 5, routed("z"), wanted=says("a"))
    assert (of(task).held, of(task).broken) == (5, 1)
    assert of(task).colour == "red"


def test_an_agent_whose_trials_do_not_agree_is_unstable_though_its_contract_held():
    task = scored(*[routed(r) for r in "aabb"], wanted=says("a|b"))
    assert of(task).consistency == "non_deterministic"
    assert of(task).colour == "unstable"
    assert of(task).is_masked
    assert task.masked == 1


def test_four_of_five_crashed_runs_leave_an_agent_red_and_never_stable():
    task = scored(routed(), *[crashed()] * 4, wanted=says("a"))
    router = of(task)
    assert (router.trials, router.decided, router.failed) == (5, 1, 4)
    assert router.consistency == "insufficient"
    assert (router.held, router.broken, router.colour) == (1, 4, "red")


def test_four_of_five_crashed_runs_without_a_contract_are_unknown():
    router = of(scored(routed(), *[crashed()] * 4))
    assert (router.consistency, router.colour) == ("insufficient", "unknown")


def test_one_trial_is_insufficient():
    task = scored(routed(), wanted=says("a"))
    assert (task.consistency, of(task).consistency) == ("insufficient",) * 2
    assert of(task).colour == "green"
    assert any("too few" in gap for gap in of(task).detail["gaps"])


def test_agreement_is_counted_over_all_trials_with_the_interval_of_statsmodels():
    task = scored(*[routed()] * 6, routed("b"), crashed())
    agreement = of(task).detail["consistency"]["agreement"]
    low, high = proportion_confint(6, 8, method="wilson")
    assert (agreement["k"], agreement["n"]) == (6, 8)
    assert agreement["low"] == pytest.approx(low)
    assert agreement["high"] == pytest.approx(high)
    assert of(task).majority == 6
    assert of(task).detail["consistency"]["outliers"] == ["t06", "t07"]


def test_the_outcome_of_a_task_counts_only_what_is_known():
    task = scored(routed(), routed(outcome=FAIL), routed(outcome=UNKNOWN))
    assert (task.passed, task.failed, task.trials) == (1, 1, 3)
    assert task.outcome == "mixed"
    assert scored(routed(), routed(outcome=UNKNOWN)).outcome == "green"
    assert scored(routed(outcome=UNKNOWN)).outcome == "unknown"


def test_equal_decisions_that_all_failed_are_stable_but_wrong():
    task = scored(*[routed(outcome=FAIL)] * 5)
    assert task.is_stable_but_wrong
    assert of(task).is_stable_but_wrong
    assert of(task).detail["consistency"]["label"] == "stable but wrong"
    assert not scored(*[routed(outcome=FAIL)] * 4, routed()).is_stable_but_wrong


def test_a_failed_task_of_green_agents_is_a_gap():
    failed = [routed(outcome=FAIL)] * 4
    assert scored(*failed, wanted=says("a")).is_gap
    assert not scored(*failed).is_gap
    assert not scored(*failed, wanted=says("z")).is_gap


def test_a_red_agent_in_one_trial_that_passed_is_masked_in_a_mixed_task():
    task = scored(routed("z"), routed("a", outcome=FAIL), wanted=says("a"))
    assert task.outcome == "mixed"
    assert of(task).is_masked
    hidden = scored(routed("a"), routed("z", outcome=FAIL), wanted=says("a"))
    assert of(hidden).colour == "red"
    assert not of(hidden).is_masked


def test_an_agent_that_acts_in_some_trials_is_counted_over_those():
    helped = run(
        ("router", [("says", {"route": "a"})]), ("billing", [("says", {"action": "b"})])
    )
    task = scored(helped, routed(), helped, routed(), routed())
    billing = of(task, "billing")
    assert (billing.trials, of(task).trials, task.trials) == (2, 5, 5)
    assert billing.detail["consistency"]["n"] == 2
    assert (
        "It acted in 2 of 5 trials; the counts are over these."
        in (billing.detail["reasons"])
    )
    assert not any("acted in" in one for one in of(task).detail["reasons"])


def test_trials_of_an_agent_under_other_names_are_trials_of_one():
    wanted = Asked(names={"dispatcher": "router"})
    made = [routed(), run(("Dispatcher", [("says", {"route": "a"})]))]
    task = scored(*made, wanted=wanted)
    assert [one.agent for one in task.agents] == ["router"]
    assert of(task).trials == 2


def test_inputs_that_differ_are_said():
    made = [routed(r, asked=f"Refund order {r} please") for r in "abab"]
    router = of(scored(*made))
    assert router.distinct_inputs == 2
    assert any("upstream" in one for one in router.detail["consistency"]["reasons"])


def test_regimes_of_temperature_are_scored_apart():
    cool = [routed(r, temperature=0.0) for r in "aab"]
    warm = [routed("a", temperature=0.7) for _ in range(4)]
    task = scored(*cool, *warm)
    assert [one["regime"] for one in of(task).detail["regimes"]] == [
        "zero",
        "above_zero",
    ]
    assert of(task).detail["regimes"][1]["verdict"] == "stable"
    assert of(task).consistency == "non_deterministic"


def test_a_finding_in_one_trial_makes_the_agent_red_for_the_task():
    made = trials_of(*[routed()] * 3, wanted=says("a"))
    found = trials_of(routed(), wanted=says("a"), findings=["router"])
    one = msgspec.structs.replace(found[0], id="t99")
    task = score_task([*made, one])
    assert of(task).colour == "red"
    assert of(task).detail["colours"]["t99"] == "red"
    assert of(task).detail["colours"]["t00"] == "green"


def test_trials_that_part_have_a_fork_with_the_step_of_its_decision():
    made = [
        run(
            ("router", [("calls", (tool, {"id": 7}, "ok")), ("says", {"route": "a"})]),
            outcome=outcome,
        )
        for tool, outcome in (("refund", PASS), ("cancel", FAIL)) * 2
    ]
    task = scored(*made)
    assert task.fork_count >= 1
    assert task.first_fork == 2
    fork = task.detail["branching"]["forks"][0]
    assert {one["decision"].split("(")[0] for one in fork["branches"]} == {
        "refund",
        "cancel",
    }
    assert sorted((one["passed"], one["known"]) for one in fork["branches"]) == [
        (0, 2),
        (2, 2),
    ]


def test_four_trials_that_part_by_outcome_are_said_to_be_few():
    made = [
        run(("router", [("calls", (tool, {"id": 7}, "ok"))]), outcome=outcome)
        for tool, outcome in (("refund", PASS), ("cancel", FAIL)) * 2
    ]
    task = scored(*made)
    # Of the 6 ways in which 2 of 4 can pass, 2 divide them like this.
    assert task.detail["branching"]["forks"][0]["p"] == pytest.approx(1 / 3)
    assert "with so few trials chance alone can do that" in task.decisive


def test_a_trial_that_is_given_twice_is_refused():
    (one,) = trials_of(routed())
    with pytest.raises(ValueError, match="given twice"):
        score_task([one, one])
    with pytest.raises(ValueError, match="no trials"):
        score_task([])


def test_trials_without_decision_points_are_scored_all_the_same():
    (one,) = trials_of(routed())
    without = msgspec.structs.replace(
        one, id="x", score=msgspec.structs.replace(one.score, points=b"")
    )
    assert score_task([one, without]).trials == 2
    assert branching_of_trials([without]).forks == ()


@given(
    made=st.lists(traces(12), min_size=1, max_size=5),
    seed=st.integers(0, 99),
    outcomes=st.lists(st.sampled_from([PASS, FAIL, UNKNOWN]), min_size=5, max_size=5),
)
@settings(max_examples=40, deadline=None)
def test_any_trials_in_any_order_have_one_score(made, seed, outcomes):
    ended = [
        msgspec.structs.replace(trace, outcome=outcome)
        for trace, outcome in zip(made, outcomes, strict=False)
    ]
    trials = trials_of(*ended, wanted=says("7", agent="a"))
    task = score_task(trials)
    random.Random(seed).shuffle(trials)
    assert score_task(trials) == task
    assert msgspec.json.decode(msgspec.json.encode(task.detail)) == task.detail
    assert task.passed + task.failed <= task.trials == len(made)
    for one in task.agents:
        assert one.decided + one.missing + one.failed <= one.trials <= task.trials
        assert (one.colour == "green") <= (one.held > 0 and one.broken == 0)
        assert one.is_masked <= (one.colour in {"red", "unstable"} and task.passed > 0)
