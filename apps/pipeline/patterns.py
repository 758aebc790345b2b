"""Searching for patterns once verdicts are settled: seconds of work, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from apps.pipeline.alone import alone
from apps.pipeline.waking import wake
from apps.verdicts.patterns import search_is_due, search_patterns


def wake_search(*, project_id: int, now: datetime) -> bool:
    """Wake the search of a project if scores were settled since the last one."""
    if not search_is_due(project_id, now=now):
        return False
    wake("pipeline.search_patterns", project_id=project_id)
    return True


def search_project(*, project_id: int, clock: Callable[[], datetime]) -> None:
    """Search the runs of one project, unless someone does already."""
    with alone("patterns", project_id) as is_mine:
        if is_mine and search_is_due(project_id, now=clock()):
            search_patterns(project_id=project_id, now=clock())
