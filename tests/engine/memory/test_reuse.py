"""Values that nobody declared: what exact reuse proves, and every case it leaves."""

from __future__ import annotations

import pytest

from apps.engine.memory import Place, Source, State, detected_reuse
from apps.engine.memory.values import is_slip, is_specific, slots_of, tokens_in
from apps.engine.trace import StepKind
from tests.engine.memory.conversations import Talk

ORDER = "My order number is 849203."
ASK = "Could you please provide your order number?"


def found(talk):
    return detected_reuse(talk.trace())


def failures(talk):
    return [recall for recall in found(talk) if recall.is_failure]


@pytest.mark.parametrize(
    "token",
    ["849203", "W2378156", "yara_garcia_1905", "a.b@c.org", "2024-05-20", "418.50"],
)
def test_a_value_is_specific(token):
    assert is_specific(token)
    assert list(tokens_in(f"It is #{token}, I think.")) == [token]


@pytest.mark.parametrize(
    "token", ["order", "2024", "1999", "5000", "100", "gpt-4o", "a@b", "7", "x" * 90]
)
def test_words_years_and_round_numbers_are_not_specific(token):
    assert not is_specific(token)


def test_an_argument_is_a_value_only_as_a_whole():
    given = {"id": "#W2378156", "note": "about W2378157", "of": {"lines": [84920]}}
    assert list(slots_of(given)) == [("id", "W2378156"), ("lines", "84920")]
    assert list(slots_of('{"id": "W2378156"}')) == [("id", "W2378156")]
    assert list(slots_of({"path": "/a/b/12345.txt"})) == []


def test_a_told_value_that_is_used_turns_later_is_recalled():
    talk = Talk("desk").user(ORDER, by=0).says("Noted.", by=0)
    talk.user("Cancel it.", by=0).uses("cancel_order", "done", by=0, order_id="849203")
    (recall,) = found(talk)
    assert (recall.state, recall.source) == (State.RECALLED, Source.DETECTED)
    assert (recall.fact, recall.value, recall.agent) == ("order_id", "849203", "desk")
    assert (recall.told_step, recall.needed_step) == (0, 3)
    assert (recall.turns_between, recall.steps_between) == (1, 2)


def test_a_value_used_at_once_shows_no_memory():
    talk = Talk().user(ORDER).uses("cancel_order", "done", order_id="849203")
    assert found(talk) == ()


def test_a_value_that_a_tool_told_again_is_measured_from_there():
    talk = Talk().user(ORDER).says("Noted.").user("And?")
    talk.uses("find", {"order_id": "849203"}, name="me")
    talk.uses("cancel_order", "done", order_id="849203")
    assert found(talk) == ()


def test_many_steps_without_a_message_of_a_user_count_too():
    talk = Talk().uses("find", {"order_id": "849203"}, name="me")
    for _ in range(10):
        talk.uses("look", "nothing", name="me")
    talk.uses("cancel_order", "done", order_id="849203")
    (recall,) = found(talk)
    assert (recall.turns_between, recall.steps_between) == (0, 10)


def test_the_furthest_use_of_a_value_is_kept():
    talk = Talk().user(ORDER)
    for _ in range(3):
        talk.user("Go on.").uses("cancel_order", "done", order_id="849203")
    (recall,) = found(talk)
    assert (recall.needed_step, recall.turns_between) == (6, 3)


def test_values_of_system_prompts_and_tools_are_nobodys_memory():
    talk = Talk().step(StepKind.SYSTEM, "prompt", None, "Call 849203 for help.")
    talk.user(ORDER).user("Cancel it.").uses("cancel", "done", order_id="849203")
    assert found(talk) == ()
    sent = [{"role": "system", "content": "Call 849203."}, {"role": "user"}]
    talk = Talk().user(ORDER).says("Noted.", sent={"messages": sent, "tools": []})
    talk.user("Cancel it.").uses("cancel", "done", order_id="849203")
    assert found(talk) == ()
    tools = [{"name": "cancel", "parameters": {"default": "849203"}}]
    talk = Talk().user(ORDER).says("Noted.", sent={"messages": [], "tools": tools})
    talk.user("Cancel it.").uses("cancel", "done", order_id="849203")
    assert found(talk) == ()


def told_twice(question=ASK, first=ORDER, second="It is 849203."):
    return (
        Talk("desk")
        .user(first)
        .says("Noted.", by=0)
        .user("Please cancel it.")
        .says(question, by=0)
        .user(second)
    )


def test_a_user_who_must_tell_the_same_number_again_shows_a_loss():
    (recall,) = failures(told_twice())
    assert (recall.state, recall.source) == (State.LOST, Source.DETECTED)
    assert (recall.fact, recall.value) == ("order number", "849203")
    assert (recall.told_step, recall.needed_step, recall.turns_between) == (0, 3, 1)
    assert (recall.place, recall.agent) == (Place.CANNOT_TELL, "desk")


def test_a_loss_that_was_detected_is_localised_too():
    talk = Talk("desk").user(ORDER).says("Noted.", by=0).user("Please cancel it.")
    talk.says(ASK, sent=[ORDER, "Please cancel it."], by=0).user("It is 849203.")
    (recall,) = failures(talk)
    assert (recall.place, recall.place_steps) == (Place.IGNORED, (3,))


@pytest.mark.parametrize(
    "question",
    [
        "Could you please confirm your order number?",
        "I couldn't find it. Could you provide your order number again?",
        "Could you provide your order number? I have 849203.",
        "Could you provide your e-mail address?",
        "Could you provide the number of another order?",
        "Shall I cancel it?",
        "Your order number was fine.",
    ],
)
def test_a_question_that_is_no_loss(question):
    assert failures(told_twice(question)) == []


def test_another_value_is_no_loss():
    assert failures(told_twice(second="It is 849204.")) == []


def test_a_value_told_under_another_name_is_no_loss():
    assert failures(told_twice(first="My invoice number is 849203.")) == []


def test_a_value_that_failed_may_be_asked_for_again():
    talk = Talk().user(ORDER).uses("find_order", "Error: no", order_id="849203")
    talk.says("Hm.").user("And now?").says(ASK).user("It is 849203.")
    assert failures(talk) == []


def slipped(written, *, failed=True, name="order_id", told="849203", result="Error: ?"):
    talk = Talk("desk").user(f"My order number is {told}.")
    talk.uses("get_order", "found", by=0, **{name: told})
    talk.user("Now cancel it.")
    return talk.uses("cancel_order", result, failed=failed, by=0, **{name: written})


@pytest.mark.parametrize("written", ["842903", "84923", "8492203", "49203"])
def test_a_slip_of_a_told_value_in_a_call_that_failed_contradicts(written):
    (recall,) = failures(slipped(written))
    assert (recall.state, recall.value) == (State.CONTRADICTED, "849203")
    assert recall.others == (written,)
    assert (recall.told_step, recall.needed_step, recall.agent) == (0, 3, "desk")
    assert written in recall.sentence


@pytest.mark.parametrize("written", ["849204", "111222", "8492031", "9849203"])
def test_another_id_is_no_slip(written):
    assert failures(slipped(written)) == []


def test_a_slip_that_the_tool_knows_is_another_thing():
    assert failures(slipped("842903", failed=False, result={"order": "ok"})) == []


def test_a_slip_in_an_argument_that_is_no_id_is_none():
    assert failures(slipped("842903", name="limit")) == []


def test_a_date_is_no_slip():
    assert failures(slipped("2024-05-02", told="2024-05-20", name="order_id")) == []


def test_a_slip_that_was_told_or_thought_of_before_is_none():
    talk = Talk().user("My order number is 849203 or 842903.")
    talk.uses("get_order", "found", order_id="849203")
    talk.uses("get_order", "Error: ?", failed=True, order_id="842903")
    assert failures(talk) == []
    talk = Talk().user("My order number is 849203.").says("Is 842903 yours, too?")
    talk.uses("get_order", "found", order_id="849203").user("Yes.")
    talk.uses("get_order", "Error: ?", failed=True, order_id="842903")
    assert failures(talk) == []


def test_nothing_is_held_against_a_trace_that_was_not_read_whole():
    talk = slipped("842903")
    talk.uses("dump", "x " * 70_000, of="all")
    assert failures(talk) == []


@pytest.mark.parametrize(
    ("written", "told", "expected"),
    [
        ("84290", "84920", True),
        ("8490", "84920", False),
        ("849920", "84920", True),
        ("84921", "84920", False),
        ("84920", "84920", False),
        ("849200", "84920", True),
        ("849201", "84920", False),
    ],
)
def test_a_slip_is_a_swap_or_one_sign_lost_or_doubled(written, told, expected):
    assert is_slip(written, told) is expected
