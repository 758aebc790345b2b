"""Why a verdict is what it is, as a code, counts and a sentence for people."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from apps.engine.consistency import Share, share


class ReasonCode(StrEnum):
    """Why a verdict is what it is, or what it leaves open."""

    CONTRACT_BROKEN = "contract_broken"
    FINDING = "finding"
    FACT_LOST = "fact_lost"
    FACT_CONTRADICTED = "fact_contradicted"
    NON_DETERMINISTIC = "non_deterministic"
    DRIFTING = "drifting"
    NOT_EXERCISED = "not_exercised"
    UNREAD = "unread"
    NO_CONTRACT = "no_contract"
    NONE_APPLIED = "none_applied"
    ALL_UNDECIDED = "all_undecided"
    ALL_FAILED = "all_failed"
    CONTRACTS_HELD = "contracts_held"
    FACTS_RECALLED = "facts_recalled"
    TASKS_STABLE = "tasks_stable"
    STABLE_BUT_WRONG = "stable_but_wrong"
    INVOCATIONS_FAILED = "invocations_failed"
    UNDECIDED = "undecided"
    NEVER_APPLIED = "never_applied"
    TASKS_INSUFFICIENT = "tasks_insufficient"
    ALONE_BROKEN = "alone_broken"
    ALONE_BREACH = "alone_breach"
    ALONE_LOST = "alone_lost"
    ALONE_CONTRADICTED = "alone_contradicted"
    ALONE_NON_DETERMINISTIC = "alone_non_deterministic"
    ALONE_DRIFTING = "alone_drifting"
    ALONE_HELD = "alone_held"
    ALONE_RECALLED = "alone_recalled"
    ALONE_STABLE = "alone_stable"
    ALONE_FAILED = "alone_failed"


class Reason(msgspec.Struct, frozen=True):
    """A sentence for people with its code and its counts, `k` of `n`.

    `n` is `None` where a count has no denominator (three findings).
    """

    code: ReasonCode
    sentence: str
    k: int
    n: int | None = None

    @property
    def inner(self) -> str:
        """The sentence as it goes on after a colon."""
        return self.sentence[:1].lower() + self.sentence[1:]

    @property
    def share(self) -> Share | None:
        """`k` of `n` with its interval, `None` where there is no denominator."""
        return None if self.n is None else share(self.k, self.n)


def reason_of(code: ReasonCode, sentence: str, counts: tuple[int, int]) -> Reason:
    """The reason whose sentence holds k of n with its interval."""
    k, n = counts
    return Reason(code, sentence.format(share(k, n).words), k, n)
