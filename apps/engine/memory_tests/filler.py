"""What is said between telling a fact and asking for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from apps.engine.contracts.mentions import Normaliser, alike, mentions
from apps.engine.memory_tests.filler_latin import (
    ENGLISH,
    FRENCH,
    GERMAN,
    PORTUGUESE,
    SPANISH,
)
from apps.engine.memory_tests.filler_scripts import ARABIC, CHINESE, JAPANESE
from apps.engine.memory_tests.spec import MemoryTest, writings

LANGUAGES: Final = {
    "en": ENGLISH,
    "de": GERMAN,
    "fr": FRENCH,
    "es": SPANISH,
    "pt": PORTUGUESE,
    "zh": CHINESE,
    "ja": JAPANESE,
    "ar": ARABIC,
}
"""Our own texts by the code of their language, at least 25 each."""


def filler_of(test: MemoryTest) -> tuple[tuple[str, ...], int]:
    """The texts that may stand between, and how many of those given were left out.

    Left out is a text that names the value of a fact or of a decoy, or a value that
    looks like one: it would tell the fact again or tell another one.
    """
    texts = test.filler.texts or tuple(
        [text for language in test.filler.languages for text in LANGUAGES[language]]
    )
    together = "\n".join(texts)
    named = [
        (form, fact.normaliser)
        for fact in test.facts
        for form in (*writings(fact), *[decoy.value for decoy in fact.decoys])
        if _names(together, form, fact.normaliser)
    ]
    kept = tuple(
        [text for text in texts if not any(_names(text, *each) for each in named)]
    )
    return kept, len(texts) - len(kept)


def _names(text: str, value: str, how: Normaliser) -> bool:
    return bool(mentions(text, value, how) or alike(text, value, how))


def shuffled(texts: Sequence[str], source: Random) -> Iterator[str]:
    """Yield texts without end, in a new order each time all of them were used."""
    while texts:
        order = list(texts)
        source.shuffle(order)
        yield from order
