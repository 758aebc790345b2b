"""Chat messages and tau-bench results: roles, tool calls, agents, trials, outcomes."""

from __future__ import annotations

import pytest

from apps.engine.trace import OrderSource, OutcomeKind, StepKind, StepStatus, UsageState
from tests.formats.reading import (
    as_json,
    items_of,
    lines,
    messages,
    rejected_of,
    traces_of,
)


def ask(*ids, **more):
    calls = [
        {"id": one, "type": "function", "function": {"name": f"tool_{one}",
         "arguments": '{"n": 1}'}} for one in ids
    ]  # fmt: skip
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def answer(call_id, content="done"):
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def test_it_joins_parallel_results_by_id_in_any_order():
    [trace] = traces_of(as_json([ask("a", "b"), answer("b", "B"), answer("a", "A")]))
    call, first, second = trace.steps
    assert call.call.tool_call_ids == ("a", "b")
    assert (first.name, first.body.output) == ("tool_a", "A")
    assert (second.name, second.body.output) == ("tool_b", "B")
    assert first.body.input == {"n": 1}
    assert first.parent == first.call.requested_by == 0


def test_it_does_not_read_an_outcome_into_the_text_of_a_tool():
    [trace] = traces_of(as_json([ask("a"), answer("a", "Error: not found")]))
    assert trace.steps[1].status is StepStatus.UNSET
    assert trace.steps[1].body.output == "Error: not found"


def test_it_keeps_a_result_that_answers_no_call_as_a_step_of_its_own():
    [trace] = traces_of(as_json([*messages("q"), answer("zzz", "lost")]))
    assert trace.steps[1].kind is StepKind.OTHER
    assert trace.steps[1].body.output == "lost"
    assert "answer no recorded tool call: 1" in trace.notes[0]


def test_it_reads_the_older_function_call():
    old = {"role": "assistant", "content": None,
           "function_call": {"name": "look", "arguments": "not json"}}  # fmt: skip
    result = {"role": "function", "name": "look", "content": "42"}
    [trace] = traces_of(as_json([old, result]))
    assert trace.steps[1].call.name == "look"
    assert trace.steps[1].body.input == "not json"
    assert trace.steps[1].body.output == "42"


def test_it_reads_roles_parts_and_reasoning():
    parts = [{"type": "text", "text": "hi"}]
    [trace] = traces_of(
        as_json(
            [
                {"role": "developer", "content": "rules"},
                {"role": "user", "content": parts},
                {"role": "assistant", "content": "ok", "reasoning_content": "why"},
            ]
        )
    )
    kinds = [step.kind for step in trace.steps]
    assert kinds == [StepKind.SYSTEM, StepKind.USER_MESSAGE, StepKind.MODEL_CALL]
    assert trace.steps[1].body.output == parts
    assert trace.steps[2].body.reasoning == "why"
    assert trace.order is OrderSource.FILE


def test_it_never_invents_usage():
    [trace] = traces_of(as_json(messages("q", "a")))
    assert trace.steps[1].call.usage.state is UsageState.MISSING
    assert trace.steps[1].call.model is None


@pytest.mark.parametrize(
    "data",
    [
        as_json([messages("a", "b"), messages("c", "d")]),
        as_json([{"messages": messages("a", "b")}, {"messages": messages("c", "d")}]),
        lines({"messages": messages("a", "b")}, {"messages": messages("c", "d")}),
        lines(messages("a", "b"), messages("c", "d")),
    ],
)
def test_it_reads_many_conversations_in_every_shape(data):
    traces = traces_of(data)
    assert [trace.steps[0].body.output for trace in traces] == ["a", "c"]
    assert [trace.name for trace in traces] == ["conversation 1", "conversation 2"]


def test_it_gives_the_metadata_line_to_all_that_follow_and_lets_each_override():
    own = {"messages": messages("c"), "metadata": {"trial": 2}}
    first, second = traces_of(
        lines({"metadata": {"task": "t", "trial": 1}}, messages("a"), own)
    )
    assert (first.task, first.trial) == ("t", 1)
    assert (second.task, second.trial) == ("t", 2)


def test_it_names_agents_by_the_names_of_their_messages():
    named = [
        {"role": "assistant", "content": name, "name": name} for name in ("a", "b", "a")
    ]
    [trace] = traces_of(as_json(named))
    assert [one.agent for one in trace.invocations] == [None, "a", "b"]
    assert [step.invocation for step in trace.steps] == [1, 2, 1]
    [alone] = traces_of(as_json(named[:1]))
    assert [one.agent for one in alone.invocations] == ["a"]


def test_it_rejects_a_conversation_with_something_else_in_it():
    data = lines({"messages": messages("a")}, {"messages": [*messages("a"), {"x": 1}]})
    [rejected] = rejected_of(items_of(data))
    assert rejected.place == "record 2 (line 2), $.messages[1]"


@pytest.mark.parametrize("key", ["response", "choices", "trajectory_format"])
def test_it_refuses_records_whose_usage_it_would_lose(key):
    data = lines({"messages": messages("a")}, {"messages": messages("a"), key: {}})
    [rejected] = rejected_of(items_of(data))
    assert "usage would be lost" in rejected.reason


@pytest.mark.parametrize(
    ("reward", "kind", "score"),
    [
        (1.0, OutcomeKind.PASS, 1.0),
        (1, OutcomeKind.PASS, 1.0),
        (0.0, OutcomeKind.FAIL, 0.0),
        (0.5, OutcomeKind.SCORE, 0.5),
        (None, OutcomeKind.UNKNOWN, None),
        ("passed", OutcomeKind.UNKNOWN, None),
        (True, OutcomeKind.PASS, None),
        (10**400, OutcomeKind.UNKNOWN, None),
    ],
)
def test_it_reads_the_reward_as_the_outcome_and_never_prose(reward, kind, score):
    result = {
        "task_id": 7,
        "trial": 2,
        "reward": reward,
        "info": {},
        "traj": messages("a", "b"),
    }
    [trace] = traces_of(as_json([result]))
    assert (trace.outcome.kind, trace.outcome.score) == (kind, score)
    assert (trace.task, trace.trial, trace.name) == ("task 7", 2, "task 7")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"traj": None}, "$.traj"),
        ({"traj": [1]}, "$.traj[0]"),
        ({"task_id": None}, "$.task_id"),
    ],
)
def test_it_rejects_one_bad_result_and_keeps_the_others(change, place):
    good = {
        "task_id": 1,
        "trial": 0,
        "reward": 1.0,
        "info": {},
        "traj": messages("a", "b"),
    }
    items = items_of(as_json([good, good | change, good]))
    [rejected] = rejected_of(items)
    assert rejected.place == f"record 2 (line 1), {place}"
    assert len(traces_of(as_json([good, good | change, good]))) == 2
