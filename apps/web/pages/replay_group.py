"""What the page of a group needs: the runs of one case in one regime, and how they agree."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from apps.accounts.permissions import Permission
from apps.agents.queries import agent_now
from apps.replays.batch_queries import GroupRow, is_memory, runs_of
from apps.replays.models import Batch, Run
from apps.scoring.models import Conduct, TaskScore
from apps.verdicts.replayed import (
    NOT_SCORED,
    decisions_of,
    group_scores,
)
from apps.web.access import Place
from apps.web.pages.forks import ForkSketch, sketch_of
from apps.web.pages.replay_batch import GroupLine, group_line
from apps.web.pages.replay_recall import TrialLine, trial_lines_of
from apps.web.pages.replay_words import LEVELS, RUN_WORDS, StateWord, error_in_words
from apps.web.pages.scoring_state import ScoringState, scoring_state
from apps.web.pages.task_agreement import Agreement, TrialRef, agreement_of
from apps.web.words import WITHOUT_DECISION


class RunLine(msgspec.Struct, frozen=True):
    """One run: how it ended, and what it decided where that is known.

    `tone` is red for a breach, whatever it decided.
    """

    run: Run
    word: StateWord
    tone: str
    icon: str
    decision: str
    is_decided: bool
    is_scored: bool
    why: str
    level: str
    broken: int
    tokens: int | None
    judged: list[TrialLine]


class GroupPage(msgspec.Struct, frozen=True):
    """The runs of one case in one regime of a batch."""

    place: Place
    batch: Batch
    line: GroupLine
    runs: list[RunLine]
    score: TaskScore | None
    agreement: Agreement | None
    sketch: ForkSketch | None
    scoring: ScoringState
    refusal: str
    is_memory: bool
    recorded_at: datetime | None

    @property
    def row(self) -> GroupRow:
        """The group with the counts of its runs."""
        return self.line.row


def group_page(place: Place, batch: Batch, row: GroupRow) -> GroupPage:
    """One group: a fixed number of queries; no recording is read."""
    group, agent_id = row.group, agent_now(batch.agent)
    scored = group_scores(agent_id, [row]).get(group.pk, NOT_SCORED)
    score = TaskScore.objects.filter(task=group.task_id).first()
    runs = runs_of(group)
    traces = [run.trace_id for run in runs if run.trace_id is not None]
    decided = decisions_of(agent_id, traces)
    tasks = {} if score is None else {score.task_id: score}
    refs = {
        str(run.trace_id): TrialRef(run.trace_id, f"run {run.number}", "")
        for run in runs
        if run.trace_id is not None
    }
    # A memory test is judged by its facts; its last answers are no decisions.
    own = None if is_memory(batch) else scored.score
    return GroupPage(
        place=place,
        batch=batch,
        line=group_line(place, batch, row, scored, tasks),
        runs=_runs(runs, decided, is_memory=is_memory(batch)),
        score=score if own else None,
        agreement=agreement_of(own.detail["consistency"], refs) if own else None,
        sketch=sketch_of(score) if score and own else None,
        scoring=scoring_state(place.project.pk),
        refusal=place.refusal(Permission.REPLAY),
        is_memory=is_memory(batch),
        recorded_at=group.case.created_at if group.case else None,
    )


def _runs(
    runs: Sequence[Run], decided: dict[int, Conduct], *, is_memory: bool
) -> list[RunLine]:
    return [
        _run(run, decided.get(run.trace_id or 0), is_memory=is_memory) for run in runs
    ]


def _run(run: Run, conduct: Conduct | None, *, is_memory: bool) -> RunLine:
    word = RUN_WORDS[run.state]
    is_decided = conduct is not None and conduct.state == "decided"
    return RunLine(
        run=run,
        word=word,
        tone="red" if run.has_breach else word.tone,
        icon="circle-x" if run.has_breach else word.icon,
        decision=_decision(conduct),
        is_decided=is_decided,
        is_scored=conduct is not None,
        why=_why(run),
        level=LEVELS.get(run.level, run.level),
        broken=conduct.broken if conduct and not is_memory else 0,
        tokens=_tokens(run),
        judged=trial_lines_of(run) if is_memory else [],
    )


def _decision(conduct: Conduct | None) -> str:
    if conduct is None:
        return ""
    if conduct.state == "decided":
        return conduct.shown or conduct.decision
    return WITHOUT_DECISION[conduct.state]  # type: ignore[index]


def _why(run: Run) -> str:
    if run.sentence:
        return run.sentence
    return error_in_words(run.error_kind) if run.error_kind else ""


def _tokens(run: Run) -> int | None:
    if run.input_tokens is None or run.output_tokens is None:
        return None
    return run.input_tokens + run.output_tokens
