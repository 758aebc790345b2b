"""Blind looks of a furnished project: some that wait, and some that are decided."""

from __future__ import annotations

from django.urls import reverse

from apps.accounts.models import Project, User
from apps.accounts.operations import set_blind_percent
from apps.engine.formats.evalsite_writer import dump
from apps.review import blind
from apps.review.blind import BlindInput
from apps.review.models import BlindLook
from apps.review.transitions import BlindVerdict
from tests.browser.making import Scene, upload_and_read
from tests.factories import decay_trace

QUIET = ((50, 60, 55, 58, 61), (40, 70, 44, 52, 39, 66), (80, 81, 79, 90, 85))
FALLING = (140, 120, 100, 80, 60, 40)


def upload_for_blind_looks(project: Project) -> None:
    """A small upload whose traces are all drawn for blind looks."""
    set_blind_percent(project=project, percent=100)
    project.refresh_from_db()
    made = [
        decay_trace(*lengths, name=f"morning {number}", task="late parcel")
        for number, lengths in enumerate([*QUIET, FALLING])
    ]
    content = b"".join(dump(trace) for trace in made)
    upload_and_read(project, content, name="morning-run.evalsite.jsonl")
    set_blind_percent(project=project, percent=10)


def look_blindly(project: Project, owner: User, reviewer: User) -> None:
    """Blind looks that are decided, one of them with what the checks said."""
    looks = list(BlindLook.objects.filter(project=project).order_by("place")[:3])
    for look, user in zip(looks, (owner, owner, reviewer), strict=True):
        verdict = BlindVerdict.FAILURE if look.was_flagged else BlindVerdict.NO_FAILURE
        blind.decide(
            look_id=look.pk,
            user=user,
            decision=BlindInput(verdict=verdict, note="Read to the end."),
            base_version=0,
        )
    blind.reveal(look_id=looks[0].pk, user=owner)


def blind_scenes(project: Project, owner: User) -> list[Scene]:
    of_project = BlindLook.objects.filter(project=project)
    decided = of_project.filter(decided_by=owner).order_by("decided_at")
    chosen = {
        "blind": of_project.filter(state="open").first(),
        "blind-revealed": decided.first(),
        "blind-decided": decided.last(),
    }
    return [
        Scene(name, reverse("blind", args=[project.slug, look.pk]))
        for name, look in chosen.items()
        if look is not None
    ]
