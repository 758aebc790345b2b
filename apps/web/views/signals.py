"""One signal: look, claim, decide, undo. Reading never claims; deciding does."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.permissions import Permission
from apps.review import operations as review
from apps.review.models import Signal
from apps.review.transitions import NotPossibleNow
from apps.web.access import Place, in_project
from apps.web.forms import DecisionForm, VersionForm, first_error
from apps.web.pages.queue import filter_from, query_of
from apps.web.pages.signal import signal_page
from apps.web.views.claims import lease, renewal, typed_in
from apps.web.views.errors import refusal, wants_json
from apps.web.views.turns import next_address


@require_safe
@in_project(Permission.VIEW)
def signal(request: HttpRequest, place: Place, signal_id: int) -> HttpResponse:
    """The evidence, the steps around it, the decision panel, the history."""
    page = signal_page(place, place.signal(signal_id), filter_from(request.GET))
    return render(request, "web/signal.html", {"page": page})


def _claimed(request: HttpRequest, place: Place, held: Signal) -> HttpResponse:
    if wants_json(request):
        return lease(held.version, held.claimed_until)
    query = query_of(filter_from(request.POST))
    return redirect(reverse("signal", args=[place.project.slug, held.pk]) + query)


@require_POST
@in_project(Permission.REVIEW)
def claim(request: HttpRequest, place: Place, signal_id: int) -> HttpResponse:
    """Claim this signal; 409 with who has it otherwise."""
    place.signal(signal_id)
    held = review.claim(signal_id=signal_id, user=place.user)
    return _claimed(request, place, held)


@require_POST
@in_project(Permission.REVIEW)
def release(request: HttpRequest, place: Place, signal_id: int) -> HttpResponse:
    """Give the user's own claim back."""
    place.signal(signal_id)
    review.release(signal_id=signal_id, user=place.user)
    if request.POST.get("beacon"):
        # The page is being left; nobody follows a redirect.
        return HttpResponse(status=204)
    query = query_of(filter_from(request.POST))
    return redirect(reverse("queue", args=[place.project.slug]) + query)


@require_POST
@in_project(Permission.REVIEW)
def heartbeat(request: HttpRequest, place: Place, signal_id: int) -> HttpResponse:
    """Renew the user's own claim; 409 when it is gone."""
    held = place.signal(signal_id)
    until = review.renew(signal_id=signal_id, user=place.user)
    return renewal(request, version=held.version, until=until, what="signal")


@require_POST
@in_project(Permission.REVIEW)
def draft(request: HttpRequest, place: Place, signal_id: int) -> HttpResponse:
    """Keep what the reviewer has typed so far."""
    place.signal(signal_id)
    now = timezone.now()
    review.save_draft(
        signal_id=signal_id, user=place.user, fields=typed_in(request), now=now
    )
    return JsonResponse({"saved_at": now.isoformat()})


@require_POST
@in_project(Permission.REVIEW)
def decide(request: HttpRequest, place: Place, signal_id: int) -> HttpResponse:
    """Write the decision and go on to the next signal of the view."""
    place.signal(signal_id)
    where = filter_from(request.POST)
    form = DecisionForm(request.POST)
    if not form.is_valid():
        return _say_again(request, place, signal_id, first_error(form))
    try:
        review.decide(
            signal_id=signal_id,
            user=place.user,
            decision=form.decision(),
            base_version=form.cleaned_data["version"],
            submission=form.cleaned_data["submission"],
        )
    except review.AlreadySubmitted:
        # The first of these forms goes on to the next signal; this one claims nothing.
        url = reverse("signal", args=[place.project.slug, signal_id])
        return redirect(url + query_of(where))
    except NotPossibleNow as error:
        return _say_again(request, place, signal_id, str(error))
    except review.Conflict as error:
        review.save_draft(
            signal_id=signal_id,
            user=place.user,
            fields=typed_in(request),
            now=timezone.now(),
        )
        return _say_again(request, place, signal_id, str(error), status=409)
    messages.success(request, "Decided. Undo with u.", extra_tags="undo")
    empty = "That was the last open signal of this view."
    return redirect(next_address(request, place, where, empty=empty))


def _say_again(
    request: HttpRequest,
    place: Place,
    signal_id: int,
    sentence: str,
    status: int = 422,
) -> HttpResponse:
    """The same page with what went wrong and everything that was typed."""
    if wants_json(request):
        return refusal(request, status=status, sentence=sentence)
    page = signal_page(
        place,
        place.signal(signal_id),
        filter_from(request.POST),
        typed=typed_in(request),
    )
    return render(
        request, "web/signal.html", {"page": page, "refused": sentence}, status=status
    )


@require_POST
@in_project(Permission.REVIEW)
def undo(request: HttpRequest, place: Place, signal_id: int) -> HttpResponse:
    """Take the user's own decision on this signal back."""
    place.signal(signal_id)
    form = VersionForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    held = review.undo(
        signal_id=signal_id,
        user=place.user,
        base_version=form.cleaned_data["version"],
    )
    messages.success(request, "Undone. The signal is yours again.")
    return _claimed(request, place, held)
