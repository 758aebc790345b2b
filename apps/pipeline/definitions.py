"""Taking a file of what is asked of agents, with the verdicts that rest on it."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from apps.agents.exchange import Plan, take_file
from apps.engine.agent_contracts import ContractsFile
from apps.pipeline.scoring import score_anew


def take_definitions(
    *,
    project_id: int,
    found: ContractsFile,
    seen: str,
    user_id: int | None,
    now: datetime,
) -> Plan:
    """Write everything that the file says and have it scored; returns what changed.

    As `take_file`, whose errors it raises. Verdicts are settled again even where no
    contract changed: an agent that only the file names is unknown, and a gap.
    """
    with transaction.atomic():
        plan = take_file(
            project_id=project_id, found=found, seen=seen, user_id=user_id, now=now
        )
        score_anew(project_id=project_id)
    return plan
