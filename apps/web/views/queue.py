"""The review queue: a view of signals, the next one, and undo of the last decision."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.permissions import Permission
from apps.review import operations as review
from apps.review.queries import last_decided_by
from apps.web.access import Place, in_project
from apps.web.pages.queue import filter_from, query_of, queue_page


@require_safe
@in_project(Permission.VIEW)
def queue(request: HttpRequest, place: Place) -> HttpResponse:
    """One view of the queue; filters, order and page stand in the URL."""
    return render(request, "web/queue.html", {"page": queue_page(place, request.GET)})


@require_POST
@in_project(Permission.REVIEW)
def review_next(request: HttpRequest, place: Place) -> HttpResponse:
    """Claim the next open signal of a view and go to it."""
    where = filter_from(request.POST)
    query = query_of(where)
    signal = review.claim_next(project=place.project, user=place.user, where=where)
    if signal is None:
        messages.info(request, "Nothing is open in this view.")
        return redirect(reverse("queue", args=[place.project.slug]) + query)
    return redirect(reverse("signal", args=[place.project.slug, signal.pk]) + query)


@require_POST
@in_project(Permission.REVIEW)
def undo_last(request: HttpRequest, place: Place) -> HttpResponse:
    """Take back the reviewer's own last decision and go to its signal."""
    query = query_of(filter_from(request.POST))
    signal = last_decided_by(project=place.project, user=place.user)
    if signal is None:
        messages.info(request, "You have not decided anything here yet.")
        return redirect(reverse("queue", args=[place.project.slug]) + query)
    review.undo(signal_id=signal.pk, user=place.user, base_version=signal.version)
    messages.success(request, "Undone. The signal is yours again.")
    return redirect(reverse("signal", args=[place.project.slug, signal.pk]) + query)
