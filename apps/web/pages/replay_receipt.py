"""What became of the lines of a file of cases, for the page that took it."""

from __future__ import annotations

from django.utils import timezone

from apps.agents.models import Agent
from apps.replays.case_files import take_case_lines
from apps.replays.cases import WrongCase
from apps.web.access import Place
from apps.web.pages.replay_cases import MOST_REFUSED_SHOWN, Receipt


def problem_receipt(problem: str) -> Receipt:
    """The receipt of something that was no file of cases at all."""
    return Receipt(
        read=0, new=0, refused=[], refused_count=0, notes=[], problem=problem
    )


def taken_file(place: Place, content: bytes, usual: Agent | None) -> Receipt:
    """Keep the cases of JSON lines; `usual` is the agent of lines that name none."""
    try:
        taken = take_case_lines(
            project_id=place.project.pk,
            content=content,
            usual=usual,
            user_id=place.user.pk,
            now=timezone.now(),
        )
    except WrongCase as error:
        return problem_receipt(f"{error} Nothing of the file was kept.")
    return Receipt(
        read=len(taken.kept),
        new=taken.new,
        refused=list(taken.refused[:MOST_REFUSED_SHOWN]),
        refused_count=taken.refused_count,
        notes=list(taken.notes),
        problem="" if taken.kept else "The file holds no case that could be kept.",
    )
