"""Planted facts: recalled, lost, contradicted, ambiguous, and every trap in between."""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.engine.check import Answer, Basis, Level
from apps.engine.contracts import BadDefinition, definition_check
from apps.engine.contracts.fact_spec import FactSpec
from apps.engine.contracts.mentions import Normaliser, mentions
from apps.engine.contracts.planted_fact import Memory, remembered
from apps.engine.trace import Body, ModelCall, Step, StepKind
from tests.engine.contracts.stories import (
    answered,
    asked,
    fact,
    only,
    said,
    story,
    used,
)


def memory(answer, value, how="space", decoys=()):
    spec = FactSpec(value, "x", normaliser=Normaliser(how), decoys=decoys)
    return remembered(answer, spec)[0]


@pytest.mark.parametrize(
    ("answer", "value", "how", "expected"),
    [
        ("Your number is 84920.", "84920", "space", Memory.RECALLED),
        ("Your number is 1284920.", "84920", "space", Memory.LOST),
        ("It is not 84920.", "84920", "space", Memory.CONTRADICTED),
        ("It isn't 84920", "84920", "space", Memory.CONTRADICTED),
        ("84920 is wrong.", "84920", "space", Memory.CONTRADICTED),
        ("One of 84920, 84921 or 11111.", "84920", "space", Memory.AMBIGUOUS),
        ("It is 84920, not 84921.", "84920", "space", Memory.RECALLED),
        ("It is 84921.", "84920", "space", Memory.CONTRADICTED),
        ("I do not know. It may be written down.", "84920", "space", Memory.LOST),
        ("I have not forgotten: 84920.", "84920", "space", Memory.RECALLED),
        ("84,920", "84920", "space", Memory.LOST),
        ("84,920.00", "84920", "number", Memory.RECALLED),
        ("184,920", "84920", "number", Memory.LOST),
        ("84920.5", "84920", "number", Memory.LOST),
        ("-84920", "84920", "number", Memory.LOST),
        ("1,84920", "84920", "space", Memory.LOST),
        ("(84920)", "84920", "space", Memory.RECALLED),
        ("Your number is not only 84920.", "84920", "space", Memory.RECALLED),
        ("番号84920です", "84920", "space", Memory.RECALLED),
        ("東京です", "東京", "space", Memory.RECALLED),
        ("id84920です", "84920", "space", Memory.LOST),
        ("It is « 84920 ».", "84920", "exact", Memory.RECALLED),
        ("Es sind 1.234,56 €.", "1234.56", "number", Memory.RECALLED),
        ("C\u2019est 1 234,56 €.", "1234.56", "number", Memory.RECALLED),
        ("Das sind 1.234 Stück.", "1234", "number", Memory.RECALLED),
        ("It is 12 34.", "1234", "number", Memory.LOST),
        ("Row 12 345 boxes", "12", "number", Memory.RECALLED),
        ("It is 418,50.", "418,50", "number", Memory.RECALLED),
        ("It is $418.5.", "418,50", "number", Memory.RECALLED),
        ("Version 3.5.1", "3.5", "number", Memory.LOST),
        ("That is A&amp;B.", "A&B", "space", Memory.RECALLED),
        ("That is A&amp;B.", "A&B", "exact", Memory.LOST),
        ("That is O&#39;Brien.", "O\u2019Brien", "case", Memory.RECALLED),
        ("server srv-010 is up", "srv-01", "space", Memory.LOST),
        ("server srv-01-b is up", "srv-01", "space", Memory.LOST),
        ("server srv-01 is up", "srv-01", "space", Memory.RECALLED),
        ("server SRV-01 is up", "srv-01", "exact", Memory.LOST),
        ("server SRV-01 is up", "srv-01", "case", Memory.RECALLED),
        ("server srv-02 is up", "srv-01", "space", Memory.CONTRADICTED),
        ("it is X9 4417", "X9-4417", "id", Memory.RECALLED),
        ("it is x94417.", "X9-4417", "id", Memory.RECALLED),
        ("it is X9 4417", "X9-4417", "space", Memory.LOST),
        ("it is X9 44170", "X9-4417", "id", Memory.LOST),
        ("it is B7-1234", "X9-4417", "id", Memory.CONTRADICTED),
        ("the  green\nhouse", "green house", "space", Memory.RECALLED),
        ("the Green House", "green house", "case", Memory.RECALLED),
        ("the greenhouse", "green house", "space", Memory.LOST),
        ("", "84920", "space", Memory.LOST),
    ],
)
def test_an_answer_remembers_or_does_not(answer, value, how, expected):
    assert memory(answer, value, how) is expected


def test_decoys_that_were_declared_are_candidates():
    assert memory("the blue house", "green", decoys=("blue",)) is Memory.CONTRADICTED
    assert memory("green or blue", "green", decoys=("blue",)) is Memory.AMBIGUOUS
    assert memory("green, not blue", "green", decoys=("blue",)) is Memory.RECALLED
    assert memory("bluebell", "green", decoys=("blue",)) is Memory.LOST


@given(
    st.text(alphabet="ab1 -", max_size=4),
    st.from_regex(r"[a-z]{1,3}-[0-9]{1,4}", fullmatch=True),
)
def test_a_value_is_found_exactly_where_it_stands_alone(noise, value):
    text = f"{noise}, {value}, {noise}"
    assert value in [found.text for found in mentions(text, value, Normaliser.EXACT)]
    glued = f"x{value}9"
    assert mentions(glued, value, Normaliser.EXACT) == []


def talk(answer, *, told="My number is 84920.", probe="What was my number?"):
    return story(
        asked(0, told),
        answered(1, "Noted."),
        asked(2, "And the weather?"),
        answered(3, "Fine, 11111 m high."),
        asked(4, probe),
        answered(5, answer),
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("It is 84920.", ("quiet", "recalled")),
        ("I do not know.", ("signal", "lost")),
        ("It is 84921.", ("signal", "contradicted")),
        ("84920 or 84921.", ("not_applicable", "ambiguous")),
    ],
)
def test_it_reads_the_answer_of_the_turn_that_needs_the_fact(answer, expected):
    assert said(fact("84920", "my number"), talk(answer)) == expected


def test_the_signal_shows_where_it_was_told_and_needed():
    found = only(fact("84920", "my number?"), talk("No idea."))
    assert found.level is Level.REVIEW_SIGNAL
    assert found.evidence.steps == (0, 4, 5)
    assert found.evidence.facts["told_in_step"] == 1
    assert found.evidence.facts["needed_in_step"] == 5
    assert found.evidence.chance is None
    json.dumps(msgspec.to_builtins(found))


def test_a_fact_used_in_the_arguments_of_a_tool_is_recalled():
    steps = [
        asked(0, "My number is 84920."),
        answered(1, "Noted."),
        asked(2, "Cancel my number."),
        used(3, "cancel", arguments={"number": "84920"}, result="11111 cancelled"),
        answered(4, "Done."),
    ]
    assert said(fact("84920", "cancel"), story(*steps)) == ("quiet", "recalled")


def test_it_says_why_it_does_not_apply():
    check = fact("84920", "my number")
    assert said(check, talk("x", told="Hello.")) == ("not_applicable", "not_planted")
    assert said(check, talk("x", told="It is not 84920.")) == (
        "not_applicable",
        "not_planted",
    )
    assert said(check, talk("x", probe="Goodbye.")) == ("not_applicable", "not_needed")
    assert said(check, talk("84920", probe="Is my number 84920?")) == (
        "not_applicable",
        "leading_probe",
    )
    bare = story(Step(seq=0, kind=StepKind.USER_MESSAGE))
    assert said(check, bare) == ("not_applicable", "bodies_missing")
    unanswered = story(asked(0, "84920"), asked(1, "my number"))
    assert said(check, unanswered) == ("not_applicable", "no_answer")


def test_a_probe_before_the_fact_needs_nothing():
    steps = [asked(0, "What is my number?"), answered(1, "?"), asked(2, "It is 84920.")]
    assert said(fact("84920", "my number"), story(*steps)) == (
        "not_applicable",
        "not_needed",
    )


def test_every_turn_that_needs_it_is_answered():
    steps = [*talk("It is 84920.").steps, asked(6, "my number again"), answered(7, "?")]
    one, other = fact("84920", "my number").run(story(*steps))
    assert (one.evidence.scope, one.answer) == ("trace", Answer.QUIET)
    assert (other.evidence.scope, other.answer) == ("probe 2", Answer.SIGNAL)


def test_the_message_that_plants_it_can_be_marked():
    steps = [
        asked(0, "Another number is 84920."),
        asked(1, "Remember: 84920."),
        asked(2, "my number?"),
        answered(3, "84920"),
    ]
    found = only(fact("84920", "my number", plant="remember*"), story(*steps))
    assert found.evidence.facts["told_in_step"] == 2


def call_with(seq, history, answer):
    body = Body(input={"messages": history}, output=answer)
    return Step(seq=seq, kind=StepKind.MODEL_CALL, call=ModelCall(model="m"), body=body)


def test_turns_are_found_in_what_was_sent_where_messages_are_no_steps():
    first = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "My number is 84920."},
    ]
    later = [
        *first,
        {"role": "assistant", "content": "Noted."},
        {"role": "user", "content": [{"type": "text", "text": "What was my number?"}]},
    ]
    for answer, expected in (("84920", "recalled"), ("no idea", "lost")):
        trace = story(call_with(0, first, "Noted."), call_with(1, later, answer))
        assert said(fact("84920", "my number?"), trace)[1] == expected


def test_steps_in_any_order_give_the_same_answer_and_hashes_follow_the_texts():
    check = fact("84920", "my number")
    trace = talk("No.")
    assert only(check, story(*reversed(trace.steps))) == only(check, trace)
    assert only(check, talk("None.")).input_hash != only(check, trace).input_hash
    other = fact("84920", "my number", decoys=["84921"])
    assert only(other, trace).input_hash == only(check, trace).input_hash


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"probe": "x"}, "", "The field “value” is missing."),
        ({"value": "", "probe": "x"}, "value", "letter or a digit"),
        ({"value": "--", "probe": "x"}, "value", "letter or a digit"),
        ({"value": "x" * 201, "probe": "x"}, "value", "at most 200"),
        ({"value": "x", "probe": "x", "normaliser": "number"}, "value", "not a number"),
        ({"value": "x", "probe": " * "}, "probe", "by which words"),
        ({"value": "x", "probe": "p" * 301}, "probe", "at most 300"),
        ({"value": "x", "probe": "p", "decoys": ["X"]}, "decoys", "the value itself"),
        ({"value": "x", "probe": "p", "decoys": ["y"] * 21}, "decoys", "at most 20"),
        (
            {"value": "x", "probe": "p", "normaliser": "y"},
            "normaliser",
            "“y” is none of the words",
        ),
    ],
)
def test_a_wrong_fact_is_refused_with_a_sentence_that_names_the_field(
    spec, field, words
):
    with pytest.raises(BadDefinition) as refused:
        definition_check(kind="planted-fact", slug="x", label="X", version=1, spec=spec)
    assert words in str(refused.value)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"slug": "A b"}, "slug"),
        ({"slug": "x" * 28}, "slug"),
        ({"slug": ""}, "slug"),
        ({"label": " "}, "label"),
        ({"kind": "other"}, "kind"),
    ],
)
def test_names_and_kinds_are_bounded(fields, field):
    given_fields = {
        "kind": "planted-fact",
        "slug": "x",
        "label": "X",
        "version": 1,
        "spec": {"value": "x", "probe": "y"},
    }
    with pytest.raises(BadDefinition) as refused:
        definition_check(**(given_fields | fields))
    assert refused.value.field == field


def test_it_has_four_texts_and_its_slug_fits():
    check = definition_check(
        kind="planted-fact",
        slug="x" * 27,
        label="X",
        version=3,
        spec={"value": "84920", "probe": "number"},
    )
    texts = [check.observes, check.null_model, check.material_when, check.next_step]
    assert all(len(text.split()) >= 8 and text.endswith(".") for text in texts)
    assert check.basis is Basis.FACT
    assert check.needs_bodies
    assert len(check.slug) == 40
    json.dumps(check.parameters)


@pytest.mark.parametrize(
    "text", ["X9" + "-" * 200_000, "X9-" * 60_000, "9" * 200_000, "not " * 50_000]
)
def test_no_text_makes_the_search_slow(text):
    started = time.process_time()
    for how in Normaliser:
        mentions(text, "4417" if how is Normaliser.NUMBER else "X9-4417", how)
    assert time.process_time() - started < 5


def test_half_of_a_surrogate_pair_is_no_reason_to_stop():
    assert said(fact("84920", "my number"), talk("x\ud800"))[1] == "lost"


@pytest.mark.parametrize(
    ("probe", "answer"),
    [("total | tax", "signal"), ("TOTAL*tax", "signal"), ("total", "signal")],
)
def test_a_mark_is_taken_as_it_is_written_bar_and_all(probe, answer):
    trace = story(
        asked(0, "The code is 84920."),
        answered(1, "Noted."),
        asked(2, "Fill in: total | tax | code, please."),
        answered(3, "No idea."),
    )
    assert said(fact("84920", probe), trace)[0] == answer
    assert said(fact("84920", "code of | tax"), trace)[1] == "not_needed"


@pytest.mark.parametrize("piece", ["1 234 ", "12 ", "1,234,", "1.", "&amp;", "- 1 "])
def test_a_long_answer_full_of_numbers_is_read_in_time(piece):
    started = time.process_time()
    text = piece * 100_000 + " 1234.5"
    assert memory(text, "1234.5", "number") is Memory.RECALLED
    assert time.process_time() - started < 5
