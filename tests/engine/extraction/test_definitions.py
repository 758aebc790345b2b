"""Definitions of decisions as people write them: read, refused, and said in words."""

from __future__ import annotations

import pytest

from apps.engine.extraction import (
    AUTOMATIC,
    NORMALISERS,
    BadDecision,
    DecisionNormaliser,
    decoded_decision,
    encoded,
    sentence_of,
)


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"kind": "guess"}, "kind", "“guess” is none of the words"),
        ({"kind": "jmespath"}, "expression", "the expression is empty"),
        ({"kind": "jmespath", "expression": "a["}, "expression", "is no JMESPath"),
        ({"kind": "jmespath", "expression": "[" * 400}, "expression", "is no JMESPath"),
        ({"kind": "jmespath", "expression": "a" * 501}, "expression", "at most 500"),
        ({"kind": "jmespath", "expression": "join(',', a)"}, "expression", "“join”"),
        ({"kind": "jmespath", "expression": "boom(a)"}, "expression", "“boom”"),
        (
            {"kind": "jmespath", "expression": "|".join(["[@,@]"] * 4)},
            "expression",
            "at most 3 lists",
        ),
        (
            {"kind": "jmespath", "expression": ".".join("a" * 90)},
            "expression",
            "80 parts",
        ),
        ({"kind": "regex", "expression": "(a"}, "expression", "no pattern of RE2"),
        ({"kind": "regex", "expression": "(?=a)b"}, "expression", "no pattern of RE2"),
        ({"kind": "regex", "expression": "((a{90}){90}){9}"}, "expression", "RE2"),
        (
            {"kind": "regex", "expression": "a", "tool": "pay"},
            "tool",
            "A tool is named",
        ),
        ({"kind": "regex", "expression": "a", "labels": ["x"]}, "labels", "takes no"),
        ({"kind": "automatic", "expression": "a"}, "expression", "takes no"),
        ({"kind": "whole_output", "tool": "a"}, "tool", "takes no “tool”"),
        ({"kind": "label"}, "labels", "Declare 1 to 50 labels"),
        ({"kind": "label", "labels": ["a", " "]}, "labels", "1 to 100 characters"),
        ({"kind": "label", "labels": ["A b", "a  B"]}, "labels", "Two labels differ"),
        ({"kind": "last_tool_call", "tool": "x" * 501}, "tool", "at most 500"),
        ({"kind": "last_tool_call", "arguments": [""]}, "arguments", "1 to 200"),
        ({"normalisers": ["round"]}, "normalisers", "“round” is none of the words"),
        ({"other": 1}, "", "A field “other” is not known."),
        ([], "", "Expected"),
    ],
)
def test_a_definition_that_cannot_be_used_is_refused_with_field_and_sentence(
    spec, field, words
):
    with pytest.raises(BadDecision) as refused:
        decoded_decision(spec)
    assert refused.value.field.startswith(field)
    assert words in str(refused.value)
    assert str(refused.value).endswith((".", "”."))


def test_equal_definitions_have_one_encoding():
    one = decoded_decision(
        {"kind": "label", "labels": ["a"], "normalisers": ["case", "date"]}
    )
    other = decoded_decision(
        {"labels": ["a"], "kind": "label", "normalisers": ["date", "case", "date"]}
    )
    assert one == other
    assert encoded(one) == encoded(other)
    assert decoded_decision(encoded(one)) == one
    assert decoded_decision({}) == AUTOMATIC


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            {"kind": "jmespath", "expression": "route", "normalisers": ["case"]},
            "The field “route” of the output, upper and lower case alike.",
        ),
        (
            {"kind": "jmespath", "expression": "a.b", "source": "arguments",
             "tool": "pay|refund", "normalisers": [], "of": "each"},
            "What is found at “a.b” in the arguments of the last call of “pay” or "
            "“refund”, in each of its invocations.",
        ),
        (
            {"kind": "regex", "expression": "x+", "place": "first", "normalisers": [],
             "of": "first"},
            "The first match of “x+” in the output, in its first invocation.",
        ),
        (
            {"kind": "last_tool_call", "arguments": ["a", "b"], "normalisers": ["id"]},
            "The last call of any tool with “a”, “b”, ids alike with or without "
            "separators.",
        ),
        (
            {"kind": "label", "labels": ["yes", "no"], "normalisers": []},
            "The one label that the output names, of “yes”, “no”.",
        ),
        (
            {"kind": "whole_output", "prose": True, "normalisers": []},
            "The whole output, prose too.",
        ),
        (
            {},
            "What the automatic rules find first, white space of any length alike, all "
            "writings of a number alike, upper and lower case alike.",
        ),
    ],
)  # fmt: skip
def test_a_definition_is_said_in_words(spec, sentence):
    assert sentence_of(decoded_decision(spec)) == sentence


def test_every_normaliser_has_words():
    assert set(NORMALISERS) == set(DecisionNormaliser)
