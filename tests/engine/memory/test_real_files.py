"""What exact reuse says about every file of the shared collection."""

from __future__ import annotations

import pytest

from apps.engine.memory import State, detected_reuse
from tests.formats.index import DATA
from tests.formats.reading import traces_of

AIRLINE = DATA / "tau_bench_results" / "gpt-4o-airline.json"


@pytest.fixture(scope="module")
def airline():
    if not AIRLINE.is_file():
        pytest.skip("The shared trace files are absent.")
    traces = traces_of(AIRLINE.read_bytes())
    return [(trace, detected_reuse(trace)) for trace in traces]


def test_one_user_of_200_had_to_tell_an_id_twice_and_says_so(airline):
    failed = [
        (trace, recall)
        for trace, found in airline
        for recall in found
        if recall.is_failure
    ]
    ((trace, recall),) = failed
    assert (recall.state, recall.value) == (State.LOST, "aarav_ahmed_6699")
    assert recall.fact == "user id"
    assert (trace.task, recall.told_step, recall.needed_step) == (trace.task, 3, 16)
    again = trace.steps[17].body.output
    assert "My user ID is already provided" in str(again)


def test_ids_are_recalled_many_turns_later(airline):
    recalled = [r for _, found in airline for r in found if r.state is State.RECALLED]
    assert len(recalled) > 500
    deepest = max(recalled, key=lambda recall: recall.turns_between)
    assert deepest.turns_between >= 5
    assert all(r.turns_between or r.steps_between >= 10 for r in recalled)
