"""Repeated side effects: what was done twice, and what only looks like it."""

from __future__ import annotations

import pytest

from apps.engine.check import Answer, Level, configured
from apps.engine.checks.repeated_side_effect import RepeatedSideEffect
from apps.engine.trace import StepStatus
from tests.engine.told import failed, told, turned_round, used, without_bodies

BOOK = ("book_reservation", {"flight": "HAT136"}, {"reservation": "A1"})
SEND = ("mcp__mail__sendEmail", {"to": "anna"}, "queued")


def one(*calls, **parameters):
    return of(told(*[used(n, *call) for n, call in enumerate(calls)]), **parameters)


def of(trace, **parameters):
    (found,) = RepeatedSideEffect(**parameters).run(trace)
    return found


@pytest.mark.parametrize("call", [BOOK, SEND, ("invoices.pay", {"n": 1}, "ok")])
def test_an_act_that_succeeded_twice_is_a_signal_wherever_it_stands(call):
    found = one(call, ("get_user", {}, "Anna"), ("get_user", {"n": 2}, "Bob"), call)
    assert (found.answer, found.level) == (Answer.SIGNAL, Level.REVIEW_SIGNAL)
    assert found.evidence.steps == (0, 3)
    assert "twice" in found.headline


def test_other_arguments_are_another_act():
    found = one(BOOK, (BOOK[0], {"flight": "HAT137"}, "x"))
    assert (found.answer, found.reason_code) == (Answer.QUIET, "no_repeated_write")


def test_a_retry_after_a_failure_is_no_repetition():
    first, second = used(0, *BOOK), used(1, *BOOK)
    assert of(told(failed(first), second)).answer is Answer.QUIET


@pytest.mark.parametrize(
    "result",
    [
        "Error: payment amount does not add up",
        {"error": "no seats"},
        {"success": False},
        {"exit_code": 1, "output": "x"},
        "<returncode>1</returncode>",
        '{"isError": true}',
    ],
)
def test_a_failure_that_only_the_result_tells_does_not_count(result):
    assert one((*BOOK[:2], result), BOOK).answer is Answer.QUIET


def test_reading_twice_is_no_side_effect():
    found = one(*[("get_booking", {"id": 1}, "x")] * 2)
    assert found.reason_code == "no_writing_calls"


def test_names_can_be_added_and_then_count():
    calls = [("zap", {"id": 1}, "x")] * 2
    assert one(*calls).reason_code == "no_writing_calls"
    assert one(*calls, writing_tools=("zap",)).answer is Answer.SIGNAL
    named = configured(RepeatedSideEffect(), {"writing_tools": ["zap"]})
    assert named.parameters == {"writing_tools": ["zap"]}
    assert "zap" in named.material_when


def test_an_act_without_a_recorded_ending_did_not_succeed_for_sure():
    found = one(*[(*BOOK[:2], None)] * 2)
    assert (found.answer, found.reason_code) == (
        Answer.NOT_APPLICABLE,
        "endings_unknown",
    )
    ended = [used(n, *BOOK[:2], None, status=StepStatus.OK) for n in range(2)]
    assert of(told(*ended)).answer is Answer.SIGNAL


def test_updating_back_and_forth_is_no_repetition_and_twice_in_a_row_is():
    on, off = [("update_lamp", {"is": state}, "x") for state in ("on", "off")]
    assert one(on, off, on).answer is Answer.QUIET
    assert one(on, on, off).answer is Answer.SIGNAL


@pytest.mark.parametrize(
    "name", ["Write", "write_file", "set_title", "save_draft", "enable_alerts"]
)
def test_setting_a_state_or_writing_a_file_again_is_harmless(name):
    assert one(*[(name, {"x": 1}, "x")] * 2).answer is Answer.QUIET


@pytest.mark.parametrize(
    "name",
    ["TodoWrite", "update_plan", "mark_task_complete", "submit", "transfer_to_human"],
)
def test_notes_to_itself_and_ends_of_a_task_are_no_side_effects(name):
    found = one(*[(name, {"x": 1}, "x")] * 2)
    assert found.reason_code == "no_writing_calls"


def test_one_tool_with_many_actions_writes_only_where_its_action_does():
    view = ("str_replace_editor", {"command": "view", "path": "/a"}, "1 line")
    assert one(view, view).reason_code == "no_writing_calls"
    put = ("str_replace_editor", {"command": "insert", "path": "/a"}, "1 line")
    assert one(put, put).answer is Answer.SIGNAL


def test_redacted_arguments_are_not_taken_for_equal():
    call = ("send_mail", {"to": "[redacted: e-mail address]"}, "sent to somebody")
    assert one(call, call).answer is Answer.NOT_APPLICABLE


def test_one_act_recorded_as_two_nested_spans_counts_once():
    trace = told(used(0, *BOOK), used(1, *BOOK, parent=0))
    assert of(trace).answer is Answer.QUIET


def test_two_agents_that_do_the_same_are_found():
    steps = [used(n, *BOOK, invocation=n) for n in range(2)]
    found = of(told(*steps, agents=("one", "two")))
    assert found.answer is Answer.SIGNAL
    assert found.evidence.agent is None


def test_structure_only_is_not_applicable():
    assert of(without_bodies(told(used(0, *BOOK)))).reason_code == "no_bodies"
    assert of(told()).reason_code == "no_tool_calls"


def test_steps_in_any_order_give_the_same_answer():
    trace = told(*[used(n, *BOOK) for n in range(3)])
    assert of(turned_round(trace)) == of(trace)
    assert "3 times" in of(trace).headline


def test_names_that_are_no_list_of_names_are_refused():
    for wrong in (("",), (1,), "send", tuple(f"t{n}" for n in range(101))):
        with pytest.raises(ValueError, match="that write"):
            RepeatedSideEffect(writing_tools=wrong)


def test_it_says_that_each_call_succeeded_only_where_a_status_says_so():
    def booked(status):
        return told(*[used(n, *BOOK, status=status) for n in range(2)])

    found = of(booked(StepStatus.OK))
    assert found.headline.startswith("book_reservation succeeded twice")
    assert "each call succeeded" in found.reason
    found = of(booked(StepStatus.UNSET))
    assert found.answer is Answer.SIGNAL
    assert found.headline == (
        "book_reservation called twice with the same arguments, no failure known"
    )
    assert "each call succeeded" not in found.reason
    assert "no failure is recorded" in found.reason


def test_it_speaks_of_one_call_in_good_english():
    assert one(BOOK).headline == "No act repeated in 1 writing call"
    assert one(("get_user", {}, "Anna")).reason.startswith("The only tool call has no")
    unknown = one(("book_trip", {"n": 1}, None))
    assert "of the only writing call" in unknown.reason
