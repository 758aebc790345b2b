"""The score of a task as the JSON that commands and the JSON door answer with.

Every count is `k` of `n` with its 95 % Wilson interval as `low` and `high`, `None` for
0 of 0. Steps count from 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from apps.engine.masking import Gap
from apps.engine.trials.plain import plain_share


class Forked(msgspec.Struct, frozen=True):
    """What the sentence about the decisive fork needs to know of a task."""

    trials: int
    passed: int
    failed: int
    fork_count: int
    decisive: str = ""
    by_chance: Mapping[str, Any] | None = None


def consistency_document(said: Mapping[str, Any]) -> dict[str, Any]:
    """The agreement on the most frequent decision stands in the object itself."""
    rest = {name: value for name, value in said.items() if name != "agreement"}
    verdict, label = rest.pop("verdict"), rest.pop("label")
    rest.pop("n")
    return {"verdict": verdict, "label": label, **said["agreement"], **rest}


def fork_document(said: Mapping[str, Any]) -> dict[str, Any]:
    """One fork: the step of each trial, and its branches with their outcomes."""
    return {
        "kind": said["kind"],
        "steps": said["steps"],
        "branches": said["branches"],
        "decisive": said["is_decisive"],
        "p": said["p"],
        "separates": said["separates"],
        "sentence": said["sentence"],
    }


def decisive_document(forks: list[dict[str, Any]], of: Forked) -> dict[str, Any]:
    """The number of the fork (from 1) that outcomes go with, or why there is none.

    `by_chance` says in how many ways to deal the outcomes to the trials one is decisive.
    """
    for number, one in enumerate(forks, start=1):
        if one["is_the_decisive_one"]:
            return {
                "fork": number,
                "sentence": one["sentence"],
                "by_chance": of.by_chance,
            }
    sentence = of.decisive or _why_none(of)
    return {"fork": None, "sentence": sentence, "by_chance": of.by_chance}


def _why_none(of: Forked) -> str:
    if of.trials < 2:
        return "There is one trial, so nothing forks."
    if not of.fork_count:
        return "No fork: as far as is recorded, the trials decided the same."
    if not (of.passed and of.failed):
        return "No fork is decisive: the known outcomes are all alike."
    forks = "the fork" if of.fork_count == 1 else f"any of the {of.fork_count} forks"
    return f"No fork is decisive: outcomes do not go with {forks}."


def gap_document(one: Gap) -> dict[str, Any]:
    """Something that was not exercised or not covered; `agent` is null for no one's."""
    return {
        "kind": one.kind.value,
        "agent": one.agent or None,
        "sentence": one.sentence,
        "found": None if one.found is None else plain_share(one.found),
    }
