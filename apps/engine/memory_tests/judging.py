"""What became of each fact in a trial: recalled, lost, contradicted, ambiguous, failed.

Answers are judged by the rules for planted facts: a value counts as a whole token, not
where it is denied, and one among several candidates is ambiguous. It is not judged
whether an answer is right in anything else, nor what it means in other words.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from apps.engine.bodies.canonical import canonical
from apps.engine.bodies.texts import said_in
from apps.engine.conduct import whole_conduct
from apps.engine.contracts.fact_spec import FactSpec
from apps.engine.contracts.mentions import normalised
from apps.engine.contracts.planted_fact import Memory, remembered
from apps.engine.extraction import Extractor
from apps.engine.extraction.normalisers import Normalised
from apps.engine.memory import State
from apps.engine.memory.recall import MOST_OTHERS, cut
from apps.engine.memory_tests.conversation import Heard
from apps.engine.memory_tests.heard_trace import trace_of_turn
from apps.engine.memory_tests.spec import Fact, writings


class Recollection(StrEnum):
    """What a trial showed of one fact. All but recalled count against it."""

    RECALLED = State.RECALLED.value
    LOST = State.LOST.value
    CONTRADICTED = State.CONTRADICTED.value
    AMBIGUOUS = State.AMBIGUOUS.value
    FAILED = "failed"


NOT_JUDGED: Final = (
    "paraphrases of a value that are not among its accepted writings",
    "negation other than in English and next to the value",
    "what an agent keeps in a form that does not name the value",
)
_OF_MEMORY: Final = {
    Memory.RECALLED: Recollection.RECALLED,
    Memory.LOST: Recollection.LOST,
    Memory.CONTRADICTED: Recollection.CONTRADICTED,
    Memory.AMBIGUOUS: Recollection.AMBIGUOUS,
}


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What one answer shows, in a sentence; `others` are the candidates besides it."""

    recollection: Recollection
    sentence: str
    others: tuple[str, ...] = ()


def judged_answer(answer: Any, fact: Fact) -> Judged:
    """What the words of an answer do with a fact. Never raises for a JSON value."""
    return _by_words(said_in(answer) or _plain(answer), fact)


def judged_turn(heard: Heard, fact: Fact) -> Judged:
    """What the turn that asks for a fact shows, by its words or by its decision."""
    if heard.error is not None:
        return Judged(
            recollection=Recollection.FAILED,
            sentence=f"The turn that asks failed: {heard.error.sentence}",
        )
    if fact.decision is not None:
        return _by_decision(heard, fact)
    if heard.value is None or heard.value in ("", [], {}):
        return Judged(
            recollection=Recollection.FAILED,
            sentence="The turn that asks was given no answer.",
        )
    return judged_answer(heard.value, fact)


def _plain(answer: Any) -> str:
    """An object of fields that usually frame an answer, such as `name`, as its text."""
    is_message = isinstance(answer, dict) and ("role" in answer or "type" in answer)
    return canonical(answer) if isinstance(answer, dict) and not is_message else ""


def _by_words(text: str, fact: Fact) -> Judged:
    forms = writings(fact)
    # Decoys are looked for once, with the value itself.
    found = [
        remembered(text, _spec(form, fact, has_decoys=form is fact.value))
        for form in forms
    ]
    own = {normalised(form, fact.normaliser).casefold() for form in forms}
    others = tuple(
        dict.fromkeys(
            [
                cut(other)
                for _, candidates in found
                for other in candidates
                if normalised(other, fact.normaliser).casefold() not in own
            ]
        )
    )[:MOST_OTHERS]
    memory = _together({memory for memory, _ in found}, others)
    return Judged(
        recollection=_OF_MEMORY[memory],
        sentence=_sentence(memory, fact, others),
        others=others,
    )


def _spec(form: str, fact: Fact, *, has_decoys: bool) -> FactSpec:
    decoys = [decoy.value for decoy in fact.decoys] if has_decoys else []
    return FactSpec(
        value=form,
        probe=fact.probe,
        normaliser=fact.normaliser,
        decoys=tuple(decoys),
    )


def _together(memories: set[Memory], others: tuple[str, ...]) -> Memory:
    """What all writings of one value show together: one that is named is enough."""
    is_named = bool(memories & {Memory.RECALLED, Memory.AMBIGUOUS})
    if is_named:
        return Memory.AMBIGUOUS if others else Memory.RECALLED
    return Memory.CONTRADICTED if Memory.CONTRADICTED in memories else Memory.LOST


def _sentence(memory: Memory, fact: Fact, others: tuple[str, ...]) -> str:
    value = f"“{cut(fact.value)}”"
    named = ", ".join(f"“{other}”" for other in others[:3])
    if memory is Memory.RECALLED:
        return f"The answer names {value}."
    if memory is Memory.AMBIGUOUS:
        return (
            f"The answer names {value}, and also {named}: which of them it gives as the "
            "fact cannot be read off."
        )
    if memory is Memory.LOST:
        return f"The answer does not name {value}."
    if named:
        return f"The answer names {named} in place of {value}."
    return f"The answer denies {value}."


def _by_decision(heard: Heard, fact: Fact) -> Judged:
    if fact.decision is None:
        raise ValueError("The fact is not judged by a decision.")
    found = Extractor(fact.decision).extracted(whole_conduct(trace_of_turn(heard)))
    expected = canonical(Normalised(fact.decision.normalisers).value(fact.expected))
    if not found.is_decided:
        return Judged(
            recollection=Recollection.LOST,
            sentence=f"Nothing was decided that depends on the fact: {found.how}",
        )
    if found.value == expected:
        return Judged(
            recollection=Recollection.RECALLED,
            sentence=f"The decision is {cut(found.shown)}, as expected of an agent "
            "that knows the fact.",
        )
    return Judged(
        recollection=Recollection.CONTRADICTED,
        sentence=f"The decision is {cut(found.shown)}, where an agent that knows the "
        f"fact decides {cut(expected)}.",
        others=(cut(found.shown),),
    )
