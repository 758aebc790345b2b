"""What is found where nobody said how the decision of an agent is found."""

from __future__ import annotations

import pytest

from apps.engine.extraction import AUTOMATIC_ORDER, DecisionState, extracted
from apps.engine.trace import StepStatus
from tests.engine.extraction.doings import Run, bare, did, gave

PROSE = (
    "I looked at the account and found that the customer was charged twice, so the "
    "amount will be paid back within a few days."
)
SEARCH = ("search_orders", {"user": "u1"})
REFUND = ("refund_order", {"order": "A-1", "amount": 5})


@pytest.mark.parametrize(
    "output",
    [
        {"decision": "Refund", "reason": PROSE},
        '{"reason": "' + PROSE + '", "decision": "refund"}',
        f'Here it is:\n```json\n{{"decision": "refund ", "why": "{PROSE}"}}\n```\nBye.',
        {"role": "assistant", "content": '{"Decision": "refund"}'},
        [{"role": "assistant", "content": [{"type": "text", "text": '{"decision":"refund"}'}]}],
        {"choices": [{"message": {"role": "assistant", "content": '{"decision":"refund"}'}}]},
        {"result": {"decision": "refund"}},
        {"messages": [
            {"type": "human", "content": "Please"},
            {"type": "ai", "content": "Let me look."},
            {"type": "ai", "content": '{"decision": "refund"}'},
        ]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": '{"decision":"refund"}'}]}}]},
    ],
)  # fmt: skip
def test_a_named_field_is_found_in_the_messages_of_all_vendors(output):
    found = extracted(gave(output, SEARCH, REFUND))
    assert (found.state, found.value) == ("decided", '"refund"')
    assert "ecision”" in found.how


def test_the_first_declared_name_wins_however_it_is_written():
    found = extracted(gave({"action": "wait", "finalAnswer": 7, "Route": "x"}))
    assert (found.value, found.how) == ("7", "The field “finalAnswer” of the output.")


def test_a_field_of_prose_is_no_decision():
    found = extracted(gave({"answer": PROSE, "route": "billing"}))
    assert found.value == '"billing"'


@pytest.mark.parametrize(
    ("output", "value"),
    [
        ("Billing", '"billing"'), (" billing \n", '"billing"'), ("**Yes.**", '"yes"'),
        ("$42.00", '"$42.00"'), (42, "42"), (42.0, "42"), ("42.0", "42"),
        ('"approve"', '"approve"'), ("退款", '"\\u9000\\u6b3e"'),
        ("<think>Was it billing? Yes, it was.</think>\nbilling", '"billing"'),
    ],
)  # fmt: skip
def test_a_short_label_is_a_decision(output, value):
    assert extracted(gave(output)).value == value


def test_a_truth_value_is_a_decision():
    assert [extracted(bare(said)).value for said in (True, False)] == ["true", "false"]


@pytest.mark.parametrize(
    "output", ["Done.", "Done", "All done!", "TERMINATE", "You're welcome!", "Hi there"]
)
def test_words_that_end_a_run_are_no_decision(output):
    assert extracted(gave(output)).state is DecisionState.NOT_COMPARED


def test_a_short_output_that_only_names_the_tool_that_ran_is_no_decision():
    found = extracted(gave("Executed refund_order 7", REFUND))
    assert found.shown.startswith("refund_order ")


@pytest.mark.parametrize("last", ["FINAL ANSWER: 31", "**Answer:**\n31", "Answer: 31."])
def test_the_last_line_that_names_an_answer_is_a_decision(last):
    found = extracted(gave(f"{PROSE}\nAnswer: 12\n{PROSE}\n\n{last}"))
    assert found.value == "31"


def test_prose_is_never_compared_unasked():
    for text in (
        PROSE,
        "退款已经完成\uff0c我们会在三个工作日之内把钱退回到您的银行账户\uff0c请您耐心等待\u3002",
    ):
        found = extracted(gave(text))
        assert (found.state, found.value, found.shown) == ("not_compared", "", "")
        assert "prose" in found.how


def test_a_handoff_as_the_last_act_tells_to_whom():
    found = extracted(gave(PROSE, SEARCH, handoff="handoff to Billing Agent"))
    assert found.value == '"handoff to billing agent"'
    called = extracted(gave(PROSE, REFUND, ("transfer_to_human", {"summary": PROSE})))
    assert called.value == '"transfer_to_human"'


@pytest.mark.parametrize("arguments", [{"answer": "31"}, {"answer": 31}, "31"])
def test_the_tool_that_ends_a_task_holds_the_answer(arguments):
    found = extracted(gave(PROSE, REFUND, ("final_answer", arguments)))
    assert (found.value, found.step) == ("31", 1)


def test_an_ending_that_says_nothing_leaves_the_last_write():
    for last in (("submit", {}), ("finish", {"message": PROSE})):
        found = extracted(gave(PROSE, SEARCH, REFUND, SEARCH, last))
        assert found.value == (
            '{"arguments":{"amount":5,"order":"a-1"},"tool":"refund_order"}'
        )
        assert found.step == 1
        assert found.how.startswith("The last call of a tool that changes something")


def test_a_write_that_failed_gives_way_to_one_that_worked():
    denied = ("cancel_order", {"order": "A-1"})
    run = {"results": {"cancel_order": "Error: not allowed"}}
    assert extracted(gave(PROSE, REFUND, denied, **run)).step == 0
    alone = extracted(gave(PROSE, denied, **run))
    assert (alone.step, "every such call failed" in alone.how) == (0, True)


def test_prose_among_the_arguments_is_left_out_and_that_is_said():
    first = extracted(gave(PROSE, ("send_mail", {"to": "a@b.c", "text": PROSE})))
    other = extracted(gave(PROSE, ("send_mail", {"to": "a@b.c", "text": PROSE * 2})))
    assert first.value == other.value
    assert first.how.endswith("without the long text in “text”.")


def test_whole_files_among_the_arguments_are_left_out():
    code = "x = 1\n" * 100
    found = extracted(gave(PROSE, ("write_file", {"path": "a.py", "content": code})))
    assert found.value == '{"arguments":{"path":"a.py"},"tool":"write_file"}'


def test_other_json_comes_before_a_tool_that_only_reads():
    found = extracted(gave({"sku": "B7", "note": PROSE}, SEARCH))
    assert found.value == '{"sku":"b7"}'
    assert found.how == "The output as a whole, without the long text in “note”."


def test_the_last_call_of_any_tool_is_what_is_left_but_not_notes_to_itself():
    found = extracted(gave(PROSE, SEARCH, ("think", {"thought": "hm"})))
    assert (found.shown, found.step) == ('search_orders {"user":"u1"}', 0)


def test_calls_asked_for_at_once_and_their_order_of_keys_do_not_matter():
    one = extracted(gave(None, ("refund_order", {"order": "A-1", "amount": 5.0})))
    other = extracted(gave(None, ("refund_order", '{"amount": 5, "order": "a-1"}')))
    assert one.value == other.value


@pytest.mark.parametrize("status", [StepStatus.ERROR, StepStatus.UNFINISHED])
@pytest.mark.parametrize(
    ("output", "calls"),
    [("Error: timeout", ()), (PROSE, ()), (None, (SEARCH,)), (None, (REFUND,)), ("42", ())],
)  # fmt: skip
def test_a_failed_run_has_not_decided_by_where_it_broke_off(status, output, calls):
    found = extracted(gave(output, *calls, status=status))
    assert (found.state, found.value) == ("failed", "")
    assert status.value in found.how


def test_a_named_field_stays_decided_in_a_failed_run_and_that_is_said():
    found = extracted(gave({"decision": "refund"}, status=StepStatus.ERROR))
    assert (found.state, found.value) == ("decided", '"refund"')
    assert found.how.endswith("The run failed (error) all the same.")


def test_nothing_recorded_is_missing_and_no_bodies_is_its_own_state():
    assert extracted(bare({})).state is DecisionState.NOT_COMPARED
    nothing = extracted(did(Run("", ("search", {})), Run(None)))
    assert nothing.state is DecisionState.MISSING
    assert extracted(gave("")).state is DecisionState.MISSING
    hidden = extracted(gave(None, REFUND, bodies=False))
    assert (hidden.state, hidden.value) == ("no_bodies", "")


def test_a_redacted_value_is_never_an_equal_decision():
    for output, calls in (
        ({"decision": "[redacted: api key]"}, ()),
        ("[redacted: card]", ()),
        (PROSE, (("pay", {"card": "[redacted: card]"}),)),
        (PROSE, (("update_user", {"id": "[redacted: e-mail address]"}),)),
    ):
        found = extracted(gave(output, *calls))
        assert (found.state, found.value, found.shown) == ("missing", "", "")
        assert "redacted" in found.how


def test_the_order_is_declared_in_sentences():
    assert all(text.endswith(".") and text[0].isupper() for text in AUTOMATIC_ORDER)
    assert len(set(AUTOMATIC_ORDER)) == len(AUTOMATIC_ORDER)
