"""What holds for any trials: no order, no copy and no extra step changes the forks."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.branching import branching_of
from tests.benchmarks.planted_forks import path_of

words = st.lists(st.sampled_from("abcdef"), max_size=10)
some_trials = st.lists(
    st.tuples(words, st.sampled_from([True, False, None])), min_size=1, max_size=7
)


def paths(trials):
    return [
        path_of(f"t{at}", names, passed=ok) for at, (names, ok) in enumerate(trials)
    ]


def named(found):
    """The forks by what they are, whatever their columns."""
    nodes = {node.column: node.key for node in found.nodes}
    return {
        (
            fork.kind,
            nodes.get(fork.after),
            frozenset(branch.trial_ids for branch in fork.branches),
        )
        for fork in found.forks
    }


@st.composite
def planted_plans(draw):
    """Trials of a trunk and branches, in which every step of a plan is another one."""
    trunk = [f"trunk {at}" for at in range(draw(st.integers(1, 6)))]
    tails = [
        [f"branch {number} {at}" for at in range(draw(st.integers(1, 5)))]
        for number in range(draw(st.integers(1, 3)))
    ]
    owners = draw(st.lists(st.sampled_from(range(len(tails))), min_size=2, max_size=6))
    return [trunk + tails[owner] for owner in owners]


@given(some_trials, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_the_order_of_the_trials_changes_nothing(trials, source):
    given_order = paths(trials)
    turned = list(given_order)
    source.shuffle(turned)
    one, other = branching_of(given_order), branching_of(turned)
    assert one.forks == other.forks
    assert one.differences == other.differences
    assert one.detours == other.detours
    places = [
        {
            lane.trial_id: [found.nodes[n].column for n in lane.nodes]
            for lane in found.lanes
        }
        for found in (one, other)
    ]
    assert places[0] == places[1]


@given(some_trials, st.integers(0, 6))
@settings(max_examples=150, deadline=None)
def test_a_trial_added_twice_adds_no_fork(trials, which):
    once = paths(trials)
    copied = msgspec.structs.replace(once[which % len(once)], trial_id="copy")
    before, after = branching_of(once), branching_of([*once, copied])
    for kind in ("forks", "differences", "detours"):
        # Of those at one column in two branches the larger one comes first.
        one, other = (
            sorted(
                (f.kind, f.after, f.column, len(f.branches))
                for f in getattr(found, kind)
            )
            for found in (before, after)
        )
        assert one == other


@given(planted_plans(), st.data())
@settings(max_examples=150, deadline=None)
def test_a_step_put_into_one_trial_adds_no_fork_elsewhere(plans, data):
    which = data.draw(st.integers(0, len(plans) - 1))
    place = data.draw(st.integers(0, len(plans[which]) - 1))
    changed = [list(plan) for plan in plans]
    changed[which].insert(place, "extra")
    before, after = (
        branching_of([path_of(f"t{at}", plan) for at, plan in enumerate(some)])
        for some in (plans, changed)
    )
    assert named(before) == named(after)


@given(words, st.integers(1, 9))
def test_identical_trials_have_no_fork(names, count):
    found = branching_of([path_of(f"t{at}", names) for at in range(count)])
    assert found.forks == found.differences == found.detours == ()


@given(some_trials)
@settings(max_examples=150, deadline=None)
def test_lanes_nodes_tracks_and_branches_fit_together(trials):
    given_paths = paths(trials)
    found = branching_of(given_paths)
    for number, (lane, path) in enumerate(zip(found.lanes, given_paths, strict=True)):
        nodes = [found.nodes[node] for node in lane.nodes]
        assert [node.key for node in nodes] == [point.key for point in path.points]
        assert all(number in node.trials for node in nodes)
        rising = [node.column for node in nodes]
        assert rising == sorted(set(rising))
        assert all(column < found.columns for column in rising)
    assert sum(len(node.trials) for node in found.nodes) == sum(
        len(path.points) for path in given_paths
    )
    for fork in (*found.forks, *found.differences, *found.detours):
        ids = [one for branch in fork.branches for one in branch.trial_ids]
        assert len(ids) == len(set(ids))
        assert sorted(ids) == [place.trial_id for place in fork.places]
        assert len(fork.branches) > 1
        assert fork.after < fork.column
    leaves = [track for track in found.tracks if not track.has_fork]
    held = sorted(trial for track in leaves for trial in track.trials)
    assert held == list(range(len(found.lanes)))
    assert len(found.forks) == sum(track.has_fork for track in found.tracks)
