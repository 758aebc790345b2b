"""A quick look at a text: which rules of redaction are worth a search in it.

Most texts hold no secret, and there the look is all that redaction costs. A trigger is
sought from its rarest character on, all triggers with the same one in one pass; this
never loses a rule that `Rule.may_match` would keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from apps.engine.privacy.rule import Passed, Rule

# Characters that texts and JSON seldom hold, the rarest first: a pattern that begins
# with one is sought at the speed of memchr.
_RARE: Final = b"@jzxqk_-/.w"


class Prefilter:
    """Finds out which of some rules may match, in few passes over a text."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        self._rules = rules
        self._gated = [rule for rule in rules if rule.gate is not None]
        self._plain: list[tuple[bytes, str]] = []
        anchored: dict[int, list[tuple[bytes, str]]] = {}
        for rule in rules:
            for trigger in () if rule.gate else rule.triggers:
                anchor = next((one for one in _RARE if one in trigger), None)
                where = (
                    self._plain if anchor is None else anchored.setdefault(anchor, [])
                )
                where.append((trigger, rule.slug))
        self._anchored = [
            (
                _pattern(anchor, [trigger for trigger, _ in pairs]).search,
                frozenset(slug for _, slug in pairs),
            )
            for anchor, pairs in anchored.items()
        ]

    def candidates(self, low: bytes) -> list[Rule]:
        """The rules that may match, in order, from a text's UTF-8 in lower case."""
        passed: Passed = {}
        slugs = {rule.slug for rule in self._gated if rule.may_match(low, passed)}
        for trigger, slug in self._plain:
            if trigger in low:
                slugs.add(slug)
        maybe: set[str] = set()
        for search, of_anchor in self._anchored:
            if search(low):
                maybe |= of_anchor
        if not slugs and not maybe:
            return []
        return [
            rule
            for rule in self._rules
            if rule.slug in slugs
            or (rule.slug in maybe and rule.may_match(low, passed))
        ]


def _pattern(anchor: int, triggers: Iterable[bytes]) -> re.Pattern[bytes]:
    """A pattern of any of the triggers that begins with the character they share."""
    kinds = []
    for trigger in sorted(set(triggers)):
        at = trigger.index(anchor) + 1
        kinds.append(b"(?<=%b)%b" % (re.escape(trigger[:at]), re.escape(trigger[at:])))
    return re.compile(b"%b(?:%b)" % (re.escape(bytes([anchor])), b"|".join(kinds)))
