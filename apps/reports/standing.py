"""How far the scoring of a project was, so that nothing unfinished is told as final."""

from __future__ import annotations

import msgspec

from apps.engine.contracts.fact_spec import decoded_fact
from apps.reports.assessment import StandingPart
from apps.reports.words import utc
from apps.scoring.definitions import ProjectAsked, asked_in
from apps.scoring.operations import has_stale
from apps.screening.lineup import current_definitions
from apps.screening.models import DefinitionKind
from apps.traces.behind import behind_count
from apps.verdicts.models import ProjectVerdict


class Standing(msgspec.Struct, frozen=True):
    """What is asked at present, what was settled last, and what waits."""

    asked: ProjectAsked
    verdict: ProjectVerdict | None
    part: StandingPart


def standing_of(project_id: int) -> Standing:
    """How far scoring is: ten queries at most, however large the project."""
    facts = [
        (row.slug, decoded_fact(row.spec))
        for row in current_definitions(project_id)
        if row.kind == DefinitionKind.PLANTED_FACT
    ]
    asked = asked_in(project_id, facts)
    verdict = ProjectVerdict.objects.filter(project_id=project_id).first()
    left = behind_count(project_id, asked.name, work="scored_as")
    is_settled = verdict is None or verdict.settled_as == asked.name
    settled_at = None if verdict is None else verdict.settled_at
    return Standing(
        asked=asked,
        verdict=verdict if verdict is not None and verdict.detail else None,
        part=StandingPart(
            left=left,
            is_behind=left > 0 or not is_settled or has_stale(project_id),
            settled_at="" if settled_at is None else utc(settled_at),
        ),
    )
