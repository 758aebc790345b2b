"""Consistency and forks as JSON values: what pages and commands show of them."""

from __future__ import annotations

from typing import Any, Final

from apps.engine.branching import Branch, Branching, DecisiveChance, Fork
from apps.engine.consistency import Answer, Consistency, Share

MOST_ANSWERS: Final = 50
MOST_FORKS: Final = 50
MOST_TRIALS: Final = 200


def plain_share(found: Share) -> dict[str, Any]:
    """`k`, `n` and the 95 % Wilson interval as `low` and `high`, `None` for 0 of 0."""
    interval = found.interval
    return {
        "k": found.k,
        "n": found.n,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
    }


def plain_consistency(found: Consistency) -> dict[str, Any]:
    """Everything that is said of the agreement of trials, largest answers first."""
    return {
        "verdict": found.verdict.value,
        "label": found.label,
        "regime": found.regime.value,
        "n": found.n,
        "decided": found.decided,
        "missing": found.missing,
        "failed": found.failed,
        "not_compared": found.not_compared,
        "no_bodies": found.no_bodies,
        "answers": [_answer(one) for one in found.answers[:MOST_ANSWERS]],
        "distinct": len(found.answers),
        "without": [
            {
                "state": one.state.value,
                "agreement": plain_share(one.share),
                "trials": list(one.trials[:MOST_TRIALS]),
            }
            for one in found.undecided
        ],
        "agreement": plain_share(found.decision),
        "exact": plain_share(found.exact),
        "structural": plain_share(found.structural),
        "majority": (
            None
            if found.majority is None
            else {
                "decision": found.majority.answer.shown,
                "is_established": found.majority.is_established,
            }
        ),
        "no_majority": found.no_majority,
        "outliers": list(found.outliers[:MOST_TRIALS]),
        "contradictions": found.contradiction_count,
        "inputs": {
            "distinct": found.inputs.distinct,
            "not_recorded": found.inputs.not_recorded,
        },
        "is_stable_but_wrong": found.is_stable_but_wrong,
        "reasons": [*found.reasons, *found.wrong_reasons],
    }


def _answer(one: Answer) -> dict[str, Any]:
    return {
        "decision": one.shown,
        "agreement": plain_share(one.share),
        "trials": list(one.trials[:MOST_TRIALS]),
    }


def plain_forks(
    found: Branching, by_chance: DecisiveChance | None = None
) -> dict[str, Any]:
    """The forks of trials in order, the decisive one, and what to know beside.

    `by_chance` says how often dealing the outcomes at random makes one decisive.

    A fork whose `kind` is `difference` comes back together: the trials took other ways
    at one place and the same way after it.
    """
    decisive = found.decisive_fork
    return {
        "forks": [
            plain_fork(one, decisive) for one in forks_in_order(found)[:MOST_FORKS]
        ],
        "by_chance": (
            None
            if by_chance is None
            else {
                "hits": by_chance.hits,
                "deals": by_chance.deals,
                "is_exact": by_chance.is_exact,
                "sentence": by_chance.sentence,
            }
        ),
        "detours": len(found.detours),
        "statements": [
            {"code": one.code, "sentence": one.sentence} for one in found.statements
        ],
        "columns": found.columns,
        "left_out": list(found.left_out[:MOST_TRIALS]),
    }


def forks_in_order(found: Branching) -> list[Fork]:
    """Every place where trials decided differently, whether they came back or not."""
    return sorted((*found.forks, *found.differences), key=lambda one: one.column)


def plain_fork(fork: Fork, decisive: Fork | None = None) -> dict[str, Any]:
    """One fork: the step of each trial (from 1), and its branches with their outcomes."""
    return {
        "kind": fork.kind.value,
        "column": fork.column,
        "is_decisive": fork.is_decisive,
        "is_the_decisive_one": fork is decisive,
        "p": fork.p,
        "separates": fork.separates,
        "sentence": fork.sentence,
        "steps": {
            place.trial_id: None if place.step is None else place.step + 1
            for place in fork.places
        },
        "branches": [_branch(one) for one in fork.branches],
    }


def _branch(one: Branch) -> dict[str, Any]:
    return {
        "decision": one.label,
        "tool": one.tool,
        "trials": list(one.trial_ids),
        "n": one.n,
        "passed": one.passed,
        "known": one.known,
        "low": None if one.interval is None else one.interval.low,
        "high": None if one.interval is None else one.interval.high,
        "writes": list(one.writes),
        "is_end": one.is_end,
        "is_straight": one.is_straight,
    }
