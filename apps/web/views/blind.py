"""One blind look: read the run, say whether it failed, then see what the checks said."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.permissions import Permission
from apps.review import blind
from apps.review.models import BlindLook
from apps.review.operations import AlreadySubmitted, Conflict
from apps.review.transitions import NotPossibleNow
from apps.web.access import Place, in_project
from apps.web.forms import BlindForm, VersionForm, first_error
from apps.web.pages.blind import blind_page
from apps.web.views.claims import lease, renewal, typed_in
from apps.web.views.errors import refusal, wants_json


@require_safe
@in_project(Permission.VIEW)
def look(request: HttpRequest, place: Place, look_id: int) -> HttpResponse:
    """The run and its steps; after the decision what the checks said."""
    page = blind_page(place, place.look(look_id), request.GET)
    return render(request, "web/blind.html", {"page": page})


def _claimed(request: HttpRequest, place: Place, held: BlindLook) -> HttpResponse:
    if wants_json(request):
        return lease(held.version, held.claimed_until)
    return redirect("blind", place.project.slug, held.pk)


@require_POST
@in_project(Permission.REVIEW)
def claim(request: HttpRequest, place: Place, look_id: int) -> HttpResponse:
    """Claim this look; 409 with who has it otherwise."""
    place.look(look_id)
    return _claimed(request, place, blind.claim(look_id=look_id, user=place.user))


@require_POST
@in_project(Permission.REVIEW)
def release(request: HttpRequest, place: Place, look_id: int) -> HttpResponse:
    """Give the user's own claim back."""
    place.look(look_id)
    blind.release(look_id=look_id, user=place.user)
    if request.POST.get("beacon"):
        # The page is being left; nobody follows a redirect.
        return HttpResponse(status=204)
    return redirect("queue", place.project.slug)


@require_POST
@in_project(Permission.REVIEW)
def heartbeat(request: HttpRequest, place: Place, look_id: int) -> HttpResponse:
    """Renew the user's own claim; 409 when it is gone."""
    held = place.look(look_id)
    until = blind.renew(look_id=look_id, user=place.user)
    return renewal(request, version=held.version, until=until, what="look")


@require_POST
@in_project(Permission.REVIEW)
def draft(request: HttpRequest, place: Place, look_id: int) -> HttpResponse:
    """Keep what the reviewer has typed so far."""
    place.look(look_id)
    now = timezone.now()
    blind.save_draft(
        look_id=look_id, user=place.user, fields=typed_in(request), now=now
    )
    return JsonResponse({"saved_at": now.isoformat()})


@require_POST
@in_project(Permission.REVIEW)
def decide(request: HttpRequest, place: Place, look_id: int) -> HttpResponse:
    """Write the answer; the page then offers undo, the checks' answers, and the next."""
    place.look(look_id)
    form = BlindForm(request.POST)
    if not form.is_valid():
        return _say_again(request, place, look_id, first_error(form))
    try:
        blind.decide(
            look_id=look_id,
            user=place.user,
            decision=form.decision(),
            base_version=form.cleaned_data["version"],
            submission=form.cleaned_data["submission"],
        )
    except AlreadySubmitted:
        return redirect("blind", place.project.slug, look_id)
    except NotPossibleNow as error:
        return _say_again(request, place, look_id, str(error))
    except Conflict as error:
        blind.save_draft(
            look_id=look_id,
            user=place.user,
            fields=typed_in(request),
            now=timezone.now(),
        )
        return _say_again(request, place, look_id, str(error), status=409)
    # The page itself offers undo, what the checks said, and what comes next.
    return redirect("blind", place.project.slug, look_id)


def _say_again(
    request: HttpRequest,
    place: Place,
    look_id: int,
    sentence: str,
    status: int = 422,
) -> HttpResponse:
    """The same page with what went wrong and everything that was typed."""
    if wants_json(request):
        return refusal(request, status=status, sentence=sentence)
    page = blind_page(place, place.look(look_id), {}, typed=typed_in(request))
    return render(
        request, "web/blind.html", {"page": page, "refused": sentence}, status=status
    )


@require_POST
@in_project(Permission.REVIEW)
def undo(request: HttpRequest, place: Place, look_id: int) -> HttpResponse:
    """Take the user's own decision on this look back."""
    place.look(look_id)
    form = VersionForm(request.POST)
    if not form.is_valid():
        return refusal(request, status=400, sentence=first_error(form))
    held = blind.undo(
        look_id=look_id, user=place.user, base_version=form.cleaned_data["version"]
    )
    messages.success(request, "Undone. The look is yours again.")
    return _claimed(request, place, held)


@require_POST
@in_project(Permission.REVIEW)
def reveal(request: HttpRequest, place: Place, look_id: int) -> HttpResponse:
    """Show the reviewer who decided what the checks said; no undo after that."""
    place.look(look_id)
    blind.reveal(look_id=look_id, user=place.user)
    messages.info(request, "You are no longer blind: the decision stays as it is.")
    url = reverse("blind", args=[place.project.slug, look_id])
    return redirect(url + "#answers")
