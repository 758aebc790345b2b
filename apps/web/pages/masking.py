"""What the overview leads with: masking, what changed, what was not covered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from apps.agents.queries import called_apart
from apps.engine.consistency import Share, share
from apps.engine.masking import COLOURS, Gap, GapKind, Masking, ReasonCode
from apps.reports.rates import rate_of
from apps.reports.words import short_rate
from apps.traces.models import Upload
from apps.verdicts.models import AgentVerdict
from apps.verdicts.queries import (
    Change,
    ProjectStanding,
    UploadStanding,
    agent_verdicts,
    mixed_tasks,
    project_standing,
    upload_standing,
)
from apps.web.access import Place

MOST_MASKED = 20
MOST_CHANGES = 6
MOST_GAPS = 6
MOST_UNREAD = 3
MOST_AGENTS = 12
_ALONE = "alone_"


class MaskedRow(msgspec.Struct, frozen=True):
    """One masked agent: in how many traces and tasks that passed, and why.

    `is_alone`: no trace or task shows it, only replays do.
    """

    agent_id: int | None
    name: str
    colour: str
    headline: str
    traces: Share
    tasks: Share
    reason: str
    is_alone: bool = False


class GapRow(msgspec.Struct, frozen=True):
    """Something that was not covered; `act` says what its link is for."""

    is_mirror: bool
    sentence: str
    agent_id: int | None
    agent: str
    act: str


class AgentRow(msgspec.Struct, frozen=True):
    """One agent in the table of verdicts."""

    agent_id: int
    name: str
    colour: str
    traces: int
    tasks: int
    is_masked: bool
    contracts: str
    stability: str
    reason: str


class MaskingPart(msgspec.Struct, frozen=True):
    """Verdicts of the agents of a project beside its outcomes.

    `tone` colours the headline; `unwritten` is the agent to begin with where no agent
    has a contract. `unread` says what is asked of the whole and cannot be read, which
    may be why the headline is what it is. `passed_tasks` are those whose trials all passed, of all with a known
    outcome, mixed ones too. `last` is what the newest upload brought.
    """

    headline: str
    tone: str
    symbol: str
    note: str
    masked: list[MaskedRow]
    more_masked: int
    unread: list[str]
    mirrors: list[GapRow]
    changes: list[Change]
    gaps: list[GapRow]
    more_gaps: list[GapRow]
    agents: list[AgentRow]
    agent_count: int
    counts: dict[str, int]
    standing: ProjectStanding
    passed_tasks: Share
    mixed: int
    unwritten: AgentRow | None
    is_unnamed: bool
    upload: Upload | None
    last: UploadStanding | None


def masking_part(place: Place, upload: Upload | None) -> MaskingPart | None:
    """What is said of the agents of a project; `None` where nothing was settled yet."""
    standing = project_standing(place.project.pk)
    if standing is None:
        return None
    verdicts = list(agent_verdicts(place.project.pk))
    names = called_apart(row.agent for row in verdicts)
    ids = {name: pk for pk, name in names.items()}
    report = standing.report
    rows = [_agent_row(row, names[row.agent_id]) for row in verdicts]
    unread = _unread(report.gaps)[:MOST_UNREAD]
    mirrors, gaps = _gaps(
        [one for one in report.gaps if one.sentence not in unread], ids
    )
    tone, symbol = _tone(report.maskings, rows, standing)
    mixed = mixed_tasks(place.project.pk)
    return MaskingPart(
        headline=report.headline,
        tone=tone,
        symbol=symbol,
        note=_note(report.maskings, standing),
        masked=[_masked_row(one, ids) for one in report.maskings[:MOST_MASKED]],
        more_masked=max(0, len(report.maskings) - MOST_MASKED),
        unread=unread,
        mirrors=mirrors,
        changes=_newest(standing.changes)[:MOST_CHANGES],
        gaps=gaps[:MOST_GAPS],
        more_gaps=gaps[MOST_GAPS:],
        agents=rows[:MOST_AGENTS],
        agent_count=len(rows),
        counts=_counts(rows),
        standing=standing,
        passed_tasks=_passed_tasks(standing, mixed),
        mixed=mixed,
        unwritten=_to_begin_with(verdicts, rows),
        is_unnamed=bool(verdicts) and not any(row.agent.key for row in verdicts),
        upload=upload,
        last=(
            upload_standing(project_id=place.project.pk, upload_id=upload.pk)
            if upload
            else None
        ),
    )


def _passed_tasks(standing: ProjectStanding, mixed: int) -> Share:
    found = standing.tasks.counts
    return share(
        found.passed,
        found.passed + found.failed + mixed,
        nothing="none with a known outcome",
    )


def _newest(changes: Sequence[Change]) -> list[Change]:
    """The newest changes first; of those that came together the worst."""
    order = [colour.value for colour in COLOURS]
    worst = sorted(changes, key=lambda one: order.index(one.after))
    return sorted(worst, key=lambda one: one.at, reverse=True)


def _counts(rows: Sequence[AgentRow]) -> dict[str, int]:
    """How many agents have each colour, from worst to best; those that occur."""
    colours = [row.colour for row in rows]
    return {one: colours.count(one) for one in COLOURS if one in colours}


def _tone(
    maskings: Sequence[Masking], rows: Sequence[AgentRow], standing: ProjectStanding
) -> tuple[str, str]:
    """The tone and the symbol of the headline: green only where all is known and green."""
    if maskings:
        is_red = any(one.colour == "red" for one in maskings)
        return ("red", "circle-x") if is_red else ("amber", "triangle-alert")
    is_green = bool(rows) and all(row.colour == "green" for row in rows)
    if is_green and standing.traces.counts.passed:
        return "green", "circle-check"
    return "", "circle-help"


def _note(maskings: Sequence[Masking], standing: ProjectStanding) -> str:
    if not maskings:
        return ""
    passed = standing.passed_traces
    return (
        f"End to end {passed.words} of the traces with a known outcome passed; that "
        "alone would not show it."
    )


def _masked_row(one: Masking, ids: dict[str, int]) -> MaskedRow:
    is_alone = not one.traces.k and not one.tasks.k
    reasons = [
        each for each in one.reasons if not is_alone or each.code.startswith(_ALONE)
    ]
    return MaskedRow(
        agent_id=ids.get(one.agent),
        name=one.agent,
        colour=one.colour.value,
        headline=one.headline,
        traces=one.traces,
        tasks=one.tasks,
        reason=reasons[0].sentence if reasons else "",
        is_alone=is_alone,
    )


def _gaps(
    gaps: Sequence[Gap], ids: dict[str, int]
) -> tuple[list[GapRow], list[GapRow]]:
    """The mirrors (failed behind green agents), and what else is not covered."""
    rows = [
        GapRow(
            is_mirror=one.kind is GapKind.FAILURE_UNSEEN,
            sentence=one.sentence,
            agent_id=ids.get(one.agent),
            agent=one.agent,
            act=_act(one),
        )
        for one in gaps
    ]
    return (
        [row for row in rows if row.is_mirror],
        [row for row in rows if not row.is_mirror],
    )


def _unread(gaps: Sequence[Gap]) -> list[str]:
    """What is asked of the whole and cannot be read."""
    return [one.sentence for one in gaps if one.kind is GapKind.DEFINITION_UNREAD]


def _act(gap: Gap) -> str:
    is_unwritten = gap.reason and gap.reason.code is ReasonCode.NO_CONTRACT
    return "Write a contract" if is_unwritten else "Open the agent"


def _agent_row(row: AgentVerdict, name: str) -> AgentRow:
    found = row.evidence
    reasons: list[dict[str, Any]] = row.detail.get("reasons") or []
    return AgentRow(
        agent_id=row.agent_id,
        name=name,
        colour=row.colour,
        traces=row.traces,
        tasks=row.tasks,
        is_masked=row.is_masked,
        contracts=_contracts(found),
        stability=_stability(found),
        reason=reasons[0]["sentence"] if reasons else "",
    )


def _contracts(found: dict[str, Any]) -> str:
    """In how many of their applications the contracts held."""
    if not found.get("contracts"):
        return "none"
    applied = sum(found.get(name, 0) for name in ("held", "broken", "undecided"))
    if not applied and found.get("unread"):
        return "none that can be read applied"
    if applied and applied == found.get("undecided"):
        # A share of 0 % would say that contracts broke.
        return f"none of {applied:,} could be decided"
    return short_rate(
        rate_of(found.get("held", 0), applied), "none applied to what it did"
    )


def _stability(found: dict[str, int]) -> str:
    """How many of its scored tasks are stable."""
    names = ("stable", "drifting", "non_deterministic", "insufficient")
    scored = sum(found.get(name, 0) for name in names)
    if not scored:
        return "no task"
    few = found.get("insufficient", 0)
    return f"{found.get('stable', 0):,} of {scored:,} stable" + (
        f", {few:,} with too few trials" if few else ""
    )


def _to_begin_with(
    verdicts: Sequence[AgentVerdict], rows: Sequence[AgentRow]
) -> AgentRow | None:
    """Where no agent has a contract: the one that acts in the most traces."""
    if not rows or any(row.evidence.get("contracts") for row in verdicts):
        return None
    return max(rows, key=lambda row: row.traces)
