"""Where trials part: small cases that can be checked by hand."""

from __future__ import annotations

import time

import msgspec
import pytest

from apps.engine.branching import (
    MOST_PATHS,
    MOST_POINTS,
    ForkKind,
    branching_of,
)
from apps.engine.branching.parting import parted_after
from apps.engine.nulls.association import fisher_exact
from apps.engine.nulls.intervals import wilson
from tests.benchmarks.planted_forks import path_of, point_of


def together(*words, passed=()):
    """Trials t0, t1, ... whose decisions are the words of each text."""
    results = list(passed) + [None] * (len(words) - len(passed))
    return branching_of(
        [
            path_of(f"t{at}", text.split(), passed=result)
            for at, (text, result) in enumerate(zip(words, results, strict=True))
        ]
    )


def ways(fork):
    return {branch.label: branch.trial_ids for branch in fork.branches}


def codes(found):
    return {one.code for one in found.statements}


def columns(found, lane):
    return [found.nodes[node].column for node in found.lanes[lane].nodes]


def test_trials_that_decided_the_same_have_no_fork():
    found = together("a b c", "a b c", "a b c")
    assert found.forks == found.differences == found.detours == ()
    assert found.statements == ()
    assert (found.columns, len(found.nodes), len(found.tracks)) == (3, 3, 1)
    assert found.first_fork is found.decisive_fork is None


def test_a_fork_names_its_branches_and_the_step_of_each_trial():
    found = together("a b x y", "a b x y", "a b p q r", passed=(True, True, False))
    (fork,) = found.forks
    assert (fork.kind, fork.after, fork.column) == (ForkKind.PARTED, 1, 2)
    assert ways(fork) == {"x": ("t0", "t1"), "p": ("t2",)}
    assert fork.step_of == {"t0": 2, "t1": 2, "t2": 2}
    first, second = fork.branches
    assert (first.n, first.passed, first.known) == (2, 2, 2)
    assert first.interval == wilson(2, 2)
    assert second.interval == wilson(0, 1)
    assert columns(found, 0) == columns(found, 2)[:4] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "noisy",
    ["a a b c d", "a b b b c d", "a x b c d", "a b x y z c d", "x a b c d"],
)
def test_a_retry_or_an_extra_lookup_is_a_detour_and_no_fork(noisy):
    found = together("a b c d", "a b c d", noisy)
    assert found.forks == found.differences == ()
    (detour,) = found.detours
    assert {"straight on"} < set(ways(detour))
    assert len(found.lanes[2].nodes) == len(noisy.split())


def test_a_fork_after_a_detour_is_still_found_where_it_is():
    found = together("a b c d e f", "a x y b c d e f", "a b c p q r", "a b b c p q r")
    (fork,) = found.forks
    assert ways(fork) == {"d": ("t0", "t1"), "p": ("t2", "t3")}
    assert fork.step_of == {"t0": 3, "t1": 5, "t2": 3, "t3": 4}
    (detour,) = found.detours
    assert ways(detour) == {"straight on": ("t0", "t2"), "x": ("t1",), "b": ("t3",)}


def test_another_choice_that_comes_back_is_a_difference():
    found = together("a x c d", "a x c d", "a y c d", passed=(True, True, False))
    assert found.forks == found.detours == ()
    (difference,) = found.differences
    assert ways(difference) == {"x": ("t0", "t1"), "y": ("t2",)}
    assert (difference.after, difference.column) == (0, 1)
    assert found.decisive_fork is difference


def test_a_decisive_difference_in_what_was_written_comes_before_one_in_lookups():
    found = together(
        "a get_x c cancel_order d e",
        "a get_y c refund_order d e",
        passed=(True, False),
    )
    assert len(found.differences) == 2
    assert set(ways(found.decisive_fork)) == {"cancel_order", "refund_order"}
    assert found.decisive_fork.branches[0].writes == ("cancel_order",)


def test_steps_that_two_branches_share_by_chance_do_not_bring_them_together():
    one = "a b c1 c2 c3 c4 c5 same c6 c7 c8 c9"
    other = "a b d1 d2 d3 d4 d5 same d6 d7 d8 d9"
    (fork,) = together(one, other).forks
    assert fork.after == 1
    three = together(one.replace("same", "s t u"), other.replace("same", "s t u"))
    assert ways(three.forks[0]) == {"c6": ("t0",), "d6": ("t1",)}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([1, 2], [1, 2, 3], 2),
        ([1, 2, 3], [4, 5, 6], -1),
        ([], [1], -1),
        ([1, 3], [1, 2, 3], None),
        ([1, 2, 3, 4, 9], [1, 9], None),
        ([1, 2, 3, 4, 5, 9], [1, 9], None),
        ([1, 2, 3, 4, 5, 6, 9], [1, 9], 1),
        ([1, 2, 3, 4, 5, 6, 9, 10], [1, 9, 10], None),
        ([0, *range(10, 90), 97, 98], [0, 97, 98], 0),
        ([0, *range(10, 90), 97, 98, 99], [0, 97, 98, 99], None),
    ],
)
def test_one_shared_step_makes_up_for_four_and_three_for_any_number(
    one, other, expected
):
    assert parted_after(one, other) == parted_after(other, one) == expected


def test_a_trial_that_ends_while_others_go_on_is_a_branch():
    found = together("a b", "a b c d", "a b c d", passed=(True, False, False))
    (fork,) = found.forks
    assert fork.kind is ForkKind.ENDED
    assert ways(fork) == {"c": ("t1", "t2"), "ended here": ("t0",)}
    assert fork.step_of["t0"] is None
    assert [branch.is_end for branch in fork.branches] == [False, True]
    assert "different_length" in codes(found)


def test_a_trial_without_a_decision_is_said_and_ends_at_the_start():
    found = together("", "a b", "a b")
    (fork,) = found.forks
    assert (fork.after, fork.kind) == (-1, ForkKind.ENDED)
    assert ways(fork) == {"a": ("t1", "t2"), "decided nothing": ("t0",)}
    assert codes(found) == {"no_points", "no_common_step", "different_length"}
    assert "1 of 3 trials made no decision" in found.statements[0].sentence


def test_no_common_step_is_said():
    found = together("a b", "c d", "e f")
    assert "no_common_step" in codes(found)
    (fork,) = found.forks
    assert (fork.after, len(fork.branches)) == (-1, 3)


def test_the_next_fork_lies_within_a_branch():
    found = together("a b c x1", "a b c y1", "a p q", "a p q")
    first, second = found.forks
    assert ways(first) == {"b": ("t0", "t1"), "p": ("t2", "t3")}
    assert ways(second) == {"x1": ("t0",), "y1": ("t1",)}
    assert [track.parent for track in found.tracks].count(0) == 2
    assert found.lanes[2].group == found.lanes[3].group != found.lanes[0].group


def test_branches_that_part_at_one_place_are_one_fork():
    (fork,) = together("a b x", "a b y", "a b z", "a b").forks
    assert sorted(ways(fork)) == ["ended here", "x", "y", "z"]


def test_all_of_one_branch_against_all_of_another_is_decisive_and_says_how_sure():
    found = together("a x", "a x", "a y", "a y", passed=(True, True, False, False))
    (fork,) = found.forks
    assert fork is found.decisive_fork
    assert fork.separates
    assert fork.p == pytest.approx(fisher_exact(2, 0, 0, 2))
    assert fork.sentence == (
        "All 2 that went “x” passed, all 2 that went “y” failed. Fisher's exact p is "
        "33.3 %: with so few trials chance alone can do that."
    )


def test_a_fork_is_decisive_by_its_p_where_branches_are_mixed():
    words = ["a x"] * 9 + ["a y"] * 9
    passed = [True] * 8 + [False] + [True] + [False] * 8
    (fork,) = together(*words, passed=passed).forks
    assert not fork.separates
    assert fork.is_decisive
    assert fork.p == pytest.approx(fisher_exact(8, 1, 1, 8))
    even = together(*words, passed=[True, False] * 9)
    assert not even.forks[0].is_decisive
    assert even.decisive_fork is None


def test_the_p_of_many_branches_is_corrected_for_their_number():
    words = ["a x"] * 6 + ["a y"] * 6 + ["a z"] * 6
    passed = [True] * 6 + [False] * 12
    (fork,) = together(*words, passed=passed).forks
    assert fork.p == pytest.approx(3 * fisher_exact(6, 0, 0, 12))


def test_outcomes_that_are_unknown_or_all_alike_decide_nothing():
    unknown = together("a x", "a y").forks[0]
    assert (unknown.p, unknown.is_decisive) == (None, False)
    assert unknown.sentence == "No outcome of these trials is known."
    assert unknown.branches[0].interval is None
    alike = together("a x", "a y", passed=(True, True)).forks[0]
    assert (alike.p, alike.is_decisive) == (None, False)
    some = together("a x", "a y", passed=(True,)).forks[0]
    assert "of the 1 that went “y” no outcome is known" in some.sentence


def test_same_decisions_with_other_outcomes_are_said():
    found = together("a b", "a b", "a b", passed=(True, False, True))
    (one,) = found.statements
    assert (one.code, one.trial_ids) == ("same_decisions", ("t0", "t1", "t2"))
    assert "3 trials never part, and 2 of 3 passed" in one.sentence


def test_branches_list_the_writing_calls_that_half_of_their_trials_make():
    found = together(
        "a get_x cancel_order",
        "a get_x cancel_order send_mail",
        "a get_x cancel_order",
        "a get_y update_order delete_user",
    )
    (first, second) = found.forks[0].branches
    assert first.writes == ("cancel_order",)
    assert second.writes == ("update_order", "delete_user")


def test_an_uncertain_order_and_calls_compared_by_name_are_said():
    sure = path_of("t0", ["a", "b"])
    points = (msgspec.structs.replace(point_of("a"), is_uncertain=True), point_of("b"))
    unsure = msgspec.structs.replace(
        path_of("t1", []), points=points, order_uncertain=True
    )
    said = {one.code: one for one in branching_of([sure, unsure]).statements}
    assert set(said) == {"order_uncertain", "compared_by_name"}
    assert said["order_uncertain"].trial_ids == ("t1",)
    assert "1 of 4 points" in said["compared_by_name"].sentence


def test_what_is_beyond_the_bounds_is_cut_and_said():
    long = [f"s{at}" for at in range(MOST_POINTS + 5)]
    found = branching_of([path_of("t0", long), path_of("t1", long[:10])])
    assert len(found.lanes[0].nodes) == MOST_POINTS
    assert "cut" in codes(found)
    many = [path_of(f"t{at:03}", ["a", f"b{at}"]) for at in range(MOST_PATHS + 3)]
    more = branching_of([*many, path_of("same", ["a", "b0"])])
    assert len(more.left_out) == 3
    assert "left_out" in codes(more)
    assert {"same", "t000"} <= {lane.trial_id for lane in more.lanes}


def test_no_trial_and_one_trial_have_nothing_to_compare():
    assert branching_of([]).lanes == ()
    one = together("a b c")
    assert (one.forks, one.columns) == ((), 3)


def test_two_trials_with_one_id_are_refused():
    with pytest.raises(ValueError, match="Two trials have the same id"):
        branching_of([path_of("t", ["a"]), path_of("t", ["b"])])


@pytest.mark.parametrize("words", [500, 20, 1])
def test_twenty_trials_of_two_hundred_steps_take_well_under_a_second(words):
    trials = [
        path_of(f"t{at}", [f"s{(n * (at % 4 + 1)) % words}" for n in range(200 - at)])
        for at in range(20)
    ]
    begin = time.process_time()
    assert len(branching_of(trials).lanes) == 20
    assert time.process_time() - begin < 1


def test_fifty_trials_of_a_thousand_steps_take_seconds():
    trials = [
        path_of(f"t{at}", [f"s{(n * (at + 7)) % 20}" for n in range(1_000 - at)])
        for at in range(50)
    ]
    begin = time.process_time()
    assert len(branching_of(trials).lanes) == 50
    assert time.process_time() - begin < 15


def test_a_merge_with_too_many_equal_pairs_weighs_all_the_same(monkeypatch):
    monkeypatch.setattr("apps.engine.branching.alignment.MOST_MATCHES", 3)
    found = together("a b a c a d", "a b a c a d d", "a b x a c a d")
    assert found.forks == ()
    assert len(found.detours) == 2


def test_the_label_of_a_branch_is_the_first_step_that_most_of_its_trials_share():
    tails = ["get_x p q r s", "p q r s", "get_y p q r s"]
    found = together("a b k l m n o", *[f"a b {tail}" for tail in tails])
    assert ways(found.forks[0]) == {"p": ("t1", "t2", "t3"), "k": ("t0",)}
    assert found.forks[0].step_of == {"t0": 2, "t1": 3, "t2": 2, "t3": 3}


def test_a_branch_without_a_step_that_most_share_says_that_it_varies():
    found = together("c a d d", "a b", "a", "d c", "c c b")
    first = found.forks[0]
    assert [(branch.n, branch.is_various) for branch in first.branches] == [
        (4, True),
        (1, False),
    ]
