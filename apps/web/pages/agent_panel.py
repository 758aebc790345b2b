"""The agents of one trace beside its outcome: verdicts, reasons, decisions, stability."""

from __future__ import annotations

from typing import Any

import msgspec

from apps.engine.consistency import share
from apps.engine.extraction import DecisionState
from apps.engine.masking import Extent, verdict_of
from apps.engine.trials import evidence_of
from apps.scoring.models import AgentTaskScore, Conduct, TaskScore, TraceScore
from apps.scoring.queries import conduct_score
from apps.traces.models import Trace
from apps.verdicts.queries import TraceStanding, first_step_of_fork, trace_standing
from apps.web.pages.memory_panel import MemoryPanel, memory_panel
from apps.web.pages.task_agreement import word_of
from apps.web.words import WITHOUT_DECISION


class TrialsPart(msgspec.Struct, frozen=True):
    """How far the trials of a task agree: the word, `k` of `n`, and words for both."""

    label: str
    k: int
    n: int
    words: str
    tone: str


class BrokenPart(msgspec.Struct, frozen=True):
    """One contract that broke: its name, the first sentence, and its step (from 1)."""

    name: str
    sentence: str
    step: int | None
    broken: int
    applied: int


class DecisionPart(msgspec.Struct, frozen=True):
    """What was decided, or why nothing was; `how` it was found and where (from 1)."""

    shown: str
    is_decided: bool
    how: str
    step: int | None


class AgentLine(msgspec.Struct, frozen=True):
    """One agent of a trace; `colour` is "" for one that acts only in other trials."""

    agent_id: int
    name: str
    colour: str
    is_masked: bool
    is_unseen: bool
    reasons: list[str]
    gaps: list[str]
    broken: list[BrokenPart]
    decision: DecisionPart | None
    trials: TrialsPart | None


class AgentPanel(msgspec.Struct, frozen=True):
    """The agents of a trace beside its outcome.

    `is_scored` is False where the trace was not scored yet. `fork_step` is the step
    (from 1) at which this trace is at the first fork of its task.
    """

    trace: Trace
    is_scored: bool
    outcome: str
    outcome_reason: str
    sentence: str
    is_gap: bool
    lines: list[AgentLine]
    decision: DecisionPart | None
    task: TaskScore | None
    task_trials: TrialsPart | None
    fork_step: int | None
    memory: MemoryPanel | None

    @property
    def masked(self) -> list[AgentLine]:
        """The agents that are red here although the outcome is green."""
        return [line for line in self.lines if line.is_masked]


def trials_part(score: TaskScore | AgentTaskScore) -> TrialsPart:
    """How far the trials agree, of an agent or end to end."""
    if score.trials == 1:
        words = "One run says nothing about how stable it is."
        return TrialsPart("single run", score.majority, 1, words, "")
    word = word_of(score)
    words = share(word.k, word.n).words
    return TrialsPart(
        label=word.label,
        k=word.k,
        n=word.n,
        words=f"The most frequent agent decision: {words} of the trials.",
        tone=word.tone,
    )


def agent_panel(trace: Trace) -> AgentPanel:
    """The panel of one trace: four queries for any number of agents."""
    standing = trace_standing(trace)
    score = standing.score
    lines = [_line(one, standing) for one in standing.agents] if score else []
    return AgentPanel(
        trace=trace,
        is_scored=score is not None,
        outcome=score.outcome if score else "",
        outcome_reason=score.outcome_reason if score else "",
        sentence=_sentence(score, lines),
        is_gap=bool(score and score.is_gap),
        lines=[*lines, *_elsewhere(standing)],
        decision=_decision(score) if score else None,
        task=standing.task,
        task_trials=trials_part(standing.task) if standing.task else None,
        fork_step=_fork_step(standing.task, trace),
        memory=memory_panel(score.recalls) if score else None,
    )


def _fork_step(task: TaskScore | None, trace: Trace) -> int | None:
    return first_step_of_fork(task.detail, trace.pk) if task else None


def _line(row: Conduct, standing: TraceStanding) -> AgentLine:
    score = conduct_score(row)
    verdict = verdict_of(evidence_of(score.agent, [score], [], Extent.TRACE))
    on_task = standing.on_task.get(row.agent_id)
    return AgentLine(
        agent_id=row.agent_id,
        name=str(row.agent),
        colour=row.colour,
        is_masked=row.is_masked,
        is_unseen=False,
        reasons=[reason.sentence for reason in verdict.reasons],
        gaps=[gap.sentence for gap in verdict.gaps],
        broken=[_broken(one) for one in row.judged if one.get("broken")],
        decision=_decision(row),
        trials=trials_part(on_task) if on_task else None,
    )


def _elsewhere(standing: TraceStanding) -> list[AgentLine]:
    """The agents that act in other trials of the task and not in this one."""
    here = {row.agent_id for row in standing.agents}
    if standing.score is None:
        return []
    return [
        AgentLine(
            agent_id=row.agent_id,
            name=str(row.agent),
            colour="",
            is_masked=False,
            is_unseen=True,
            reasons=["It acts in other trials of this task, not in this one."],
            gaps=[],
            broken=[],
            decision=None,
            trials=trials_part(row),
        )
        for row in sorted(standing.on_task.values(), key=lambda one: str(one.agent))
        if row.agent_id not in here
    ]


def _broken(judged: dict[str, Any]) -> BrokenPart:
    counts = [judged.get(name, 0) for name in ("held", "broken", "undecided")]
    return BrokenPart(
        name=judged.get("name") or "unnamed contract",
        sentence=judged.get("sentence", ""),
        step=_from_one(judged.get("step")),
        broken=judged["broken"],
        applied=sum(counts),
    )


def _decision(row: Conduct | TraceScore) -> DecisionPart:
    state = DecisionState(row.state)
    is_decided = state is DecisionState.DECIDED
    return DecisionPart(
        shown=row.shown if is_decided else WITHOUT_DECISION[state],
        is_decided=is_decided,
        how=row.how,
        step=_from_one(row.step),
    )


def _from_one(seq: int | None) -> int | None:
    return None if seq is None else seq + 1


def _sentence(score: TraceScore | None, lines: list[AgentLine]) -> str:
    """What the agents and the outcome say beside each other, in one sentence."""
    if score is None:
        return "This trace is not scored yet, so nothing is said of its agents."
    masked = [line.name for line in lines if line.is_masked]
    if masked:
        verb = "is" if len(masked) == 1 else "are"
        return f"{_listed(masked)} {verb} red although this trace passed."
    if score.is_gap:
        return (
            "This trace failed although every agent in it is green: a gap in the "
            "contracts."
        )
    if not lines:
        return "No agent is seen to act in this trace."
    return ""


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
