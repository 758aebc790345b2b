"""Decoding a memory test, with a sentence and the field for what cannot be used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.contracts.fact_spec import LONGEST_VALUE, decoded_fact
from apps.engine.contracts.mentions import mentions, normalised
from apps.engine.contracts.spec import BadDefinition, in_words
from apps.engine.extraction import BadDecision, decoded_decision, encoded
from apps.engine.memory_tests.filler import LANGUAGES
from apps.engine.memory_tests.spec import (
    VALUE,
    Fact,
    Length,
    MemoryTest,
    Mode,
    writings,
)

MOST_FACTS: Final = 20
MOST_DEPTHS: Final = 30
DEEPEST: Final = 1_000
MOST_REPEATS: Final = 200
MOST_TEXTS: Final = 2_000
MOST_ACCEPTED: Final = 20
LONGEST_TEXT: Final = 4_000
MOST_TURNS: Final = 200_000
_SLUG: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def decoded_memory_test(value: Any) -> MemoryTest:
    """The test in a JSON value; raises `BadDefinition` with field and sentence.

    Depths come back in rising order, each once.
    """
    try:
        test = msgspec.convert(value, MemoryTest)
    except (msgspec.ValidationError, RecursionError) as error:
        raise in_words(error) from None
    if not 1 <= len(test.facts) <= MOST_FACTS:
        raise BadDefinition(f"Plant 1 to {MOST_FACTS} facts.", field="facts")
    facts = tuple(
        [_fact(fact, f"facts[{number}]") for number, fact in enumerate(test.facts)]
    )
    test = msgspec.structs.replace(
        test, facts=facts, depths=tuple(sorted(set(test.depths)))
    )
    _refuse_alike_facts(test)
    _refuse_leaks(test)
    _refuse_depths(test)
    _refuse_numbers(test)
    _refuse_filler(test)
    return test


def _fact(fact: Fact, at: str) -> Fact:
    if len(fact.slug) > 60 or not _SLUG.fullmatch(fact.slug):
        raise BadDefinition(
            "A slug has small letters, digits and single hyphens, at most 60.",
            field=f"{at}.slug",
        )
    _refuse_values(fact, at)
    _refuse_texts(fact, at)
    if fact.decision is None:
        if fact.expected is not None:
            raise BadDefinition(
                "What is expected belongs to a decision; say how it is found.",
                field=f"{at}.decision",
            )
        return fact
    if fact.expected is None:
        raise BadDefinition(
            "Say which decision is expected of an agent that knows the fact.",
            field=f"{at}.expected",
        )
    try:
        decision = decoded_decision(encoded(fact.decision))
    except BadDecision as error:
        field = f"{at}.decision.{error.field}".rstrip(".")
        raise BadDefinition(str(error), field=field) from None
    return msgspec.structs.replace(fact, decision=decision)


def _refuse_values(fact: Fact, at: str) -> None:
    """The rules of planted facts for value, decoys and each accepted writing."""
    decoys = [decoy.value for decoy in fact.decoys]
    if len(fact.accepted) > MOST_ACCEPTED:
        raise BadDefinition(
            f"Accept at most {MOST_ACCEPTED} other writings.", field=f"{at}.accepted"
        )
    for form in writings(fact):
        is_own = form is fact.value
        try:
            decoded_fact(
                {
                    "value": form,
                    "probe": "-x",
                    "normaliser": fact.normaliser.value,
                    "decoys": decoys,
                }
            )
        except BadDefinition as error:
            is_decoy = error.field == "decoys"
            name = "decoys" if is_decoy else "value" if is_own else "accepted"
            raise BadDefinition(str(error), field=f"{at}.{name}") from None


def _refuse_texts(fact: Fact, at: str) -> None:
    for field, text in _told_texts(fact):
        if text.count(VALUE) != 1:
            raise BadDefinition(
                f"The text that tells a value has {VALUE} in it, once.",
                field=f"{at}.{field}",
            )
    for field, text in (*_told_texts(fact), ("probe", fact.probe)):
        if not text.strip() or len(text) + LONGEST_VALUE > LONGEST_TEXT:
            raise BadDefinition(
                "A text has something to say, in at most "
                f"{LONGEST_TEXT - LONGEST_VALUE:,} characters.",
                field=f"{at}.{field}",
            )


def _told_texts(fact: Fact) -> Iterator[tuple[str, str]]:
    yield "telling", fact.telling
    for number, decoy in enumerate(fact.decoys):
        yield f"decoys[{number}].telling", decoy.telling


def _refuse_alike_facts(test: MemoryTest) -> None:
    slugs: set[str] = set()
    values: dict[str, str] = {}
    for number, fact in enumerate(test.facts):
        if fact.slug in slugs:
            raise BadDefinition(
                f"Two facts are called “{fact.slug}”.", field=f"facts[{number}].slug"
            )
        slugs.add(fact.slug)
        for form in writings(fact):
            key = normalised(form, fact.normaliser).casefold()
            other = values.setdefault(key, fact.slug)
            if other != fact.slug:
                raise BadDefinition(
                    f"“{form[:60]}” is a value of “{other}” too, so an answer could "
                    "not be told apart.",
                    field=f"facts[{number}].value",
                )


def _refuse_leaks(test: MemoryTest) -> None:
    """No text but the one that tells it may name a value, else it is not buried."""
    for number, fact in enumerate(test.facts):
        for field, text, told_by in _texts(test):
            is_own = told_by == f"facts[{number}]"
            if is_own and field.endswith("].telling") and ".decoys" not in field:
                continue
            for form in writings(fact):
                if mentions(text, form, fact.normaliser):
                    raise BadDefinition(
                        f"The text names “{form[:60]}”, the value of “{fact.slug}”, "
                        "so it would tell it again.",
                        field=field,
                    )
        for decoy in fact.decoys:
            if mentions(fact.probe, decoy.value, fact.normaliser):
                raise BadDefinition(
                    f"The probe names the decoy “{decoy.value[:60]}”.",
                    field=f"facts[{number}].probe",
                )


def _texts(test: MemoryTest) -> Iterator[tuple[str, str, str]]:
    """Yield field, text and owner of everything that is said of the facts."""
    for number, fact in enumerate(test.facts):
        at = f"facts[{number}]"
        yield f"{at}.telling", fact.telling, at
        yield f"{at}.probe", fact.probe, at
        for place, decoy in enumerate(fact.decoys):
            text = decoy.telling.replace(VALUE, decoy.value)
            yield f"{at}.decoys[{place}].telling", text, at


def _refuse_depths(test: MemoryTest) -> None:
    if not 1 <= len(test.depths) <= MOST_DEPTHS:
        raise BadDefinition(f"Name 1 to {MOST_DEPTHS} depths.", field="depths")
    if test.depths[0] < 0 or test.depths[-1] > DEEPEST:
        raise BadDefinition(f"A depth lies between 0 and {DEEPEST:,}.", field="depths")
    least = len(test.facts) - 1
    if test.depths[0] < least:
        raise BadDefinition(
            f"With {len(test.facts)} facts told one after the other, at least {least} "
            "turns lie between telling and asking; take a greater least depth.",
            field="depths",
        )


def _refuse_numbers(test: MemoryTest) -> None:
    if not 1 <= test.repeats <= MOST_REPEATS:
        raise BadDefinition(
            f"Repeat each depth 1 to {MOST_REPEATS} times.", field="repeats"
        )
    if not 0 < test.certain_from < 1:
        raise BadDefinition(
            "The share lies between 0 and 1; nothing reaches 1 in a finite number of "
            "trials.",
            field="certain_from",
        )
    if (test.mode is Mode.SUMMARISED) != (test.summary_every > 0):
        raise BadDefinition(
            "Say after how many turns there is a summary."
            if test.mode is Mode.SUMMARISED
            else "Only a summarised conversation has turns to a summary.",
            field="summary_every",
        )
    is_equal = test.length is Length.EQUAL
    buried = [test.depths[-1] if is_equal else depth for depth in test.depths]
    around = 2 * len(test.facts) + sum([len(fact.decoys) for fact in test.facts])
    if (sum(buried) + around * len(buried)) * test.repeats > MOST_TURNS:
        raise BadDefinition(
            f"That is more than {MOST_TURNS:,} turns; take fewer depths or repeats.",
            field="repeats",
        )


def _refuse_filler(test: MemoryTest) -> None:
    filler = test.filler
    if len(filler.texts) > MOST_TEXTS:
        raise BadDefinition(f"Give at most {MOST_TEXTS:,} texts.", field="filler.texts")
    for number, text in enumerate(filler.texts):
        if not text.strip() or len(text) > LONGEST_TEXT:
            raise BadDefinition(
                f"A text has 1 to {LONGEST_TEXT:,} characters.",
                field=f"filler.texts[{number}]",
            )
    strange = [one for one in filler.languages if one not in LANGUAGES]
    if strange:
        raise BadDefinition(
            f"There are no texts in “{strange[0][:20]}”; there are some in "
            f"{', '.join(LANGUAGES)}.",
            field="filler.languages",
        )
    if not filler.languages and not filler.texts:
        raise BadDefinition("Name a language or give texts.", field="filler")
