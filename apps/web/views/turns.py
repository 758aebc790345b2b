"""Where a reviewer goes next: to a signal, or to a blind look when it is its turn."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest
from django.urls import reverse

from apps.review.models import BlindLook
from apps.review.queries import QueueFilter
from apps.review.turns import claim_next_turn
from apps.web.access import Place
from apps.web.pages.queue import query_of


def next_address(
    request: HttpRequest, place: Place, where: QueueFilter, *, empty: str
) -> str:
    """Claim what comes next in a view and return its address.

    The address of the view, and `empty` as a message, when nothing is open.
    """
    found = claim_next_turn(project=place.project, user=place.user, where=where)
    slug = place.project.slug
    if found is None:
        messages.info(request, empty)
        return reverse("queue", args=[slug]) + query_of(where)
    if isinstance(found, BlindLook):
        return reverse("blind", args=[slug, found.pk])
    return reverse("signal", args=[slug, found.pk]) + query_of(where)
