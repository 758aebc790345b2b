"""Token usage in Langfuse: buckets, older forms, estimates, wrappers and stages."""

from __future__ import annotations

import pytest

from apps.engine.trace import StepKind, UsageState
from tests.formats.langfuse_files import attributes, call_of, generation, observed, only


def test_it_takes_empty_buckets_for_missing_whatever_the_zeros_say():
    assert call_of().usage.state is UsageState.MISSING


def test_it_takes_zeros_without_buckets_for_a_suspect():
    row = observed(1, None, "GENERATION", usage={"input": 0, "output": 0, "total": 0})
    del row["usageDetails"]
    [step] = only(row).steps
    assert step.call.usage.state is UsageState.ZERO_SUSPECT


@pytest.mark.parametrize(
    "fields",
    [
        {"usage": {"input": 7, "output": 5, "total": 12, "unit": "TOKENS"}},
        {"usage": {"promptTokens": 7, "completionTokens": 5, "totalTokens": 12}},
        {"promptTokens": 7, "completionTokens": 5, "totalTokens": 12},
        {"inputUsage": 7, "outputUsage": 5, "totalUsage": 12},
        {"usageDetails": {"input": "7", "output": 5.0, "total": 12}},
        {"usageDetails": {"prompt_tokens": 7, "completion_tokens": 5, "total": 12}},
    ],
)
def test_it_reads_usage_in_all_forms_that_there_have_been(fields):
    row = observed(1, None, "GENERATION")
    for key in ("usageDetails", "inputUsage", "outputUsage", "totalUsage"):
        row.pop(key)
    [step] = only(row | fields).steps
    told = step.call.usage
    assert (told.input_total, told.output_total, told.total) == (7, 5, 12)
    assert told.state is UsageState.REPORTED


def test_it_adds_cached_input_back_and_keeps_reasoning_apart():
    details = {"input": 100, "input_cache_read": 40, "input_cache_creation": 2,
               "output": 35, "output_reasoning": 64, "total": 241}  # fmt: skip
    told = call_of(usageDetails=details).usage
    assert (told.input_total, told.input_cached, told.input_cache_write) == (142, 40, 2)
    assert (told.output_total, told.output_reasoning) == (35, 64)
    assert told.source == "usageDetails.output"


def test_it_does_not_add_details_that_are_inside_the_input():
    details = {"input": 55, "prompt_details.cache_read": 20, "output": 15,
               "completion_details.reasoning": 5}  # fmt: skip
    told = call_of(usageDetails=details).usage
    assert (told.input_total, told.input_cached) == (55, 20)
    assert (told.output_total, told.output_reasoning) == (15, 5)


def test_it_marks_counts_that_langfuse_made_itself():
    own = {"input": 5, "output": 94, "total": 99}
    estimated = call_of(usageDetails=own, metadata=attributes(model="m"))
    assert estimated.usage.state is UsageState.VENDOR_ESTIMATE
    provided = call_of(usageDetails=own, providedUsageDetails={})
    assert provided.usage.state is UsageState.VENDOR_ESTIMATE
    told = attributes(**{"gen_ai.usage.output_tokens": 94})
    assert call_of(usageDetails=own, metadata=told).usage.is_known
    assert call_of(usageDetails=own, providedUsageDetails=own).usage.is_known
    assert call_of(usageDetails=own).usage.is_known


def test_it_counts_the_innermost_of_nested_generations():
    found = only(generation(1, None, 43, 0, lasts=9), generation(2, 1, 85, 1))
    assert [step.kind for step in found.steps] == [StepKind.OTHER, StepKind.MODEL_CALL]
    assert any("wrap other model spans" in note for note in found.notes)
    assert any("differ from the sum" in note for note in found.notes)


def test_it_counts_a_call_once_though_each_stage_of_it_is_a_row():
    name = "backend.openai.chat."
    found = only(
        observed(1, None, "SPAN", 0, 9),
        observed(2, 1, "GENERATION", 1, name=f"{name}start-15", model="m",
                 usageDetails={"input": 1988, "total": 1988}),
        observed(3, 1, "GENERATION", 2, name=f"{name}success-16", output='"x"'),
        observed(4, 1, "GENERATION", 3, name=f"{name}finish-17"),
    )  # fmt: skip
    [call] = [step.call for step in found.steps if step.kind is StepKind.MODEL_CALL]
    assert call.usage.state is UsageState.PARTIAL
    assert any(
        "later stage of a model call" in note and "2" in note for note in found.notes
    )
