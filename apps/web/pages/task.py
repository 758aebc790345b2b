"""What the page of a task needs: its headline, trials, agents, forks and notes.

From stored scores and the rows of the trials; no content of a trace is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from apps.accounts.permissions import Permission
from apps.engine.consistency import RULE
from apps.engine.masking import COLOURS
from apps.scoring.models import AgentTaskScore, TaskScore
from apps.scoring.queries import MOST_TRIALS as SCORED_TRIALS
from apps.traces.models import Task, Trace
from apps.traces.transitions import TaskSource
from apps.traces.trials import TaskRow, suggested_tasks, task_row
from apps.web.access import Place
from apps.web.pages.forks import ForkSketch, sketch_of
from apps.web.pages.replay_place import NOT_HERE, ReplayPlace, replay_of_task
from apps.web.pages.scoring_state import ScoringState, scoring_state
from apps.web.pages.task_agreement import Agreement, TrialRef, agreement_of
from apps.web.pages.task_headline import Headline, headline_of
from apps.web.pages.task_trials import TrialLine, trial_lines
from apps.web.pages.tasks import SOURCE_WORDS
from apps.web.pages.trial_notes import NoteForm, note_form

MOST_TRIALS: Final = 200
MOST_REASONS: Final = 8


class AgentBlock(msgspec.Struct, frozen=True):
    """One agent over the trials of the task: verdict, agreement, contracts, reasons.

    `is_whole`: its decisions are those of the whole system, which stand above.
    """

    score: AgentTaskScore
    agreement: Agreement
    regimes: list[Agreement]
    reasons: list[str]
    gaps: list[str]
    how: list[str]
    is_whole: bool

    @property
    def judged(self) -> int:
        """How many answers of contracts applied: held, broken or undecided."""
        return self.score.held + self.score.broken + self.score.undecided


class TaskPage(msgspec.Struct, frozen=True):
    """One task with its trials; `score` is `None` until they are scored.

    `said` are sentences about what the scores leave out.
    """

    place: Place
    row: TaskRow
    source_words: str
    scoring: ScoringState
    score: TaskScore | None
    headline: Headline | None
    said: list[str]
    agreement: Agreement | None
    regimes: list[Agreement]
    agents: list[AgentBlock]
    sketch: ForkSketch | None
    trials: list[TrialLine]
    notes: NoteForm
    rule: str
    others: list[Task]
    may_part: bool
    refusal: str
    replay: ReplayPlace | None

    @property
    def freeze_refusal(self) -> str:
        """Why the member may not keep cases, "" where they may."""
        return self.place.refusal(Permission.REPLAY)

    @property
    def known(self) -> int:
        """How many scored trials passed or failed."""
        return self.score.passed + self.score.failed if self.score else 0

    @property
    def open(self) -> int:
        """How many scored trials have no known outcome."""
        return self.score.trials - self.known if self.score else 0


def task_page(
    place: Place, task: Task, query: Mapping[str, str], undo: Any = None
) -> TaskPage:
    """One task: its trials in order, its scores, and the tasks it may be joined with.

    `undo` is what the session keeps of the last joining. A fixed number of queries.
    """
    traces = Trace.everything.filter(task=task).order_by("trial", "id")
    shown = list(traces.select_related("task")[:MOST_TRIALS])
    replay = replay_of_task(task)
    # The last answers of a memory test are no decisions that could agree or be wrong.
    is_scored = replay is None or not replay.is_memory
    score = TaskScore.objects.filter(task=task).first() if is_scored else None
    scores = _agents(task) if is_scored else []
    refs = _refs(score)
    trials = trial_lines(shown, score, scores)
    row = task_row(task)
    detail = score.detail if score else {}
    return TaskPage(
        place=place,
        row=row,
        source_words=SOURCE_WORDS[TaskSource(task.source)],
        scoring=scoring_state(place.project.pk),
        score=score,
        headline=headline_of(score, scores) if score else None,
        said=_left_out(score, row.trials) if score else [],
        agreement=agreement_of(detail["consistency"], refs) if score else None,
        regimes=_regimes(detail, refs),
        agents=[_block(one, refs, detail) for one in scores],
        sketch=sketch_of(score) if score else None,
        trials=trials,
        notes=note_form(place, trials, query),
        rule=RULE,
        others=suggested_tasks(project=place.project, but=task),
        may_part=isinstance(undo, dict) and undo.get("into") == task.pk,
        refusal=NOT_HERE if task.is_replay else place.refusal(Permission.REVIEW),
        replay=replay,
    )


def _left_out(score: TaskScore, trials: int) -> list[str]:
    """What broke while the trials were compared, and that some are not compared."""
    said = [score.detail["broke"]] if score.detail.get("broke") else []
    if score.trials == SCORED_TRIALS < trials:
        said.append(
            f"What is said here is of the first {SCORED_TRIALS:,} of {trials:,} "
            "trials; the others are not compared."
        )
    return said


def _agents(task: Task) -> list[AgentTaskScore]:
    """The agents of the task: masked first, then the worst."""
    rows = AgentTaskScore.objects.filter(task=task).select_related("agent")
    return sorted(
        rows,
        key=lambda row: (
            not row.is_masked,
            COLOURS.index(row.colour),
            row.agent.name.casefold(),
        ),
    )


def _refs(score: TaskScore | None) -> dict[str, TrialRef]:
    if score is None:
        return {}
    return {
        one["id"]: TrialRef(int(one["id"]), one["label"], one["outcome"])
        for one in score.detail["trials"]
    }


def _regimes(
    detail: Mapping[str, Any], refs: Mapping[str, TrialRef]
) -> list[Agreement]:
    """The temperature regimes apart, where there is more than one."""
    found = [agreement_of(one, refs) for one in detail.get("regimes", [])]
    return found if len(found) > 1 else []


def _block(
    row: AgentTaskScore, refs: Mapping[str, TrialRef], whole: Mapping[str, Any]
) -> AgentBlock:
    detail = row.detail
    return AgentBlock(
        score=row,
        agreement=agreement_of(detail["consistency"], refs),
        regimes=_regimes(detail, refs),
        reasons=detail["reasons"][:MOST_REASONS],
        gaps=detail["gaps"][:MOST_REASONS],
        how=detail["how"],
        is_whole=detail["consistency"] == whole.get("consistency"),
    )
