"""What a memory test plants, how deep it is buried and how it is asked for.

A spec is a JSON value in the database and in files. Decoding names the field that is
wrong in a sentence.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec

from apps.engine.contracts.mentions import Normaliser
from apps.engine.extraction import DecisionSpec

VALUE: Final = "{value}"
"""Where the value stands in a text that tells it."""


class Mode(StrEnum):
    """On what a conversation is tried.

    Raw: it goes on as it is. Summarised: after every so many turns it is summarised and
    goes on from the summary. Store: what the agent keeps is read before it is asked, so
    that keeping and recalling are two numbers.
    """

    RAW = "raw"
    SUMMARISED = "summarised"
    STORE = "store"


class Length(StrEnum):
    """Whether a deeper fact makes a longer conversation.

    It grows: nothing stands before the facts. Equal: turns before the facts fill each
    conversation up to the length of the deepest one, so that only the place differs.
    """

    GROWS = "grows"
    EQUAL = "equal"


class _Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A part of a definition."""


class Decoy(_Spec, frozen=True):
    """Another value of the same kind, which `telling` tells about another subject."""

    value: str
    telling: str


class Fact(_Spec, frozen=True):
    """One fact: what is told, and what shows whether it is still known.

    `telling` is what the user says and holds `{value}` once. `probe` is what is said
    when the fact is needed; it names no value. `accepted` are other writings of the
    value that count as it. With `decision` it is not the words of the answer that are
    judged but what the agent decides in it, which must be `expected`.
    """

    slug: str
    value: str
    telling: str
    probe: str
    normaliser: Normaliser = Normaliser.SPACE
    accepted: tuple[str, ...] = ()
    decoys: tuple[Decoy, ...] = ()
    decision: DecisionSpec | None = None
    expected: Any = None


class Filler(_Spec, frozen=True):
    """What is said in between: our own texts in these languages, or `texts` if given."""

    languages: tuple[str, ...] = ("en",)
    texts: tuple[str, ...] = ()


class MemoryTest(_Spec, frozen=True):
    """Facts, the depths at which they are asked for, and how often each is tried.

    A depth is the number of turns of the user that lie strictly between telling a fact
    and asking for it; decoys, and the other facts of the conversation, count among
    them. All facts are told one after the other and asked for in the same order, so
    that each lies equally deep. `summary_every` turns lead to one summary.
    `certain_from` is the share of recalls that the lower end of the 95 % interval must
    reach for recall to count as certain at a depth.
    """

    facts: tuple[Fact, ...]
    depths: tuple[int, ...]
    repeats: int = 5
    filler: Filler = Filler()
    seed: int = 1
    mode: Mode = Mode.RAW
    summary_every: int = 0
    length: Length = Length.GROWS
    certain_from: float = 0.8


def told(telling: str, value: str) -> str:
    """The text that tells a value."""
    return telling.replace(VALUE, value)


def writings(fact: Fact) -> tuple[str, ...]:
    """The value and the other writings that count as it."""
    return (fact.value, *fact.accepted)


def encoded_memory_test(test: MemoryTest) -> dict[str, Any]:
    """The one encoding of a test as a JSON value, every field in it."""
    value: dict[str, Any] = msgspec.to_builtins(test)
    return value
