"""What the checks that read bodies say about real files, so that a change of a rule shows."""

from __future__ import annotations

from collections import Counter

import pytest

from apps.engine.check import Answer
from apps.engine.checks import by_slug
from tests.formats.reading import traces_of

AIRLINE = "tau_bench_results/gpt-4o-airline.json"


def traces(shared_data, name):
    path = shared_data / name
    if not path.exists():
        pytest.skip(f"{path.name} lies outside of the repository and is absent.")
    return traces_of(path.read_bytes())


@pytest.fixture(scope="module")
def airline(shared_data):
    return traces(shared_data, AIRLINE)


def signals(found, slug):
    answers = [one for trace in found for one in by_slug(slug).run(trace)]
    return Counter(o.reason_code for o in answers if o.answer is Answer.SIGNAL)


@pytest.mark.parametrize(
    ("slug", "expected"),
    [
        ("repeated-call", {"in_turns": 1}),
        ("no-progress", {}),
        ("repeated-side-effect", {"repeated_write": 1}),
        ("tool-not-offered", {}),
        ("final-answer", {"no_answer_after_tool": 3}),
        ("unsupported-claim", {}),
        ("duplicate-calls", {"duplicates": 16}),
    ],
)
def test_the_airline_file_gives_few_signals_and_these(airline, slug, expected):
    assert signals(airline, slug) == expected


def test_the_flight_that_was_booked_twice_is_the_one_repeated_act(airline):
    check = by_slug("repeated-side-effect")
    found = [one for trace in airline for one in check.run(trace)]
    (twice,) = [one for one in found if one.answer is Answer.SIGNAL]
    assert twice.headline == (
        "book_reservation called twice with the same arguments, no failure known"
    )


def test_an_edit_by_line_numbers_that_was_applied_twice_is_found(shared_data):
    folder = shared_data / "swe_agent_traj"
    if not folder.exists():
        pytest.skip("The trajectories lie outside of the repository and are absent.")
    found = [one for path in folder.iterdir() for one in traces_of(path.read_bytes())]
    assert signals(found, "repeated-side-effect") == {"repeated_write": 1}


@pytest.mark.parametrize(
    "name",
    [
        "mlflow_trace_json/normal_3runs.json",
        "otel_console_json/pydantic_ai__chat_length.console.json",
        "langsmith_runs_jsonl/streamed_no_usage.jsonl",
    ],
)
def test_offers_of_real_sdks_hold_everything_that_was_asked_for(shared_data, name):
    found = traces(shared_data, name)
    answers = [one for trace in found for one in by_slug("tool-not-offered").run(trace)]
    assert "all_offered" in {one.reason_code for one in answers}
    assert not signals(found, "tool-not-offered")
