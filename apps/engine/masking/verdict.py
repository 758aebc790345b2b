"""The verdict of one agent: green, red, unstable or unknown, with its reasons.

Made of counts of typed results only: contracts, consistency, planted facts, findings.
No text is read. Unknown is never green: an agent is green only where a contract of it
applied and held; agreement alone is not correctness.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from apps.engine.consistency import counted
from apps.engine.masking.alone import (
    NOT_RUN,
    AloneEvidence,
    beside_alone,
    red_alone,
    unstable_alone,
)
from apps.engine.masking.colours import Colour
from apps.engine.masking.reasons import Reason, ReasonCode, reason_of


class Extent(StrEnum):
    """What a verdict is about: one trace, one task or a whole project."""

    TRACE = "trace"
    TASK = "task"
    PROJECT = "project"


class Verdict(msgspec.Struct, frozen=True):
    """The colour of an agent, its reasons (the deciding ones first) and its gaps.

    Gaps are what the verdict does not cover; a green verdict can have some.
    """

    colour: Colour
    reasons: tuple[Reason, ...]
    gaps: tuple[Reason, ...] = ()


class AgentEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one agent over a trace, a task or a project, as counts.

    `contracts` are defined now, `contracts_applied` of them applied at least once
    (`None`: not counted). `held`, `broken`, `undecided` and `not_applying` count
    applications: one contract applied to one invocation. `stable` to `insufficient`
    count tasks by consistency, `stable_but_wrong` is among the stable. `recalled`,
    `lost` and `contradicted` count planted facts. `findings` are signals that a person
    confirmed or a second measure supports. `invocations` were recorded, `failed` of
    them ended in an error. `traces` and `tasks` are those that exercise the agent. `alone`
    are the counts of its replays. `unread` are sentences about what is asked of it and
    cannot be read any more.
    """

    agent: str
    extent: Extent = Extent.PROJECT
    traces: int = 0
    tasks: int = 0
    invocations: int = 0
    failed: int = 0
    contracts: int = 0
    contracts_applied: int | None = None
    held: int = 0
    broken: int = 0
    undecided: int = 0
    not_applying: int = 0
    stable: int = 0
    drifting: int = 0
    non_deterministic: int = 0
    insufficient: int = 0
    stable_but_wrong: int = 0
    recalled: int = 0
    lost: int = 0
    contradicted: int = 0
    findings: int = 0
    alone: AloneEvidence = NOT_RUN
    unread: tuple[str, ...] = ()

    @property
    def applied(self) -> int:
        """How many applications were not ruled out: held, broken or undecided."""
        return self.held + self.broken + self.undecided

    @property
    def scored_tasks(self) -> int:
        """How many tasks have a score, insufficient ones included."""
        unstable = self.drifting + self.non_deterministic
        return self.stable + unstable + self.insufficient

    @property
    def facts(self) -> int:
        """How many planted facts were probed and decided."""
        return self.recalled + self.lost + self.contradicted


def verdict_of(evidence: AgentEvidence) -> Verdict:
    """The verdict that the evidence allows.

    Red if a contract broke, a finding exists or a planted fact was lost or
    contradicted, or if one of these or a breach came in a replay. Else unstable if any
    task, or group of replays, is drifting or non-deterministic. Else green if the agent
    was exercised, at least one contract held, not every invocation failed, and all that
    is asked of it could be read. Else
    unknown, and the first reason says why. Replays alone never make an agent green.
    Raises `ValueError` for counts that contradict each other.
    """
    _check(evidence)
    alone = evidence.alone
    red = (*_red(evidence), *red_alone(alone))
    unstable = (*_unstable(evidence), *unstable_alone(alone))
    beside = (*_beside(evidence), *beside_alone(alone))
    missing, gaps = _missing(evidence), _gaps(evidence)
    if red or unstable:
        colour = Colour.RED if red else Colour.UNSTABLE
        return Verdict(colour, (*red, *unstable, *beside), (*missing, *gaps))
    colour = Colour.UNKNOWN if missing else Colour.GREEN
    return Verdict(colour, (*missing, *beside), gaps)


def _check(evidence: AgentEvidence) -> None:
    numbers = [
        value
        for name in evidence.__struct_fields__
        if isinstance(value := getattr(evidence, name), int)
    ]
    if min(numbers) < 0:
        raise ValueError(f"A count of {evidence.agent} is below 0.")
    if evidence.applied + evidence.not_applying and not evidence.contracts:
        raise ValueError(f"{evidence.agent} has results of contracts but no contract.")
    if evidence.failed > evidence.invocations:
        raise ValueError(f"More invocations of {evidence.agent} failed than there are.")
    if evidence.stable_but_wrong > evidence.stable:
        raise ValueError(f"More tasks of {evidence.agent} are wrong than are stable.")
    if (evidence.contracts_applied or 0) > evidence.contracts:
        raise ValueError(f"More contracts of {evidence.agent} applied than there are.")


def _red(found: AgentEvidence) -> tuple[Reason, ...]:
    said = []
    if found.broken:
        said.append(
            reason_of(
                ReasonCode.CONTRACT_BROKEN,
                "Contracts broke in {} of their applications.",
                (found.broken, found.applied),
            )
        )
    if found.findings:
        words = counted(found.findings, "finding")
        said.append(Reason(ReasonCode.FINDING, f"{words} about it.", found.findings))
    for code, number, what in (
        (ReasonCode.FACT_LOST, found.lost, "lost"),
        (ReasonCode.FACT_CONTRADICTED, found.contradicted, "contradicted"),
    ):
        if number:
            sentence = f"Planted facts {what}: {{}}."
            said.append(reason_of(code, sentence, (number, found.facts)))
    return tuple(said)


def _unstable(found: AgentEvidence) -> tuple[Reason, ...]:
    return tuple(
        reason_of(code, f"Tasks that are {what}: {{}}.", (number, found.scored_tasks))
        for code, number, what in (
            (
                ReasonCode.NON_DETERMINISTIC,
                found.non_deterministic,
                "non-deterministic",
            ),
            (ReasonCode.DRIFTING, found.drifting, "drifting"),
        )
        if number
    )


_EXERCISED_BY: Final[dict[Extent, str]] = {
    Extent.TRACE: "This trace does not exercise it.",
    Extent.TASK: "No trial of this task exercises it.",
    Extent.PROJECT: "No task exercises it.",
}


def _missing(found: AgentEvidence) -> tuple[Reason, ...]:
    """Why the agent cannot be green, empty if it can."""
    unread = tuple([Reason(ReasonCode.UNREAD, one, 1) for one in found.unread])
    code = _missing_code(found)
    if code is None or (unread and code is not ReasonCode.NOT_EXERCISED):
        return unread
    sentence, k, n = {
        ReasonCode.NOT_EXERCISED: (_EXERCISED_BY[found.extent], 0, None),
        ReasonCode.NO_CONTRACT: ("No contract says what it must hold.", 0, None),
        ReasonCode.NONE_APPLIED: (
            f"No contract of {found.contracts:,} applied to what it did.",
            0,
            found.contracts,
        ),
        ReasonCode.ALL_UNDECIDED: (
            f"Contracts applied {counted(found.undecided, 'time')} and "
            "none could be decided.",
            found.undecided,
            found.applied,
        ),
        ReasonCode.ALL_FAILED: (
            f"All of its {counted(found.invocations, 'invocation')} failed.",
            found.failed,
            found.invocations,
        ),
    }[code]
    return (Reason(code, sentence, k, n), *unread)


def _missing_code(found: AgentEvidence) -> ReasonCode | None:
    if not found.traces:
        return ReasonCode.NOT_EXERCISED
    if not found.contracts:
        return ReasonCode.NO_CONTRACT
    if not found.applied:
        return ReasonCode.NONE_APPLIED
    if found.undecided == found.applied:
        return ReasonCode.ALL_UNDECIDED
    if found.invocations and found.failed == found.invocations:
        return ReasonCode.ALL_FAILED
    return None


def _beside(found: AgentEvidence) -> tuple[Reason, ...]:
    """What else is known and does not decide the colour."""
    code = ReasonCode
    all_failed = bool(found.failed) and _missing_code(found) is code.ALL_FAILED
    failed = 0 if all_failed else found.failed
    listed = (
        (code.CONTRACTS_HELD, "Contracts held in {}.", found.held, found.applied),
        (
            code.FACTS_RECALLED,
            "Planted facts recalled: {}.",
            found.recalled,
            found.facts,
        ),
        (
            code.TASKS_STABLE,
            "Tasks that are stable: {}.",
            found.stable,
            found.scored_tasks,
        ),
        (
            code.STABLE_BUT_WRONG,
            "Stable tasks that are wrong all the same: {}.",
            found.stable_but_wrong,
            found.stable,
        ),
        (
            code.INVOCATIONS_FAILED,
            "Invocations that failed: {}.",
            failed,
            found.invocations,
        ),
    )
    return tuple(reason_of(each, text, (k, n)) for each, text, k, n in listed if k)


def _gaps(found: AgentEvidence) -> tuple[Reason, ...]:
    code = ReasonCode
    said = []
    if found.undecided and found.undecided < found.applied:
        said.append(
            reason_of(
                code.UNDECIDED,
                "Contracts that could not be decided: {}.",
                (found.undecided, found.applied),
            )
        )
    idle = found.contracts - (found.contracts_applied or 0)
    if idle and found.contracts_applied:
        said.append(
            reason_of(
                code.NEVER_APPLIED,
                "Contracts that never applied: {}.",
                (idle, found.contracts),
            )
        )
    if found.insufficient:
        said.append(
            reason_of(
                code.TASKS_INSUFFICIENT,
                "Tasks with too few trials that decided anything: {}.",
                (found.insufficient, found.scored_tasks),
            )
        )
    return tuple(said)
