"""What an agent decided in the pipeline beside what it decides alone, for one input.

A difference says that something around the agent matters, or that its conditions were
others; it does not say which. Runs without a decision count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, Final, Protocol

import msgspec

from apps.engine.consistency import Share, counted, share
from apps.engine.extraction import DecisionState
from apps.engine.replay.told_apart import ToldApart, told_apart

LEVEL: Final = 0.05
"""Below this p the two are said to differ; declared, not derived."""

MOST_ANSWERS: Final = 50
_LONGEST: Final = 80
_WITHOUT: Final = {
    DecisionState.MISSING: "no decision found",
    DecisionState.FAILED: "failed before it decided",
    DecisionState.NOT_COMPARED: "prose, which is not compared",
    DecisionState.NO_BODIES: "nothing recorded",
}
_UNREADABLE: Final = frozenset({DecisionState.NOT_COMPARED, DecisionState.NO_BODIES})


class Decision(Protocol):
    """What is read of one run: a decided trial of the scoring is one."""

    @property
    def state(self) -> str: ...
    @property
    def decision(self) -> str: ...
    @property
    def shown(self) -> str: ...
    @property
    def input(self) -> str: ...
    @property
    def temperature(self) -> float | None: ...


class Standing(StrEnum):
    """How two sides stand to each other."""

    SAME = "same"
    DIFFER = "differ"
    NOT_TOLD_APART = "not_told_apart"
    NOTHING_TO_COMPARE = "nothing_to_compare"


class AnswerBeside(msgspec.Struct, frozen=True):
    """One answer with its shares on both sides, of all runs there.

    `state` is `decided`, or why there is no decision; `shown` is for people.
    """

    state: str
    shown: str
    recorded: Share
    alone: Share


class Beside(msgspec.Struct, frozen=True):
    """Both sides together. `answers` begins with the most frequent, both sides taken.

    `recorded_runs` and `alone_runs` count all runs, `recorded_majority` and
    `alone_majority` are the answers of more than half of them, "" for none.
    """

    standing: Standing
    recorded_runs: int
    alone_runs: int
    answers: tuple[AnswerBeside, ...]
    distinct: int
    recorded_majority: str
    alone_majority: str
    test: ToldApart | None
    sentence: str
    reasons: tuple[str, ...] = ()


def beside(recorded: Sequence[Decision], alone: Sequence[Decision]) -> Beside:
    """How the decisions of one agent in the pipeline and alone stand to each other.

    Both are of the same agent and the same case. What prose or missing bodies leave
    undecided is in the counts and not in the test: it cannot be read, so it differs
    from nothing.
    """
    keys = _keys(recorded, alone)
    ours = Counter(map(_key, recorded))
    theirs = Counter(map(_key, alone))
    test = _tested(ours, theirs)
    standing = _standing(ours, theirs, test)
    answers = tuple(
        AnswerBeside(
            state=key[0],
            shown=keys[key],
            recorded=share(ours[key], len(recorded)),
            alone=share(theirs[key], len(alone)),
        )
        for key in sorted(keys, key=lambda key: (-ours[key] - theirs[key], key))
    )
    recorded_top, alone_top = _majority(ours, keys), _majority(theirs, keys)
    return Beside(
        standing=standing,
        recorded_runs=len(recorded),
        alone_runs=len(alone),
        answers=answers[:MOST_ANSWERS],
        distinct=sum(one.state == DecisionState.DECIDED for one in answers),
        recorded_majority=recorded_top,
        alone_majority=alone_top,
        test=test,
        sentence=_sentence((ours, theirs), keys, _verdict(standing, test)),
        reasons=tuple(_reasons(recorded, alone)),
    )


_Key = tuple[str, str]


def _key(one: Decision) -> _Key:
    is_decided = one.state == DecisionState.DECIDED
    return (str(one.state), one.decision if is_decided else "")


def _keys(*sides: Sequence[Decision]) -> dict[_Key, str]:
    """Every answer with its words for people."""
    found: dict[_Key, str] = {}
    for side in sides:
        for one in side:
            key = _key(one)
            if key[0] == DecisionState.DECIDED:
                found.setdefault(key, one.shown or one.decision)
            else:
                words = _WITHOUT.get(DecisionState(key[0]), key[0])
                found.setdefault(key, words)
    return found


def _readable(counts: Counter[_Key]) -> Counter[_Key]:
    return Counter({k: n for k, n in counts.items() if k[0] not in _UNREADABLE})


def _tested(ours: Counter[_Key], theirs: Counter[_Key]) -> ToldApart | None:
    one, other = _readable(ours), _readable(theirs)
    keys = sorted(one | other)
    return told_apart([one[key] for key in keys], [other[key] for key in keys])


def _standing(
    ours: Counter[_Key], theirs: Counter[_Key], test: ToldApart | None
) -> Standing:
    one, other = _readable(ours), _readable(theirs)
    has_decided = all(
        any(key[0] == DecisionState.DECIDED for key in side) for side in (one, other)
    )
    if not one or not other:
        return Standing.NOTHING_TO_COMPARE
    if test is None:
        return Standing.SAME if has_decided else Standing.NOTHING_TO_COMPARE
    return Standing.DIFFER if test.p <= LEVEL else Standing.NOT_TOLD_APART


def _majority(counts: Counter[_Key], keys: dict[_Key, str]) -> str:
    total = counts.total()
    top = counts.most_common(1)
    if not top or top[0][1] * 2 <= total or top[0][0][0] != DecisionState.DECIDED:
        return ""
    return keys[top[0][0]]


def _verdict(standing: Standing, test: ToldApart | None) -> str:
    if standing is Standing.NOTHING_TO_COMPARE:
        return "There is no decision on both sides, so nothing can be compared."
    if standing is Standing.SAME or test is None:
        return "All runs of both agree; that does not show that they always do."
    p = f"exact test, p = {test.p:.2g}"
    if standing is Standing.DIFFER:
        return f"They differ ({p})."
    if test.smallest_p > LEVEL:
        return (
            f"So few runs cannot tell them apart ({p}; with these counts no result "
            f"could be below {test.smallest_p:.2g})."
        )
    return f"They cannot be told apart ({p}): chance alone often gives as much."


def _sentence(
    counts: tuple[Counter[_Key], Counter[_Key]], keys: dict[_Key, str], verdict: str
) -> str:
    ours, theirs = counts
    return (
        f"In the pipeline {_side(ours, keys, 'it decided')}; alone "
        f"{_side(theirs, keys, 'it decides')}. {verdict}"
    )


def _side(counts: Counter[_Key], keys: dict[_Key, str], verb: str) -> str:
    """The most frequent answer of a side, and what else there was."""
    total = counts.total()
    if not total:
        return "there is no run"
    ordered = sorted(counts, key=lambda key: (-counts[key], key))
    decided = [key for key in ordered if key[0] == DecisionState.DECIDED]
    if not decided:
        why = keys[ordered[0]]
        return f"{verb} nothing in {counts[ordered[0]]:,} of {total:,} ({why})"
    said = [
        f"“{_short(keys[key])}” in {counts[key]:,} of {total:,}" for key in decided[:3]
    ]
    more = len(decided) - 3
    rest = (
        [f"{more:,} other {'answer' if more == 1 else 'answers'}"] if more > 0 else []
    )
    without = sum(counts[key] for key in ordered if key not in decided)
    missing = [f"nothing in {without:,}"] if without else []
    return f"{verb} {', '.join([*said, *rest, *missing])}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _reasons(recorded: Sequence[Decision], alone: Sequence[Decision]) -> Iterator[str]:
    """What else may account for a difference, or leaves the comparison open."""
    if not recorded or not alone:
        return
    inputs = [{one.input for one in side if one.input} for side in (recorded, alone)]
    if inputs[0] and inputs[1] and inputs[0] != inputs[1]:
        yield "The inputs are not all the same, so a difference may come from them."
    if not all(one.input for one in (*recorded, *alone)):
        yield "The input of some runs is not recorded."
    heats = [{one.temperature for one in side} for side in (recorded, alone)]
    if heats[0] != heats[1]:
        yield (
            f"The temperature was {_heats(heats[0])} in the pipeline and "
            f"{_heats(heats[1])} alone."
        )
    if len(recorded) == 1 or len(alone) == 1:
        yield "A single run says nothing about how often an answer comes."


def _heats(heats: set[float | None]) -> str:
    known = sorted(one for one in heats if one is not None)
    said = [f"{one:g}" for one in known[:3]]
    if len(known) > 3:
        said.append(f"{len(known) - 3} others")
    if None in heats:
        said.append("not recorded")
    return " or ".join(said)


class ContractCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How often one contract held on one side; counts of applications."""

    name: str
    held: int = 0
    broken: int = 0
    undecided: int = 0

    @property
    def applied(self) -> int:
        """How often it applied."""
        return self.held + self.broken + self.undecided


class ContractBeside(msgspec.Struct, frozen=True):
    """One contract on both sides: how often it broke, of how often it applied."""

    name: str
    recorded: Share
    alone: Share
    test: ToldApart | None
    sentence: str


def contract_counts(judged: Sequence[dict[str, Any]]) -> tuple[ContractCounts, ...]:
    """The counts in the `judged` values of scores, one for each contract by its name."""
    found: dict[str, ContractCounts] = {}
    for one in judged:
        name = str(one.get("name") or "")
        before = found.get(name, ContractCounts(name=name))
        found[name] = ContractCounts(
            name=name,
            held=before.held + int(one.get("held", 0)),
            broken=before.broken + int(one.get("broken", 0)),
            undecided=before.undecided + int(one.get("undecided", 0)),
        )
    return tuple(found.values())


def contracts_beside(
    recorded: Sequence[ContractCounts], alone: Sequence[ContractCounts]
) -> tuple[ContractBeside, ...]:
    """Each contract of either side, those of the pipeline first. Names are unique."""
    ours = {one.name: one for one in recorded}
    theirs = {one.name: one for one in alone}
    return tuple(
        _contract(
            ours.get(name, ContractCounts(name=name)),
            theirs.get(name, ContractCounts(name=name)),
        )
        for name in dict.fromkeys([*ours, *theirs])
    )


def _contract(ours: ContractCounts, theirs: ContractCounts) -> ContractBeside:
    one = share(ours.broken, ours.applied, nothing="never applied")
    other = share(theirs.broken, theirs.applied, nothing="never applied")
    test = told_apart([ours.broken, ours.held], [theirs.broken, theirs.held])
    return ContractBeside(
        name=ours.name,
        recorded=one,
        alone=other,
        test=test,
        sentence=(
            f"“{_short(ours.name)}”: {_broke(ours)} in the pipeline, {_broke(theirs)} "
            f"alone.{_apart(ours, theirs, test)}"
        ),
    )


def _broke(one: ContractCounts) -> str:
    if not one.applied:
        return "never applied"
    open_ones = f", {one.undecided:,} undecided" if one.undecided else ""
    return (
        f"broke in {one.broken:,} of {counted(one.applied, 'application')}{open_ones}"
    )


def _apart(ours: ContractCounts, theirs: ContractCounts, test: ToldApart | None) -> str:
    if test is None or not (ours.applied and theirs.applied):
        return ""
    if test.p <= LEVEL:
        return f" They differ (exact test, p = {test.p:.2g})."
    return f" They cannot be told apart (exact test, p = {test.p:.2g})."
