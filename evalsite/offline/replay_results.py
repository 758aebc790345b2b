"""What replays of files show: each group scored, beside what was recorded, as JSON.

Every count is `k` of `n` with its 95 % Wilson interval as `low` and `high`, `None` for
0 of 0. What is not known is `None`, never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from apps.engine.agent_names import agent_key
from apps.engine.consistency import share
from apps.engine.replay.beside import (
    Beside,
    ContractBeside,
    beside,
    contract_counts,
    contracts_beside,
)
from apps.engine.replay.case import case_hash
from apps.engine.replay.recording import RunTitle, trace_of
from apps.engine.replay.regimes import regime_in_words
from apps.engine.replay.run import ErrorKind, ModelCalled, Ran, ToolCalled
from apps.engine.trace import Trace
from apps.engine.trials import (
    AgentTaskScore,
    Asked,
    ConductScore,
    Trial,
    score_task,
    score_trace,
)
from apps.engine.trials.documents import consistency_document
from apps.engine.trials.plain import plain_share
from evalsite.offline.replay_recorded import Recorded, RecordedSide
from evalsite.offline.replay_target import OfflineTarget
from evalsite.offline.replaying import DoneRun, PlannedGroup, Replayed

SAYS_NOTHING: Final = frozenset(
    {
        ErrorKind.RATE_LIMITED,
        ErrorKind.OVERLOADED,
        ErrorKind.CONNECTION,
        ErrorKind.REFUSED,
        ErrorKind.NOT_ALLOWED,
        ErrorKind.BUDGET,
        ErrorKind.CANCELLED,
        ErrorKind.OURS,
    }
)
"""Errors of what lies around an agent: with one of them the answer is incomplete."""


class ScoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run with its recording and what the agent did in it."""

    run: DoneRun
    trace: Trace
    conduct: ConductScore | None


class ScoredGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One case in one regime: its runs, their score, and the recorded side.

    `score` is `None` where no run was executed.
    """

    group: PlannedGroup
    runs: tuple[ScoredRun, ...]
    score: AgentTaskScore | None
    recorded: RecordedSide | None
    beside: Beside | None
    contracts: tuple[ContractBeside, ...]

    @property
    def breaches(self) -> int:
        """How many runs tried something outside of what they were given."""
        return sum(one.run.ran.has_breach for one in self.runs)

    @property
    def colour(self) -> str:
        """What is said of the agent here: a breach is red, whatever it decided."""
        if self.breaches:
            return "red"
        return "unknown" if self.score is None else self.score.colour

    @property
    def differs(self) -> bool:
        """Whether it decides otherwise than in the pipeline."""
        return self.beside is not None and self.beside.standing == "differ"

    @property
    def is_incomplete(self) -> bool:
        """Whether a run failed for what lies around the agent, or none came to an end."""
        rans = [one.run.ran for one in self.runs]
        return all(ran.error is not None for ran in rans) or any(
            ran.error is not None and ran.error.kind in SAYS_NOTHING for ran in rans
        )


def scored_groups(
    found: Replayed, asked: Asked, target: OfflineTarget, recorded: Recorded | None
) -> list[ScoredGroup]:
    """Each group of a call with its score, in order."""
    return [
        _scored(
            group,
            [one for one in found.runs if one.group.number == group.number],
            asked,
            target,
            recorded,
        )
        for group in found.groups
    ]


def _scored(
    group: PlannedGroup,
    runs: Sequence[DoneRun],
    asked: Asked,
    target: OfflineTarget,
    recorded: Recorded | None,
) -> ScoredGroup:
    agent = asked.agent_of(group.case.agent)
    told = [_told(run, asked, target, agent) for run in runs]
    counting = [(one, trial) for one, trial in told if one.run.was_executed]
    score = None
    if counting:
        task = score_task([trial for _, trial in counting])
        score = next((one for one in task.agents if one.agent == agent), None)
    side = None if recorded is None else recorded.side_of(group.frozen)
    conducts = [one.conduct for one, _ in counting if one.conduct is not None]
    return ScoredGroup(
        group=group,
        runs=tuple(one for one, _ in told),
        score=score,
        recorded=side,
        beside=None if side is None else beside(side.decided, _decided(conducts)),
        contracts=_contracts(side, conducts),
    )


def _decided(conducts: Sequence[ConductScore]) -> list[Any]:
    return [one.decided for one in conducts]


def _contracts(
    side: RecordedSide | None, conducts: Sequence[ConductScore]
) -> tuple[ContractBeside, ...]:
    alone = contract_counts([judged for one in conducts for judged in one.judged])
    return contracts_beside(() if side is None else side.contracts, alone)


def _told(
    run: DoneRun, asked: Asked, target: OfflineTarget, agent: str
) -> tuple[ScoredRun, Trial]:
    trace = recording_of(run, target)
    score = score_trace(trace, asked)
    conduct = next((one for one in score.conducts if one.agent == agent), None)
    trial = Trial(id=str(run.number), label=f"run {run.number}", score=score)
    return ScoredRun(run=run, trace=trace, conduct=conduct), trial


def recording_of(run: DoneRun, target: OfflineTarget) -> Trace:
    """The recording of a run: a trial of the task that its group is."""
    group = run.group
    name = group.case.name or agent_key(group.case.agent) or "case"
    words = regime_in_words(group.regime)
    return trace_of(
        group.frozen,
        run.ran,
        RunTitle(
            name=f"{name}, {words.lower()}, run {run.number}",
            task=f"replay: {name}, {words.lower()} ({group.number})",
            trial=run.number,
            regime=group.regime,
            target=target.kind,
            target_name=target.name,
        ),
    )


def run_document(one: ScoredRun) -> dict[str, Any]:
    """One run as JSON: how it ended, what it decided, its proof and what it used."""
    run, ran = one.run, one.run.ran
    decided = None if one.conduct is None else one.conduct.decided
    return {
        "type": "run",
        "group": run.group.number,
        "case": run.group.case.name,
        "agent": run.group.case.agent,
        "regime": msgspec.to_builtins(run.group.regime),
        "run": run.number,
        "seed": run.seed,
        "ending": ran.ending.value,
        "error": None if ran.error is None else msgspec.to_builtins(ran.error),
        "state": None if decided is None else decided.state,
        "decision": None if decided is None else decided.shown or None,
        "output": ran.output,
        "has_breach": ran.has_breach,
        "effects": msgspec.to_builtins(ran.effects),
        "level": ran.proof.level,
        "proof": msgspec.to_builtins(ran.proof),
        "tool_calls": [_call(event) for event in ran.events if _is_call(event)],
        "contracts": [] if one.conduct is None else list(one.conduct.judged),
        **_used(ran),
        "seconds": _seconds(ran),
        "printed": ran.printed or None,
    }


def _is_call(event: Any) -> bool:
    return isinstance(event, ToolCalled)


def _call(event: Any) -> dict[str, Any]:
    return {
        "tool": event.tool,
        "arguments": event.arguments,
        "answered_by": event.answer.source.value,
        "error": event.answer.error or None,
        "note": event.answer.note or None,
        "writes": event.answer.writes,
    }


def _used(ran: Ran) -> dict[str, Any]:
    """Model calls with their tries and tokens; `None` where one of them says none."""
    calls = [one for one in ran.events if isinstance(one, ModelCalled)]
    answered = [one.usage for one in calls if one.error is None]
    return {
        "model_calls": len(calls),
        "failed_model_calls": len(calls) - len(answered),
        "errors": dict(Counter(one.error.kind.value for one in calls if one.error)),
        "input_tokens": _sum([one.input_total for one in answered]),
        "output_tokens": _sum([one.output_total for one in answered]),
    }


def _sum(counts: list[int | None]) -> int | None:
    known = [one for one in counts if one is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _seconds(ran: Ran) -> float | None:
    if ran.start_ns is None or ran.end_ns is None:
        return None
    return round((ran.end_ns - ran.start_ns) / 1e9, 3)


def group_document(one: ScoredGroup) -> dict[str, Any]:
    """One case in one regime as JSON."""
    runs = [scored.run.ran for scored in one.runs]
    finished = sum(ran.error is None for ran in runs)
    kinds = Counter(ran.error.kind.value for ran in runs if ran.error is not None)
    score = one.score
    return {
        "group": one.group.number,
        "case": one.group.case.name,
        "case_hash": case_hash(one.group.frozen),
        "agent": one.group.case.agent,
        "regime": msgspec.to_builtins(one.group.regime),
        "regime_in_words": regime_in_words(one.group.regime),
        "runs": len(runs),
        "executed": sum(scored.run.was_executed for scored in one.runs),
        "finished": plain_share(share(finished, len(runs))),
        "errors": dict(kinds),
        "breaches": one.breaches,
        "colour": one.colour,
        "reasons": [] if score is None else score.detail["reasons"],
        "gaps": [] if score is None else score.detail["gaps"],
        "consistency": (
            None if score is None else consistency_document(score.detail["consistency"])
        ),
        "contracts": [_contract(contract) for contract in one.contracts],
        "recorded": _recorded(one),
        "stubs": _stubs(runs),
        "levels": sorted({ran.proof.level for ran in runs}),
    }


def _contract(one: ContractBeside) -> dict[str, Any]:
    return {
        "name": one.name,
        "broken_alone": plain_share(one.alone),
        "broken_in_the_pipeline": plain_share(one.recorded),
        "sentence": one.sentence,
    }


def _recorded(one: ScoredGroup) -> dict[str, Any] | None:
    if one.recorded is None or one.beside is None:
        return None
    return {
        "task": one.recorded.task,
        "is_exact": one.recorded.is_exact,
        "standing": one.beside.standing.value,
        "sentence": one.beside.sentence,
        "reasons": list(one.beside.reasons),
        "answers": [
            {
                "state": answer.state,
                "decision": answer.shown,
                "in_the_pipeline": plain_share(answer.recorded),
                "alone": plain_share(answer.alone),
            }
            for answer in one.beside.answers
        ],
    }


def _stubs(runs: Sequence[Ran]) -> dict[str, Any]:
    calls = [event for ran in runs for event in ran.events if _is_call(event)]
    made: Any = calls
    return {
        **{
            source: sum(one.answer.source.value == source for one in made)
            for source in ("recorded", "static", "handler", "miss")
        },
        "intended_writes": sum(one.answer.writes for one in made),
    }
