"""Drawings of forks: whole, in reach, in words too, and without a colour."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.branching import branching_of
from apps.figures.forks import LABELS, ROW, fork_drawing
from tests.benchmarks.planted_forks import path_of, planted

PATH = re.compile(r"[MHCQ]|-?\d+")
words = st.lists(st.sampled_from("abcdef"), max_size=9)


def drawn(*texts, passed=()):
    results = list(passed) + [None] * (len(texts) - len(passed))
    return fork_drawing(
        branching_of(
            [
                path_of(f"t{at}", text.split(), passed=result)
                for at, (text, result) in enumerate(zip(texts, results, strict=True))
            ]
        )
    )


def lanes_of(drawing):
    return [line for line in drawing.lines if line.classes.startswith("fork-lane")]


def test_a_fork_is_a_trunk_two_lanes_and_a_numbered_mark():
    drawing = drawn("a b x y", "a b x y", "a b p", passed=(True, True, False))
    trunk, *branches = lanes_of(drawing)
    assert trunk.classes == "fork-lane is-wide-3 is-mixed"
    assert trunk.title == "3 trials, 2 of 3 passed"
    assert sorted(line.classes for line in branches) == [
        "fork-lane is-wide-1 is-failed",
        "fork-lane is-wide-2 is-passed",
    ]
    (mark,) = drawing.marks
    assert (mark.number, "is-first-decisive" in mark.classes) == (1, True)
    assert mark.title.startswith("Fork 1. All 2 that went “x” passed")
    assert trunk.d.endswith(f"H{mark.x}")
    assert all(line.d.startswith(f"M{mark.x} {mark.y}C") for line in branches)


def test_every_trial_has_a_row_with_its_outcome_and_count():
    drawing = drawn("a b", "a c", "a b d", passed=(True, False))
    assert [label.text for label in drawing.lanes] == [
        "t0: passed, 2 points",
        "t1: failed, 2 points",
        "t2: outcome unknown, 3 points",
    ]
    rows = [label.y for label in drawing.lanes]
    assert len(set(rows)) == 3
    assert max(rows) - min(rows) == 2 * ROW
    classes = [label.classes.split()[-1] for label in drawing.lanes]
    assert classes == ["is-passed", "is-failed", "is-unknown"]


def test_each_step_is_a_dot_that_knows_where_it_can_be_opened():
    drawing = drawn("a b x", "a b y")
    assert len(drawing.dots) == 4
    shared = [dot for dot in drawing.dots if dot.title.startswith("b ")]
    assert [(dot.title, dot.trial_id, dot.step) for dot in shared] == [
        ("b (2 trials)", "t0", 1)
    ]
    assert {dot.step for dot in drawing.dots if dot.trial_id == "t1"} == {2}


def test_detours_and_differences_are_loops_beside_the_lane():
    drawing = drawn("a b c", "a b c", "a x b c")
    (loop,) = [line for line in drawing.lines if "fork-loop" in line.classes]
    assert (loop.classes, loop.title) == ("fork-loop is-detour", "1 trial: x")
    (trunk,) = lanes_of(drawing)
    y = int(PATH.findall(trunk.d)[2])
    assert [dot.y != y for dot in drawing.dots] == [
        dot.title.startswith("x") for dot in drawing.dots
    ]
    other = drawn("a x c d", "a y c d")
    loops = [line.classes for line in other.lines if "fork-loop" in line.classes]
    assert loops == ["fork-loop is-difference"] * 2


def test_long_equal_stretches_are_folded_and_counted():
    common = " ".join(f"s{at}" for at in range(40))
    drawing = drawn(f"{common} x", f"{common} y")
    (fold,) = drawing.folds
    # The first and the last of a stretch stay, and the step at which the trials part.
    assert fold.text == f"… {fold.columns} equal steps"
    assert fold.columns == 37
    assert len(drawing.dots) == 42 - 37
    assert drawing.width < 500
    texts = [row.text for row in drawing.rows]
    assert texts[0] == "All 2 trials are equal for 40 steps."


def test_the_table_says_what_the_drawing_shows():
    rows = drawn("a b x", "a b x", "a k b y", passed=(True, True, False)).rows
    assert [(row.kind, row.number, row.where) for row in rows] == [
        ("equal", None, "place 1"),
        ("detour", None, "after place 1"),
        ("equal", None, "place 3"),
        ("parted", 1, "after place 3"),
        ("equal", None, "place 4"),
        ("equal", None, "place 4"),
    ]
    fork = rows[3]
    assert fork.is_decisive
    assert fork.text.startswith(
        "Fork 1: trials part and do not come back together. All"
    )
    assert [(b.label, b.trials, b.outcome) for b in fork.branches] == [
        ("x", "t0, t1", "2 of 2 passed"),
        ("y", "t2", "0 of 1 passed"),
    ]
    assert fork.branches[0].interval == "34.2 % to 100 %"
    assert rows[4].text == "t0, t1 are equal for 1 step."
    assert rows[5].text == "t2 goes 1 step alone."


def test_many_trials_are_named_up_to_twenty_and_counted_beyond():
    rows = drawn(*["a x"] * 24, "a y").rows
    (fork,) = [row for row in rows if row.number]
    assert fork.branches[0].trials.endswith(" and 4 more")
    assert fork.branches[0].count == 24
    assert fork.branches[0].outcome == "outcome unknown"
    assert fork.branches[0].interval == ""


def test_no_trials_and_no_decisions_are_drawn_as_nothing():
    nothing = fork_drawing(branching_of([]))
    assert (nothing.label, nothing.lines, nothing.rows) == ("No trial to draw.", (), ())
    empty = drawn("", "")
    assert [label.text for label in empty.lanes] == [
        "t0: outcome unknown, 0 points",
        "t1: outcome unknown, 0 points",
    ]
    assert empty.dots == ()


def check(drawing):
    """Everything lies on the sheet, is made of whole numbers and holds no colour."""
    for line in drawing.lines:
        assert "".join(PATH.findall(line.d)) == line.d.replace(" ", "")
        assert re.fullmatch(r"[a-z0-9 -]+", line.classes)
    spots = [*drawing.dots, *drawing.marks, *drawing.lanes]
    assert all(0 <= spot.x <= drawing.width for spot in spots)
    assert all(0 <= spot.y <= drawing.height for spot in spots)
    assert all(fold.x < fold.end <= drawing.width - LABELS for fold in drawing.folds)
    assert len({label.y for label in drawing.lanes}) == len(drawing.lanes)
    assert [mark.number for mark in drawing.marks] == list(
        range(1, len(drawing.marks) + 1)
    )
    numbered = [row.number for row in drawing.rows if row.number]
    assert sorted(numbered) == [mark.number for mark in drawing.marks]


@given(st.lists(words, max_size=6), st.data())
@settings(max_examples=100, deadline=None)
def test_any_trials_are_drawn_within_the_sheet(trials, data):
    passed = data.draw(
        st.lists(st.sampled_from([True, False, None]), min_size=6, max_size=6)
    )
    found = branching_of(
        [path_of(f"t{at}", names, passed=passed[at]) for at, names in enumerate(trials)]
    )
    drawing = fork_drawing(found)
    check(drawing)
    assert drawing == fork_drawing(found)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_twenty_trials_of_two_hundred_steps_stay_usable(noise):
    trials = []
    for at in range(20):
        tail = [f"{'xy'[at % 2]}{n}" for n in range(60)]
        names = [f"s{n}" for n in range(140)] + tail
        if noise and at % 5 == 0:
            for place in range(10, 190, 20):
                names.insert(place + at, "look again")
        trials.append(path_of(f"t{at:02}", names, passed=at % 2 == 0))
    found = branching_of(trials)
    begin = time.process_time()
    drawing = fork_drawing(found)
    assert time.process_time() - begin < 0.5
    check(drawing)
    assert drawing.folds
    assert len(drawing.rows) < 120
    if not noise:
        assert drawing.width < 700
        assert len(drawing.dots) < 20


def test_planted_trials_of_all_shapes_are_drawn():
    for seed in range(15):
        check(fork_drawing(branching_of(planted(seed, noise=0.1).trials)))


def test_forks_and_differences_are_numbered_by_column_in_drawing_and_table():
    drawing = drawn("a x b c p", "a y b c q", "a x b c p", passed=(True, False, True))
    assert [(mark.number, mark.classes.split()[1]) for mark in drawing.marks] == [
        (1, "is-difference"),
        (2, "is-parted"),
    ]
    assert [row.number for row in drawing.rows if row.branches] == [1, 2]


def test_no_two_marks_lie_on_each_other():
    drawing = drawn("x a", "y a", "z a", "x b c", "x b d")
    places = [(mark.x, mark.y) for mark in drawing.marks]
    assert len(set(places)) == len(places)


def test_of_many_trials_those_that_are_alike_share_a_row():
    texts = ["a x"] * 40 + ["a y"] * 30
    passed = [True] * 20 + [False] * 20 + [True] * 30
    drawing = drawn(*texts, passed=passed)
    assert [len(lane.trial_ids) for lane in drawing.lanes] == [20, 20, 30]
    assert drawing.lanes[0].text == "t0 and 19 more: passed, 2 points"
    assert drawing.height < 5 * ROW
    assert lanes_of(drawing)[0].title == "70 trials, 50 of 70 passed"
    few = drawn(*texts[:20], *texts[-20:])
    assert len(few.lanes) == 40


def test_in_long_drawings_detours_are_folded_and_counted():
    trunk = [f"s{at}" for at in range(100)]
    again = [*trunk[:50], "again", *trunk[50:]]
    drawing = drawn(" ".join(trunk), " ".join(again), " ".join(trunk[:90]))
    words = [fold.text for fold in drawing.folds]
    assert "steps, 1 detour" in words[0]
    assert drawing.width < 900
    assert not [line for line in drawing.lines if "fork-loop" in line.classes]
