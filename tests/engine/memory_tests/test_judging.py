"""What an answer shows of a fact, by its words or by what is decided."""

from __future__ import annotations

import pytest

from apps.engine.memory_tests import Act, ActKind, Heard, Recollection
from apps.engine.memory_tests.judging import judged_answer, judged_turn
from apps.engine.memory_tests.named import names_fact
from apps.engine.replay.run import (
    AnswerSource,
    ErrorKind,
    RunError,
    ToolAnswer,
    ToolCalled,
)
from tests.engine.memory_tests.agents import COLOUR, LOCKER, NUMBER, a_test

ACCEPTS = NUMBER | {"accepted": ["eighty-four nine twenty"]}
BLUE = COLOUR | {"decoys": [{"value": "blue", "telling": "Ana likes {value}."}]}
FACTS = {
    "locker": a_test(LOCKER).facts[0],
    "order": a_test(ACCEPTS).facts[0],
    "colour": a_test(BLUE).facts[0],
}


@pytest.mark.parametrize(
    ("slug", "answer", "expected", "others"),
    [
        ("order", "It is 84920.", "recalled", ()),
        ("order", "It is 1284920.", "lost", ()),
        ("order", "It is not 84920.", "contradicted", ()),
        ("order", "It is 84921.", "contradicted", ("84921",)),
        ("order", "84920, 84921 or 11111.", "ambiguous", ("84921", "11111")),
        ("order", "Eighty-four nine twenty!", "recalled", ()),
        ("order", "Eighty-four nine twenty, or 84921.", "ambiguous", ("84921",)),
        ("order", "I do not know.", "lost", ()),
        ("order", {"order": 84920, "note": "as told"}, "recalled", ()),
        ("order", {"name": "84920"}, "recalled", ()),
        ("order", [{"role": "user", "content": "84920"}], "lost", ()),
        ("locker", "x9 4417", "recalled", ()),
        ("locker", "It is X9-4417, not X9-4418.", "recalled", ()),
        ("locker", "It is X9-4418.", "contradicted", ("X9-4418",)),
        ("locker", "It is X9-44170.", "lost", ()),
        ("locker", "储物柜的密码是X9-4417。", "recalled", ()),
        ("colour", "You like green.", "recalled", ()),
        ("colour", "You like blue.", "contradicted", ("blue",)),
        ("colour", "Evergreen trees.", "lost", ()),
    ],
)
def test_each_trap_is_judged_by_the_rules_for_planted_facts(
    slug, answer, expected, others
):
    judged = judged_answer(answer, FACTS[slug])
    assert (judged.recollection.value, judged.others) == (expected, others)
    assert judged.sentence.endswith((".", "read off."))


def turn(value=None, **fields):
    act = Act(kind=ActKind.TURN, turn=3, text="Send it, please.")
    return Heard(act=act, value=value, **fields)


def call(tool, arguments):
    answer = ToolAnswer(source=AnswerSource.STATIC, result="ok")
    return ToolCalled(tool=tool, arguments=arguments, answer=answer)


BY_FIELD = {"decision": {"kind": "jmespath", "expression": "code"}}
BY_CALL = {
    "decision": {"kind": "last_tool_call", "tool": "open_*", "arguments": ["code"]}
}


@pytest.mark.parametrize(
    ("how", "expected", "heard", "recollection"),
    [
        (BY_FIELD, "x9-4417", turn({"code": " X9-4417 "}), "recalled"),
        (BY_FIELD, "x9-4417", turn('{"code": "X9-4418"}'), "contradicted"),
        (BY_FIELD, "x9-4417", turn("I do not know."), "lost"),
        (
            BY_CALL,
            {"tool": "open_locker", "arguments": {"code": "X9-4417"}},
            turn("Done.", events=(call("open_locker", {"code": "X9-4417", "n": 1}),)),
            "recalled",
        ),
        (
            BY_CALL,
            {"tool": "open_locker", "arguments": {"code": "X9-4417"}},
            turn(None, events=(call("open_locker", {"code": "Q1"}),)),
            "contradicted",
        ),
        (BY_CALL, {"tool": "open_locker", "arguments": {}}, turn("Done."), "lost"),
    ],
)
def test_a_decision_that_depends_on_the_fact_is_judged_in_its_place(
    how, expected, heard, recollection
):
    fact = a_test(LOCKER | how | {"expected": expected}).facts[0]
    judged = judged_turn(heard, fact)
    assert judged.recollection.value == recollection, judged.sentence


@pytest.mark.parametrize(
    "heard",
    [
        turn(None),
        turn(""),
        turn(error=RunError(kind=ErrorKind.TIMED_OUT, sentence="It took too long.")),
    ],
)
def test_no_answer_is_a_failure_and_never_a_lost_fact(heard):
    assert judged_turn(heard, FACTS["order"]).recollection is Recollection.FAILED


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ({"notes": ["the locker is X9 4417"]}, True),
        ({"X9-4417": "locker"}, True),
        ('{"notes": [{"code": "x94417"}]}', True),
        ({"notes": ["the locker is not X9-4417"]}, False),
        ({"notes": []}, False),
        (None, None),
        ({"notes": ["[redacted: code]"]}, None),
        ("a " * 600_000, None),
    ],
)
def test_what_is_kept_names_a_fact_does_not_or_cannot_be_told(value, names):
    assert names_fact(value, FACTS["locker"]) is names
