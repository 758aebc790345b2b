"""No self-check: the last call of all writes, by its name; anything else is silence."""

from __future__ import annotations

import random

import pytest

from apps.engine.check import Answer, Level
from apps.engine.checks.no_self_check import NoSelfCheck
from apps.engine.trace import StepStatus
from tests.engine.random_traces import shuffled
from tests.engine.traces import call, tool, tools_trace, trace_of


def answer(*names, **parameters):
    (found,) = NoSelfCheck(**parameters).run(tools_trace(*names))
    return found


def test_a_write_that_is_the_last_call_is_telemetry():
    found = answer("get_order", "update_order")
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.TELEMETRY)
    assert found.headline == "Nothing was called after the last write"
    assert "“update_order” changes something by its name" in found.reason
    assert found.evidence.steps == (1,)
    assert found.evidence.facts == {
        "writes": 1,
        "last_write": "update_order",
        "calls_after": 0,
    }
    assert len(found.evidence.not_modelled) == 3


def test_a_read_after_the_last_write_is_quiet():
    found = answer("update_order", "get_order")
    assert (found.answer, found.reason_code) == (Answer.QUIET, "read_after_write")
    assert found.headline == "1 call after the last write"


def test_only_the_last_write_counts():
    assert answer("update_order", "get_order", "send_email").answer is Answer.SIGNAL


def test_false_alarm_of_a_shell_after_the_write_may_have_looked():
    found = answer("edit_file", "bash")
    assert (found.answer, found.reason_code) == (Answer.QUIET, "called_after_write")
    assert "nothing is claimed" in found.reason


def test_thinking_waiting_and_handing_in_are_no_look():
    found = answer("update_order", "think", "wait", "submit", "final_answer")
    assert found.answer is Answer.SIGNAL
    assert found.evidence.steps == (0,)


def test_false_alarm_of_handing_in_the_answer_is_no_write():
    found = answer("edit_file", "bash", "submit")
    assert found.reason_code == "called_after_write"
    assert answer("search", "submit").reason_code == "no_writes"


def test_false_alarm_of_a_write_that_failed_changed_nothing():
    steps = [
        tool(0, "get_order"),
        tool(1, "update_order", status=StepStatus.ERROR),
    ]
    (found,) = NoSelfCheck().run(trace_of(*steps, agents=()))
    assert (found.answer, found.reason_code) == (Answer.NOT_APPLICABLE, "no_writes")


def test_false_alarm_of_a_reading_tool_whose_name_holds_a_noun():
    assert answer("get_payment", "list_orders").reason_code == "no_writes"


def test_a_handoff_tool_writes_nothing():
    assert answer("get_order", "transfer_to_human").reason_code == "no_writes"


def test_a_trace_without_tools_says_so():
    (found,) = NoSelfCheck().run(trace_of(call(0)))
    assert found.reason_code == "no_tool_calls"


def test_false_alarm_of_another_agent_that_looks_is_named_as_not_modelled():
    steps = [tool(0, "update_order", invocation=0), tool(1, "get_order", invocation=1)]
    first, second = NoSelfCheck().run(trace_of(*steps, agents=("a", "b")))
    assert (first.answer, second.answer) == (Answer.SIGNAL, Answer.NOT_APPLICABLE)
    assert any("another agent" in text for text in first.evidence.not_modelled)


def test_a_project_can_name_tools_that_write():
    assert answer("rub_out").answer is Answer.NOT_APPLICABLE
    assert answer("rub_out", writing_tools=("rub_out",)).answer is Answer.SIGNAL
    assert "and 2 that this project names" in NoSelfCheck(("a", "b")).observes
    for wrong in (("",), ("a",) * 101):
        with pytest.raises(ValueError, match="Further tools that write"):
            NoSelfCheck(wrong)


def test_shuffled_steps_give_the_same_answer():
    trace = tools_trace("get_order", "update_order", "bash", "send_email")
    other = shuffled(trace, random.Random(4))
    assert list(NoSelfCheck().run(other)) == list(NoSelfCheck().run(trace))


def test_the_hash_depends_on_what_was_read_and_not_on_the_parameter():
    one = answer("rub_out", "get_order")
    assert (
        one.input_hash
        == answer("rub_out", "get_order", writing_tools=("x",)).input_hash
    )
    assert one.input_hash != answer("get_order", "rub_out").input_hash


def test_one_call_after_a_write_is_spoken_of_as_one():
    for after in ("get_order", "rub"):
        [found] = NoSelfCheck().run(tools_trace("update_order", after))
        assert found.reason.startswith("1 call came after “update_order”")
        assert not any(word in found.reason for word in ("them", "they", "Their"))
