"""The review queue: a view of signals, the next one, and undo of the last decision."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.permissions import Permission
from apps.review import blind
from apps.review import operations as review
from apps.review.models import BlindLook, Signal
from apps.review.queries import last_decided_by
from apps.web.access import Place, in_project
from apps.web.pages.blind_rows import mixed_rows
from apps.web.pages.queue import filter_from, query_of, queue_page
from apps.web.views.turns import next_address


@require_safe
@in_project(Permission.VIEW)
def queue(request: HttpRequest, place: Place) -> HttpResponse:
    """One view of the queue; filters, order and page stand in the URL."""
    page = queue_page(place, request.GET)
    context = {"page": page, "mixed": mixed_rows(place, page, request.GET)}
    return render(request, "web/queue.html", context)


@require_POST
@in_project(Permission.REVIEW)
def review_next(request: HttpRequest, place: Place) -> HttpResponse:
    """Claim what is next in a view, a signal or a blind look, and go to it."""
    where = filter_from(request.POST)
    empty = "Nothing is open in this view."
    return redirect(next_address(request, place, where, empty=empty))


@require_POST
@in_project(Permission.REVIEW)
def undo_last(request: HttpRequest, place: Place) -> HttpResponse:
    """Take back the reviewer's own last decision and go to what it was about."""
    query = query_of(filter_from(request.POST))
    signal = last_decided_by(project=place.project, user=place.user)
    look = blind.last_decided_by(project=place.project, user=place.user)
    if look is not None and (signal is None or _is_later(look, signal)):
        blind.undo(look_id=look.pk, user=place.user, base_version=look.version)
        messages.success(request, "Undone. The look is yours again.")
        return redirect("blind", place.project.slug, look.pk)
    if signal is None:
        messages.info(request, "You have not decided anything here yet.")
        return redirect(reverse("queue", args=[place.project.slug]) + query)
    review.undo(signal_id=signal.pk, user=place.user, base_version=signal.version)
    messages.success(request, "Undone. The signal is yours again.")
    return redirect(reverse("signal", args=[place.project.slug, signal.pk]) + query)


def _is_later(look: BlindLook, signal: Signal) -> bool:
    """Whether a look was decided after a signal; both are decided."""
    return (
        look.decided_at is not None
        and signal.decided_at is not None
        and look.decided_at > signal.decided_at
    )
