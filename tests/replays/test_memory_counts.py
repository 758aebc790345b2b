"""What a trial of a memory test counts for: each fact once, those without an answer too."""

from __future__ import annotations

import msgspec
import pytest

from apps.engine.memory_tests import (
    Fact,
    MemoryTest,
    burial_from,
    encoded_memory_test,
    planned_trial,
    run_trial,
)
from apps.engine.memory_tests.probes import Probed, probed_in
from apps.engine.replay.case import Case
from apps.engine.replay.run import Ending, ErrorKind, Regime, TargetKind
from apps.engine.replay.stub_plan import StubPlan
from apps.pipeline.replay_endings import nothing_made
from apps.pipeline.replay_memory import judged, judged_unbegun
from apps.pipeline.replay_orders import Order
from apps.replays.planning import Plan

TEST = MemoryTest(
    facts=(
        Fact(
            slug="card",
            value="27",
            telling="My card ends in {value}.",
            probe="What does my card end in?",
        ),
    ),
    depths=(1, 2),
    repeats=2,
)
COUNTS = ("recalled", "lost", "contradicted", "unclear")


class Answering:
    """An agent that answers every turn with the same words."""

    def __init__(self, words):
        self.words = words

    def turn(self, text):
        return self.words

    def state(self):
        return None

    def restart(self):
        pass


def order_of(depth, **more):
    return Order(
        run_id=1,
        number=1,
        seed=1,
        kind=TargetKind.CALLABLE,
        target_name="memory",
        settings={},
        case=Case(agent="memory"),
        frozen=Case(agent="memory"),
        regime=Regime(),
        depth=depth,
        plan=Plan(memory=encoded_memory_test(TEST)),
        stubs=StubPlan(),
        task_key="t",
        title="t",
        **more,
    )


@pytest.mark.parametrize(
    ("words", "counted"),
    [
        ("It ends in 27.", "recalled"),
        ("I do not know.", "lost"),
        ("It is not 27.", "contradicted"),
        ("", "unclear"),
    ],
)
def test_each_fact_counts_once_whatever_became_of_it(words, counted):
    trial = planned_trial(TEST, depth=1, repeat=1)
    found = judged(TEST, run_trial(trial, Answering(words)))
    assert {name: found[name] for name in COUNTS} == {
        name: int(name == counted) for name in COUNTS
    }


def test_a_trial_that_never_began_stays_in_the_denominator_of_its_depth():
    ran = nothing_made(Ending.FAILED, ErrorKind.TARGET, "The target refused.")
    found = judged_unbegun(order_of(2), ran)
    assert [found[name] for name in COUNTS] == [0, 0, 0, 1]
    [lost] = found["probed"]
    assert lost["recollection"] == "failed"
    assert "The target refused." in lost["sentence"]
    good = probed_in(
        TEST,
        run_trial(planned_trial(TEST, depth=2, repeat=2), Answering("It ends in 27.")),
    )
    failed = msgspec.convert(found["probed"], tuple[Probed, ...])
    point = burial_from(TEST, [*good, *failed]).whole.points[1]
    assert (point.recalled, point.trials) == (1, 2)


def test_a_trial_that_somebody_cancelled_tried_nothing():
    ran = nothing_made(Ending.CANCELLED, ErrorKind.CANCELLED, "Cancelled.")
    found = judged_unbegun(order_of(2), ran)
    assert found["is_untried"]
    assert not found["probed"]


def test_an_order_of_which_no_trial_can_be_told_shows_nothing():
    ran = nothing_made(Ending.FAILED, ErrorKind.OURS, "It broke.")
    assert judged_unbegun(order_of(None), ran) is None
