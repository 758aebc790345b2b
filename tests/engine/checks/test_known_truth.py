"""Output decay on runs of real SDKs whose answers are known: 112, 100, 86, 78, 70, 43."""

from __future__ import annotations

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.output_decay import OutputDecay
from tests.formats.reading import traces_of

ENCODINGS = (
    "otlp_json/{}.otlp.json",
    "otlp_json/{}.collector.jsonl",
    "otlp_protobuf/{}.otlp.pb",
)
BILLING = (112, 100, 86, 78, 70, 43)


def answers(shared_data, pattern, name):
    path = shared_data / pattern.format(name)
    if not path.exists():
        pytest.skip(f"{path.name} lies outside of the repository and is absent.")
    traces = traces_of(path.read_bytes())
    return [found for trace in traces for found in OutputDecay().run(trace)]


def signals(found):
    return [one for one in found if one.answer is Answer.SIGNAL]


@pytest.mark.parametrize("pattern", ENCODINGS)
@pytest.mark.parametrize(
    "name", ["traceloop__normal_3runs", "traceloop_old033__normal_3runs"]
)
def test_every_encoding_of_three_billing_runs_gives_three_signals(
    shared_data, pattern, name
):
    found = signals(answers(shared_data, pattern, name))
    assert [one.evidence.series.values for one in found] == [BILLING] * 3
    assert {one.evidence.agent for one in found} == {"billing_agent"}
    assert {one.level for one in found} == {Level.REVIEW_SIGNAL}


@pytest.mark.parametrize("pattern", ENCODINGS)
def test_the_call_of_the_triage_agent_is_not_glued_onto_that_of_billing(
    shared_data, pattern
):
    found = answers(shared_data, pattern, "openinference_openai_agents__chat_streamed")
    (signal,) = signals(found)
    assert signal.evidence.agent == "Billing Agent"
    assert signal.evidence.series.values == BILLING[1:]
    assert len(found) == 2


@pytest.mark.parametrize("pattern", ENCODINGS)
def test_a_run_without_usage_gives_no_signal_and_says_how_much_is_missing(
    shared_data, pattern
):
    (found,) = answers(shared_data, pattern, "traceloop_old033__no_usage")
    assert found.reason_code == "usage_missing"
    assert found.evidence.usage_known == 0
