"""What a rule of secret redaction is, and the pieces that rules are made of.

A rule finds the places of one kind of secret in a text. It does not claim that what
it leaves is harmless.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

Place = tuple[int, int]
Passed = dict[Callable[[bytes], bool], bool]

# A secret begins where no longer word goes on before it. In JSON that was put into a
# text a line break is a backslash and an "n", which is no letter of a word.
_NOT_INSIDE: Final = r"(?:(?<![A-Za-z0-9_\-]{lead})|(?<=\\[nrtbf]{lead}))"
_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[nrtbf])")


class Rule(msgspec.Struct, frozen=True):
    """One kind of secret.

    `looks_for` is a sentence for people and `source` says where the format is
    described. `triggers` are lower-case texts of which one is in every text that has such
    a secret, so that most texts need no more than a look for them; so is `gate`, a
    question that several rules may share. `find` yields the places to replace. `hits` must match, `misses`
    must not; both are shown to people and are tests.
    """

    slug: str
    label: str
    looks_for: str
    source: str
    triggers: tuple[bytes, ...]
    find: Callable[[str], Iterable[Place]]
    hits: tuple[str, ...]
    misses: tuple[str, ...]
    gate: Callable[[bytes], bool] | None = None

    def may_match(self, low: bytes, passed: Passed) -> bool:
        """Whether a text is worth a `find`, from its UTF-8 in lower case.

        `passed` remembers the gates of this text.
        """
        gate = self.gate
        if gate is not None:
            if gate not in passed:
                passed[gate] = gate(low)
            if not passed[gate]:
                return False
        for trigger in self.triggers:  # noqa: SIM110 # any() costs twice as much
            if trigger in low:
                return True
        return False

    @property
    def mark(self) -> str:
        """What stands in the place of the secret."""
        return f"[redacted: {self.label}]"


def starting(*leads: str, then: str) -> re.Pattern[str]:
    """A pattern of one of the literal `leads` and what follows, not inside a word."""
    kinds = (
        re.escape(lead) + _NOT_INSIDE.format(lead=re.escape(lead)) for lead in leads
    )
    return re.compile(f"(?:{'|'.join(kinds)}){then}")


def matches_of(*patterns: re.Pattern[str]) -> Callable[[str], Iterator[Place]]:
    """A finder of everything that one of the patterns matches."""

    def find(text: str) -> Iterator[Place]:
        for pattern in patterns:
            for match in pattern.finditer(text):
                yield match.span()

    return find


def random_matches_of(*patterns: re.Pattern[str]) -> Callable[[str], Iterator[Place]]:
    """A finder of matches that hold both a letter and a digit after their lead."""

    def find(text: str) -> Iterator[Place]:
        for pattern in patterns:
            for match in pattern.finditer(text):
                if has_letter_and_digit(match[0]):
                    yield match.span()

    return find


_LETTER: Final = re.compile(r"[A-Za-z]")
_DIGIT: Final = re.compile(r"[0-9]")


def has_letter_and_digit(text: str) -> bool:
    """Whether a text holds at least one letter and one digit."""
    return _DIGIT.search(text) is not None and _LETTER.search(text) is not None


def places_of(text: str, words: tuple[str, ...]) -> Iterator[Place]:
    """Every place where one of `words` stands, word after word; faster than a pattern."""
    for word in words:
        at = text.find(word)
        while at >= 0:
            yield at, at + len(word)
            at = text.find(word, at + 1)


def after_escape(text: str, start: int) -> int:
    r"""Where a match at `start` begins when an escape of JSON reaches into it.

    In `"a\nbob@x.org"` the letter n belongs to the line break; taking it would leave
    a lone backslash and broken JSON. In JSON inside JSON the backslashes are many, so
    their number says nothing; at worst one letter of the secret is left.
    """
    if text[start - 1 : start] != "\\":
        return start
    escape = _ESCAPE.match(text, start - 1)
    return escape.end() if escape else start


_WORD: Final = re.compile(r"[A-Za-z]+\d{0,3}|\d{1,4}")
_BETWEEN_WORDS: Final = re.compile(r"[_.\-/:+]")
_STAND_INS: Final = re.compile(
    r"your|example|placeholder|changeme|change[_-]me|redacted|dummy|xxxx|\*\*\*|\.\.\.|"
    r"todo|insert|replace|(.)\1{7}",
    re.IGNORECASE,
)


def is_stand_in(value: str) -> bool:
    """Whether a value is what documentation writes where a secret goes."""
    return bool(_STAND_INS.search(value))


def is_made_of_words(value: str) -> bool:
    """Whether a value reads like a name in code: words, perhaps with short numbers."""
    parts = _BETWEEN_WORDS.split(value)
    return all(_WORD.fullmatch(part) for part in parts if part)
