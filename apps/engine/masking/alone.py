"""What replays of an agent alone add to its verdict.

A run alone is evidence about the agent on one frozen input. It can break a contract or
show that the agent does not settle; it does not show that the agent is exercised in the
pipeline, so an agent that no trace exercises stays unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from apps.engine.masking.colours import Colour
from apps.engine.masking.reasons import Reason, ReasonCode, reason_of


class AloneEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Counts over the newest replays of each case of an agent.

    `runs` were executed, `failed` of them did not finish, `breaches` of them tried a
    side effect that is a breach. `held`, `broken`, `undecided` and `not_applying` count
    contracts applied to runs. `stable` to `insufficient` count groups by consistency.
    `recalled`, `lost`, `contradicted` and `unclear` count facts of memory tests, each in
    one of them; `unclear` ones had an answer with several candidates, or none.
    """

    runs: int = 0
    cases: int = 0
    failed: int = 0
    breaches: int = 0
    held: int = 0
    broken: int = 0
    undecided: int = 0
    not_applying: int = 0
    stable: int = 0
    drifting: int = 0
    non_deterministic: int = 0
    insufficient: int = 0
    recalled: int = 0
    lost: int = 0
    contradicted: int = 0
    unclear: int = 0

    @property
    def applied(self) -> int:
        """How many applications of contracts were not ruled out."""
        return self.held + self.broken + self.undecided

    @property
    def groups(self) -> int:
        """How many groups of runs have a score, insufficient ones included."""
        unstable = self.drifting + self.non_deterministic
        return self.stable + unstable + self.insufficient

    @property
    def facts(self) -> int:
        """How many facts of memory tests were tried, those without an answer included."""
        return self.recalled + self.lost + self.contradicted + self.unclear


NOT_RUN = AloneEvidence()


_RED: Final = (
    (ReasonCode.ALONE_BROKEN, "Alone, contracts broke in {} of their applications."),
    (ReasonCode.ALONE_BREACH, "Alone, it tried to reach outside in {} of its runs."),
    (ReasonCode.ALONE_LOST, "In memory tests, facts lost: {}."),
    (ReasonCode.ALONE_CONTRADICTED, "In memory tests, facts contradicted: {}."),
)
_UNSTABLE: Final = (
    (
        ReasonCode.ALONE_NON_DETERMINISTIC,
        "Alone, cases that are non-deterministic: {}.",
    ),
    (ReasonCode.ALONE_DRIFTING, "Alone, cases that are drifting: {}."),
)
_BESIDE: Final = (
    (ReasonCode.ALONE_HELD, "Alone, contracts held in {}."),
    (ReasonCode.ALONE_RECALLED, "In memory tests, facts recalled: {}."),
    (ReasonCode.ALONE_STABLE, "Alone, cases that are stable: {}."),
    (ReasonCode.ALONE_FAILED, "Alone, runs that did not finish: {}."),
)


def red_alone(found: AloneEvidence) -> tuple[Reason, ...]:
    """What makes the agent red, empty where nothing does."""
    facts = found.facts
    counts = (
        (found.broken, found.applied),
        (found.breaches, found.runs),
        (found.lost, facts),
        (found.contradicted, facts),
    )
    return _said(_RED, counts)


def unstable_alone(found: AloneEvidence) -> tuple[Reason, ...]:
    """What makes the agent unstable, empty where nothing does."""
    groups = found.groups
    counts = ((found.non_deterministic, groups), (found.drifting, groups))
    return _said(_UNSTABLE, counts)


def beside_alone(found: AloneEvidence) -> tuple[Reason, ...]:
    """What else is known of it alone and does not decide the colour."""
    counts = (
        (found.held, found.applied),
        (found.recalled, found.facts),
        (found.stable, found.groups),
        (found.failed, found.runs),
    )
    return _said(_BESIDE, counts)


def _said(
    texts: Sequence[tuple[ReasonCode, str]], counts: Sequence[tuple[int, int]]
) -> tuple[Reason, ...]:
    return tuple(
        reason_of(code, sentence, (k, n))
        for (code, sentence), (k, n) in zip(texts, counts, strict=True)
        if k
    )


RED_CODES: Final = frozenset(code for code, _ in _RED)
UNSTABLE_CODES: Final = frozenset(code for code, _ in _UNSTABLE)


def worst_alone(reasons: Sequence[Reason]) -> Colour | None:
    """Red or unstable where replays say so, by the reasons of a verdict; else `None`."""
    codes = {reason.code for reason in reasons}
    if codes & RED_CODES:
        return Colour.RED
    return Colour.UNSTABLE if codes & UNSTABLE_CODES else None
