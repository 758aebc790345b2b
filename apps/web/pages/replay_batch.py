"""What the page of a batch needs: how far it is, why it waits, and what its groups say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec
from django.urls import reverse

from apps.accounts.permissions import Permission
from apps.agents.queries import agent_now
from apps.replays.batch_queries import (
    GroupRow,
    RunCounts,
    group_rows,
    is_memory,
    waiting_of,
)
from apps.replays.models import Batch
from apps.replays.progress import Progress, batch_progress
from apps.replays.transitions import RESUMABLE, BatchState, RunState
from apps.scoring.models import TaskScore
from apps.verdicts.queries import task_scores
from apps.verdicts.replayed import NOT_SCORED, GroupScore, group_scores
from apps.web.access import Place
from apps.web.numbers import whole
from apps.web.pages.replay_plan_words import Planned, planned_of
from apps.web.pages.replay_recall import RecallPart, recall_part
from apps.web.pages.replay_words import (
    BATCH_WORDS,
    RUN_WORDS,
    StateWord,
    money_in_words,
    regime_words,
    seconds_in_words,
)
from apps.web.pages.scoring_state import ScoringState, scoring_state
from apps.web.pages.task_agreement import Agreement, agreement_of
from apps.web.words import number_in_words

GROUPS_ON_A_PAGE: Final = 50
SILENT_SECONDS: Final = 15
"""After so long without a sign of a worker the page says that there may be none."""


class CountLine(msgspec.Struct, frozen=True):
    """How many runs of a batch are in one state."""

    word: StateWord
    count: int


class CapLine(msgspec.Struct, frozen=True):
    """What is spent and reserved of one thing; `share` is of the cap, `None` without."""

    label: str
    spent: str
    reserved: str
    cap: str
    share: float | None


class GroupLine(msgspec.Struct, frozen=True):
    """One group of the table; without a score its decisions are not known yet."""

    row: GroupRow
    name: str
    regime: str
    scored: GroupScore
    agreement: Agreement | None
    forks: int
    url: str

    @property
    def counts(self) -> RunCounts:
        """How its runs stand."""
        return self.row.counts


class BatchLive(msgspec.Struct, frozen=True):
    """What of a batch changes while it runs, and is asked for again."""

    place: Place
    batch: Batch
    word: StateWord
    progress: Progress
    counts: list[CountLine]
    caps: list[CapLine]
    remaining: str
    waits: list[str]
    groups: list[GroupLine]
    group_count: int
    breaches: int
    shown: str
    next_query: str
    first_query: str
    query: str
    scoring: ScoringState
    may_cancel: bool
    may_resume: bool
    refusal: str
    is_live: bool


class BatchPage(msgspec.Struct, frozen=True):
    """One batch."""

    place: Place
    batch: Batch
    live: BatchLive
    planned: Planned
    recall: RecallPart | None
    is_memory: bool


def batch_page(
    place: Place, batch: Batch, query: Mapping[str, str], *, now: datetime
) -> BatchPage:
    """One batch with everything: a fixed number of queries."""
    memory = is_memory(batch)
    return BatchPage(
        place=place,
        batch=batch,
        live=batch_live(place, batch, query, now=now),
        planned=planned_of(batch),
        recall=recall_part(batch) if memory else None,
        is_memory=memory,
    )


def batch_live(
    place: Place, batch: Batch, query: Mapping[str, str], *, now: datetime
) -> BatchLive:
    """What of a batch may be another a moment later: a fixed number of queries."""
    progress = batch_progress(batch)
    start = whole(query.get("from", "")) or 0
    rows = group_rows(batch)
    shown = rows[start : start + GROUPS_ON_A_PAGE]
    scoring = scoring_state(place.project.pk)
    is_open = batch.finished_at is None
    return BatchLive(
        place=place,
        batch=batch,
        word=BATCH_WORDS[batch.state],
        progress=progress,
        counts=_counts(progress),
        caps=_caps(batch, progress),
        remaining=_remaining(progress),
        waits=list(_waits(batch, progress, now)) if is_open else [],
        groups=[] if is_memory(batch) else _groups(place, batch, shown),
        group_count=len(rows),
        breaches=sum(row.counts.breaches for row in rows),
        shown=_shown(start, len(shown), len(rows)),
        next_query=_from(start + GROUPS_ON_A_PAGE, len(rows)),
        first_query="?" if start else "",
        query=f"?from={start}" if start else "",
        scoring=scoring,
        may_cancel=batch.state == BatchState.RUNNING.value,
        may_resume=_may_resume(batch, progress),
        refusal=place.refusal(Permission.REPLAY),
        is_live=is_open or (scoring.is_behind and progress.executed > 0),
    )


def _from(start: int, count: int) -> str:
    return f"?from={start}" if start < count else ""


def _shown(start: int, count: int, of: int) -> str:
    if not count:
        return "No groups here"
    return f"Groups {start + 1:,} to {start + count:,} of {of:,}"


def _counts(progress: Progress) -> list[CountLine]:
    return [
        CountLine(RUN_WORDS[state], progress.counts[state])
        for state in RunState
        if progress.counts[state]
    ]


def _may_resume(batch: Batch, progress: Progress) -> bool:
    is_ended = batch.finished_at is not None
    is_left = any(progress.counts[state] for state in RESUMABLE)
    stopped = {BatchState.STOPPED.value, BatchState.CANCELLED.value}
    return is_ended and is_left and batch.state in stopped


def _caps(batch: Batch, progress: Progress) -> list[CapLine]:
    lines = [
        _cap(name, spent, reserved, cap)
        for name, spent, reserved, cap in (
            (
                "Calls",
                progress.spent_calls,
                progress.reserved_calls,
                batch.max_calls,
            ),
            (
                "Tokens",
                progress.spent_tokens,
                progress.reserved_tokens,
                batch.max_tokens,
            ),
        )
    ]
    currency = str(batch.estimate.get("currency", ""))
    spent = money_in_words(progress.spent_money, currency)
    if not progress.is_money_known:
        spent = f"at least {spent}; some of it is not known"
    cap = batch.max_money
    return [
        *lines,
        CapLine(
            label="Money",
            spent=spent if batch.plan.get("price") else "not known: no price",
            reserved=(
                money_in_words(progress.reserved_money, currency)
                if progress.reserved_money
                else ""
            ),
            cap="" if cap is None else money_in_words(cap, currency),
            share=None if not cap else min(1.0, float(progress.spent_money / cap)),
        ),
    ]


def _cap(label: str, spent: int, reserved: int, cap: int | None) -> CapLine:
    return CapLine(
        label=label,
        spent=number_in_words(spent),
        reserved=number_in_words(reserved) if reserved else "",
        cap="" if cap is None else number_in_words(cap),
        share=None if not cap else min(1.0, spent / cap),
    )


def _remaining(progress: Progress) -> str:
    seconds = progress.remaining_seconds
    if seconds is None:
        return "not known before the first run has ended"
    return f"about {seconds_in_words(seconds)}" if seconds else ""


def _waits(batch: Batch, progress: Progress, now: datetime) -> Iterator[str]:
    """Why runs wait, in sentences; nothing where they simply come one after another."""
    target = batch.target_version.target
    if batch.state != BatchState.RUNNING.value:
        yield "The runs that are at work are being stopped."
        return
    if target.needs_key:
        yield "The key of the target was refused. A maintainer can set another one."
    is_paused = target.paused_until is not None and target.paused_until > now
    if is_paused and target.paused_until is not None:
        left = (target.paused_until - now).total_seconds()
        yield (
            f"The target asked all to wait; it is asked again in about "
            f"{seconds_in_words(left)}."
        )
    if progress.counts[RunState.WAITING]:
        yield from _of_rows(batch, now, is_paused=is_paused)


def _of_rows(batch: Batch, now: datetime, *, is_paused: bool) -> Iterator[str]:
    found = waiting_of(batch, now=now)
    settings = batch.target_version.settings
    most = settings.get("concurrency", 1)
    if found.until is not None:
        many = found.backing_off
        runs = "1 run waits" if many == 1 else f"{many:,} runs wait"
        left = (found.until - now).total_seconds()
        yield (
            f"{runs} before being tried again, the first for about "
            f"{seconds_in_words(left)}."
        )
    if found.at_work - found.own and found.at_work >= most:
        yield (
            f"The target is at work for other batches: {found.at_work} of {most} runs "
            "that it may have at once."
        )
    if settings.get("requests_per_minute"):
        yield f"At most {settings['requests_per_minute']:,} calls a minute are sent."
    is_free = found.waiting > found.backing_off and not found.at_work and not is_paused
    since = now - (found.last_sign or batch.started_at)
    if is_free and since > timedelta(seconds=SILENT_SECONDS):
        yield (
            f"No worker has begun a run for {seconds_in_words(since.total_seconds())}. "
            "Is one running that takes replays?"
        )


def _groups(place: Place, batch: Batch, rows: list[GroupRow]) -> list[GroupLine]:
    scored = group_scores(agent_now(batch.agent), rows)
    tasks = task_scores([one.group.task_id for one in rows if one.group.task_id])
    return [
        group_line(place, batch, row, scored.get(row.group.pk, NOT_SCORED), dict(tasks))
        for row in rows
    ]


def group_line(
    place: Place,
    batch: Batch,
    row: GroupRow,
    scored: GroupScore,
    tasks: Mapping[int, TaskScore],
) -> GroupLine:
    """One group with its words; `tasks` are the scores of replay tasks by id."""
    group, score = row.group, scored.score
    whole_task = tasks.get(group.task_id or 0)
    return GroupLine(
        row=row,
        name=str(group.case or "no case"),
        regime=regime_words(group.regime),
        scored=scored,
        agreement=agreement_of(score.detail["consistency"], {}) if score else None,
        forks=whole_task.fork_count if whole_task else 0,
        url=reverse("replay-group", args=[place.project.slug, batch.pk, group.number]),
    )
