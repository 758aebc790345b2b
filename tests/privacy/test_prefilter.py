"""The quick look before redaction never loses a rule that a longer look would keep."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.privacy.prefilter import Prefilter
from apps.engine.privacy.redaction import Redactor
from apps.engine.privacy.rules import RULES
from apps.engine.trace import Body, Step, StepKind, Trace

ALL = Prefilter(RULES)
PIECES = sorted(
    {t.decode() for rule in RULES for t in rule.triggers} | set("@_-/.kwz\n")
)


def one_by_one(low: bytes) -> list[str]:
    passed = {}
    return [rule.slug for rule in RULES if rule.may_match(low, passed)]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=12))
def test_it_finds_the_same_rules_as_each_rule_asked_alone(pieces):
    low = "".join(pieces).encode().lower()
    assert [rule.slug for rule in ALL.candidates(low)] == one_by_one(low)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.slug)
def test_it_keeps_the_rule_of_every_secret_wherever_it_stands(rule):
    for hit in rule.hits:
        for text in (hit, f"before\n{hit}", f'{{"k": "x {hit} y"}}'):
            assert rule in ALL.candidates(text.encode().lower())


def trace(*outputs):
    steps = tuple(
        Step(seq=seq, kind=StepKind.SYSTEM, body=Body(output=output))
        for seq, output in enumerate(outputs)
    )
    return Trace(name="t", steps=steps)


def test_a_long_prompt_that_was_searched_before_hides_no_secret_beside_it():
    prompt = "Be kind to the customer. " * 80
    redactor = Redactor()
    clean = trace(prompt, "hello")
    assert redactor.trace(clean) is clean
    changed = redactor.trace(trace(prompt, "write to jane.doe@mail.acme.com"))
    assert changed.steps[0].body.output == prompt
    assert changed.steps[1].body.output == "write to [redacted: e-mail]"
    assert redactor.counts == {"e-mail": 1}


def test_a_long_prompt_with_a_secret_is_redacted_every_time():
    prompt = "Ask jane.doe@mail.acme.com for help. " * 80
    redactor = Redactor()
    for _ in range(3):
        [step] = redactor.trace(trace(prompt)).steps
        assert "jane" not in step.body.output
    assert redactor.counts == {"e-mail": 240}
