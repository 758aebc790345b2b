"""Whole numbers that no count of tokens can be are missing, and are told of."""

from __future__ import annotations

import pytest

from tests.formats.reading import as_json, items_of, notes_of, traces_of


def with_usage(**counts: object) -> bytes:
    said = {"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    answer = {"object": "chat.completion", "choices": [said], "usage": counts}
    asked = {"messages": [{"role": "user", "content": "x"}]}
    return as_json({"request": asked, "response": answer})


def test_it_says_that_counts_beyond_any_range_were_read_as_not_recorded():
    raw = with_usage(prompt_tokens=10**308, completion_tokens=10**30)
    note = notes_of(items_of(raw))["out_of_range"]
    assert note.count == 2
    assert "First: 10000000000000000000… (3" in note.sentence
    [call] = [step.call for step in traces_of(raw)[0].steps if step.call]
    assert call.usage.state == "missing"


def test_a_record_whose_counts_are_out_of_range_keeps_its_reader():
    said = {"prompt_tokens": 10**308, "completion_tokens": 10**30}
    asked = {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}
    read = items_of(as_json({"messages": list(asked), "usage": said}))
    assert notes_of(read)["out_of_range"].count == 2


@pytest.mark.parametrize("value", [2**63, -5, 1e300, "9" * 30, "1" * 300])
def test_it_notes_whole_numbers_out_of_range_however_they_are_written(value):
    raw = with_usage(prompt_tokens=value, completion_tokens=3)
    assert notes_of(items_of(raw))["out_of_range"].count == 1


@pytest.mark.parametrize("value", [0, 2**63 - 1, -1, None, "many", 7.5, True])
def test_it_notes_no_number_that_is_a_count_or_says_that_none_is_known(value):
    raw = with_usage(prompt_tokens=value, completion_tokens=3)
    assert "out_of_range" not in notes_of(items_of(raw))
