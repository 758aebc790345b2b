"""Scores of the furnished project that are settled before anybody looks."""

from __future__ import annotations

import time

from django.utils import timezone

from apps.accounts.models import Project
from apps.pipeline.patterns import search_project
from apps.pipeline.scoring import is_behind, score_project

SCORE_SECONDS = 120


def settle_scores(project: Project) -> None:
    """Score everything and search patterns here, or wait until a worker has."""
    end = time.monotonic() + SCORE_SECONDS
    while is_behind(project.pk):
        score_project(project_id=project.pk, clock=timezone.now)
        assert time.monotonic() < end, "The furnished project was not scored."
        time.sleep(0.05)
    search_project(project_id=project.pk, clock=timezone.now)
