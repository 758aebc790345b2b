"""The input by which trials of one task are found."""

from __future__ import annotations

import pytest

from apps.engine.root_input import root_input, root_input_hash
from apps.engine.trace import Body, Step, StepKind, Trace
from tests.formats.reading import lines, messages, traces_of


def trace(*steps: tuple[StepKind, Body | None]) -> Trace:
    made = tuple(
        Step(seq=seq, kind=kind, body=body) for seq, (kind, body) in enumerate(steps)
    )
    return Trace(name="t", steps=made)


def test_it_is_what_the_user_said_first():
    one = trace(
        (StepKind.SYSTEM, Body(output="Today is Monday.")),
        (StepKind.USER_MESSAGE, Body(output="Refund A-100")),
        (StepKind.USER_MESSAGE, Body(output="Thanks")),
    )
    assert root_input(one) == "Refund A-100"


@pytest.mark.parametrize("role", [[], {}, ["user"]])
def test_a_role_that_is_no_text_is_nobody_s(role):
    given = {"role": role, "content": [{"role": "user", "content": "Refund A-100"}]}
    assert root_input(trace((StepKind.MODEL_CALL, Body(input=given)))) == "Refund A-100"


def test_a_system_prompt_with_another_date_does_not_change_it():
    said = [{"role": "user", "content": "Refund A-100"}]
    monday = [{"role": "system", "content": "Today is Monday."}, *said]
    friday = [{"role": "system", "content": "Today is Friday."}, *said]
    found = {
        root_input_hash(trace((StepKind.MODEL_CALL, Body(input=given))))
        for given in (monday, friday)
    }
    assert len(found) == 1
    assert None not in found


@pytest.mark.parametrize(
    "given",
    [
        {"messages": [{"type": "human", "content": "Refund A-100"}]},
        {"input": {"messages": [[{"role": "user", "content": "Refund A-100"}]]}},
        [{"message": {"role": "user", "content": "Refund A-100"}}],
        [{"role": "user", "parts": "Refund A-100"}],
        "Refund   A-100 ",
    ],
)
def test_it_is_found_in_the_input_of_the_first_step(given):
    one = trace((StepKind.AGENT, Body(input=given)))
    plain = trace((StepKind.USER_MESSAGE, Body(output="Refund A-100")))
    assert root_input_hash(one) == root_input_hash(plain)


@pytest.mark.parametrize("said", ["", "  ", "continue", "hi", None])
def test_what_says_nothing_is_no_input(said):
    assert root_input_hash(trace((StepKind.USER_MESSAGE, Body(output=said)))) is None


def test_without_bodies_there_is_none():
    assert root_input_hash(trace((StepKind.USER_MESSAGE, None))) is None


def test_a_tool_result_is_not_the_input_of_a_run():
    one = trace((StepKind.TOOL_CALL, Body(input={"id": 1})))
    assert root_input_hash(one) is None


def test_two_conversations_with_the_same_question_share_it():
    first, second, other = traces_of(
        lines(
            messages("Where is it?", "a"),
            messages("Where is it?", "b"),
            messages("What is it?!", "c"),
        )
    )
    assert root_input_hash(first) == root_input_hash(second)
    assert root_input_hash(first) != root_input_hash(other)
