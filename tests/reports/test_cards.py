"""The card of a signal counts steps from 1, like every page; the document from 0."""

from __future__ import annotations

import msgspec

from apps.reports import markdown
from apps.reports.cards import card_of
from apps.reports.outline import Chart, Facts
from tests.reports import documents


def shown(signal) -> dict[str, str]:
    """The facts of the card by label."""
    return {
        fact.label: "".join(span.text for span in fact.cell)
        for block in card_of(signal, "Output-length decay").blocks
        if isinstance(block, Facts)
        for fact in block.facts
    }


def with_facts(**facts):
    signal = documents.decay_signal()
    evidence = msgspec.structs.replace(signal.evidence, facts=facts)
    return msgspec.structs.replace(signal, evidence=evidence)


def test_the_steps_that_evidence_rests_on_count_from_1():
    signal = documents.decay_signal()
    assert signal.evidence.steps == (3, 5, 7, 9, 11, 13)
    assert shown(signal)["Rests on steps"] == "4, 6, 8, 10, 12, 14"


def test_calls_left_out_are_steps_that_count_from_1():
    facts = shown(
        with_facts(
            retries_removed=[0, 4],
            failed_removed=[1],
            placeholders_removed=[2],
            duplicates_removed=[3],
            wrappers_removed=[5, "[7 more]"],
        )
    )
    assert facts["Retries removed"] == "steps 1, 5"
    assert facts["Failed removed"] == "step 2"
    assert facts["Placeholders removed"] == "step 3"
    assert facts["Duplicates removed"] == "step 4"
    assert facts["Wrappers removed"] == "steps 6, [7 more]"


def test_facts_that_are_no_steps_stay_as_they_are():
    assert shown(with_facts(phi=[0, 0.3]))["Phi"] == "[0,0.3]"


def test_the_chart_counts_steps_from_1():
    (chart,) = [
        block
        for block in card_of(documents.decay_signal(), "Decay").blocks
        if isinstance(block, Chart)
    ]
    assert ">step 4<" in chart.svg
    assert ">step 14<" in chart.svg


def test_the_chart_of_tool_calls_counts_steps_from_1():
    (chart,) = [
        block
        for block in card_of(documents.drift_signal(1), "Drift").blocks
        if isinstance(block, Chart)
    ]
    assert ">step 3<" in chart.svg
    assert ">step 19<" in chart.svg


def test_where_a_reviewer_saw_the_failure_counts_from_1():
    assert "step 12" in markdown.render(documents.with_decision())
