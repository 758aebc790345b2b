"""Paraphrases: what each changes, what it leaves alone, and where the words go."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.engine.bodies.canonical import canonical
from apps.engine.replay.case import Case
from apps.engine.replay.paraphrases import (
    PARAPHRASES,
    DoesNotApply,
    refuse_wordings,
    reworded,
    why_not,
)
from apps.engine.replay.regimes import (
    RegimesAsked,
    applicable,
    regime_in_words,
    regimes_of,
)
from apps.engine.replay.run import Regime, RegimeKind

SLUGS = [one.slug for one in PARAPHRASES]
OF_JSON = [one.slug for one in PARAPHRASES if one.is_of_json]


def case(asked, *messages, name=""):
    return Case(agent="a", name=name, input=asked, messages=tuple(messages))


def user(content):
    return {"role": "user", "content": content}


@pytest.mark.parametrize(
    ("slug", "text", "expected"),
    [
        ("polite", "Refund it", "Please help with the following.\n\nRefund it"),
        ("first-letter", "Refund order 7", "refund order 7"),
        ("first-letter", "élan is it", "Élan is it"),
        ("first-letter", "FTP is down", None),
        ("first-letter", "iPhone lost", None),
        ("first-letter", "srv-01 is down", None),
        ("first-letter", "7 orders", None),
        ("first-letter", "注文 7", None),
        ("two-spaces", "a b c", "a  b  c"),
        ("two-spaces", "if x:\n    y = 1", None),
        ("two-spaces", "say “a b” to him", None),
        ("two-spaces", "word", None),
        ("sentence-lines", "I paid. You did not. Why?", "I paid.\nYou did not.\nWhy?"),
        ("sentence-lines", "Version 2. 5 is out", None),
        ("sentence-lines", "A.\nB. C", None),
        ("blank-lines", "x", "\n\nx\n\n"),
        ("no-full-stop", "Refund order seven. ", "Refund order seven "),
        ("no-full-stop", "Do you?", None),
        ("no-full-stop", "And so on...", None),
        ("no-full-stop", "Ask Acme Inc.", None),
        ("no-full-stop", "It costs 7.", None),
        ("quoted", "Refund it", "The request is: “Refund it”"),
        ("quoted", "say “no”", None),
        ("decomposed", "Straße für é", unicodedata.normalize("NFD", "Straße für é")),
        ("decomposed", "plain", None),
        ("json-keys", '{"a": 1, "b": {"c": 1, "d": 2}}',
         '{"b": {"d": 2, "c": 1}, "a": 1}'),
        ("json-keys", {"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ("json-keys", '{"a": 1}', None),
        ("json-keys", "no JSON", None),
        ("json-spread", '{"a": [1]}', '{\n  "a": [\n    1\n  ]\n}'),
        ("json-spread", {"a": 1}, None),
        ("json-decimals", '{"n": 3, "t": "3", "b": true}',
         '{"n": 3.0, "t": "3", "b": true}'),
        ("json-decimals", {"n": [10**16]}, None),
        ("polite", '{"a": 1}', None),
        ("polite", None, None),
        ("polite", "  ", None),
    ],
)  # fmt: skip
def test_a_transformation_changes_what_it_says_and_nothing_else(slug, text, expected):
    given_case = case(text, name="one") if text is not None else case(None)
    if expected is None:
        with pytest.raises(DoesNotApply, match="does not apply"):
            reworded(given_case, slug)
        return
    new = reworded(given_case, slug)
    # Equal objects may differ in the order of their keys, which is what is changed.
    assert json.dumps(new.input) == json.dumps(expected)
    assert new.name == f"one · {slug}"


def test_the_last_words_of_a_user_change_with_the_input():
    system, before = {"role": "system", "content": "S"}, user("Hello there")
    reply = {"role": "assistant", "content": "Hi"}
    asked = case("Refund it", system, before, reply, user("Task: Refund it\nEnd"))
    new = reworded(asked, "first-letter")
    assert new.messages[:3] == (system, before, reply)
    assert new.messages[3] == user("Task: refund it\nEnd")
    parts = case("Refund it", user([{"type": "text", "text": "Refund it"}, {"x": 1}]))
    assert reworded(parts, "first-letter").messages == (
        user([{"type": "text", "text": "refund it"}, {"x": 1}]),
    )
    alone = reworded(case(None, user("Refund it")), "first-letter")
    assert (alone.input, alone.messages) == (None, (user("refund it"),))
    field = reworded(case({"question": "Refund it", "id": "A-7"}), "first-letter")
    assert field.input == {"question": "refund it", "id": "A-7"}


def test_a_case_in_which_only_one_of_the_two_would_change_is_left_alone():
    told_otherwise = case({"a": 1, "b": 2}, user("Here is an order"))
    assert "does not apply" in why_not(told_otherwise, "json-keys")
    assert why_not(case("Refund it"), "polite") == ""


def test_declared_wordings_take_the_place_of_the_input():
    texts = ("Money back, please", "Refund it")
    asked = case("Refund it", user("Task: Refund it"))
    new = reworded(asked, "declared-1", declared=texts)
    assert (new.input, new.messages[0]["content"]) == (
        "Money back, please",
        "Task: Money back, please",
    )
    assert "is the input itself" in why_not(asked, "declared-2", declared=texts)
    for slug in ("declared-3", "declared-0", "declared-x", "upside-down"):
        with pytest.raises(LookupError):
            reworded(asked, slug, declared=texts)


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ([" "], "Wording 1 is empty."),
        (["a", "a "], "same text"),
        (["x" * 70_000], "more than 65,536"),
        (["w"] * 51, "at most 50"),
    ],
)
def test_wordings_that_cannot_be_used_are_refused(texts, sentence):
    with pytest.raises(ValueError, match=sentence):
        refuse_wordings(texts)
    refuse_wordings(["a", "b"])


@settings(max_examples=150)
@given(
    st.text(max_size=60) | st.text("abc AB.?!\n\"{}[]:é1", max_size=40)
    | st.dictionaries(st.text("ab", max_size=2), st.integers(-5, 5), max_size=3),
    st.sampled_from(SLUGS),
)  # fmt: skip
def test_any_transformation_keeps_the_words_and_is_deterministic(asked, slug):
    before = case(asked, user(asked if isinstance(asked, str) else json.dumps(asked)))
    try:
        new = reworded(before, slug)
    except DoesNotApply:
        return
    assert new == reworded(before, slug)
    assert before.input == asked
    if slug in OF_JSON:
        assert canonical(new.input) == canonical(before.input)
        return
    words = {"polite": "pleasehelpwiththefollowing.", "quoted": "therequestis:“”"}
    kept = "".join(unicodedata.normalize("NFC", new.input).split()).casefold()
    old = "".join(unicodedata.normalize("NFC", asked).split()).casefold()
    assert kept.replace("“", "").replace("”", "").removeprefix(
        words.get(slug, "").replace("“", "").replace("”", "")
    ).rstrip(".") == old.rstrip(".")


def test_every_transformation_says_what_it_keeps():
    assert len(set(SLUGS)) == len(SLUGS) >= 10
    for one in PARAPHRASES:
        assert one.keeps.endswith(".")
        assert one.label[0].isupper()


def test_the_regimes_that_were_asked_for_come_in_order_and_once():
    asked = RegimesAsked(
        sampling=(0.7, None, 0.7), paraphrases=("polite", "json-keys"), declared=("x",)
    )
    regimes = regimes_of(asked)
    assert [regime_in_words(one) for one in regimes] == [
        "Temperature 0",
        "Temperature 0.7",
        "The target's own temperature",
        "Asks politely",
        "Turns the order of the keys of JSON objects round",
        "Declared wording 1",
    ]
    taken, skipped = applicable(case("Refund it"), regimes, declared=asked.declared)
    assert [one.regime.paraphrase for one in skipped] == ["json-keys"]
    assert skipped[0].reason.startswith("“Turns the order")
    assert len(taken) == 5
    hot = Regime(kind=RegimeKind.PARAPHRASE, paraphrase="polite", temperature=1.0)
    assert regime_in_words(hot) == "Asks politely, temperature 1"
    assert regimes_of(RegimesAsked(determinism=False)) == ()
