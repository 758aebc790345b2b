"""What is extracted from real files, so that a change of a rule shows."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from apps.engine.conduct import conducts_of, whole_conduct
from apps.engine.extraction import extracted
from tests.formats.reading import traces_of


def traces(shared_data, name):
    paths = sorted(shared_data.glob(name))
    if not paths:
        pytest.skip(f"{name} lies outside of the repository and is absent.")
    return [trace for path in paths for trace in traces_of(path.read_bytes())]


def test_mixed_tasks_of_the_airline_file_differ_in_what_was_decided(shared_data):
    by_task = defaultdict(list)
    for trace in traces(shared_data, "tau_bench_results/gpt-4o-airline.json"):
        (conduct,) = conducts_of(trace)
        found = extracted(conduct)
        by_task[trace.task].append((trace.outcome.kind, found.state, found.value))
    mixed = [
        trials for trials in by_task.values() if len({one[0] for one in trials}) > 1
    ]
    differ = [trials for trials in mixed if len({one[1:] for one in trials}) > 1]
    assert (len(by_task), len(mixed), len(differ)) == (50, 26, 24)
    states = Counter(one[1] for trials in by_task.values() for one in trials)
    assert states == {"decided": 182, "not_compared": 18}


@pytest.mark.parametrize(
    ("files", "agent", "shown"),
    [
        (
            "openai_agents_sdk_trace/*",
            "Triage Agent",
            {"handoff to Billing Agent"},
        ),
        (
            "otlp_json/openinference_openai_agents*",
            "Triage Agent",
            {"handoff to Billing Agent"},
        ),
        ("inspect_eval_json/*2025*", "", {"Yes", "No"}),
        ("crewai_events/*event_bus*", "Triage Agent", {""}),
        ("any_agent_trace/*", "any_agent", {'{"steps":[{"number":1},{"number":2}]}'}),
    ],
)
def test_what_agents_of_real_files_decided(shared_data, files, agent, shown):
    found = [
        extracted(conduct)
        for trace in traces(shared_data, files)
        for conduct in conducts_of(trace)
        if conduct.agent == agent
    ]
    assert found
    assert {one.shown for one in found} >= shown
    assert len({one.shown for one in found} - shown) <= 1


def test_failed_runs_of_real_files_have_not_decided(shared_data):
    found = [
        extracted(whole_conduct(trace)).state
        for trace in traces(shared_data, "otlp_json/openinference_smolagents*")
    ]
    assert set(found) == {"failed"}
