"""Shadows in every state, adoptions, a pause and regression cases, and their pages."""

from __future__ import annotations

from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.engine.check import configured
from apps.pipeline.lineups import catch_up
from apps.pipeline.shadows import (
    Wish,
    adopt_key,
    begin_shadow,
    run_shadow,
    set_paused,
)
from apps.review import operations as review
from apps.review.models import Signal
from apps.review.transitions import DismissalReason, SignalState, Verdict
from apps.screening.lineup import lineup_of
from apps.screening.models import RegressionCase, Shadow
from apps.screening.regression import NewCase, make_case
from apps.screening.shadows import cancel_shadow, claim_shadow
from apps.traces.queries import engine_trace
from tests.browser.making import EMPTY

DECAY = "output-decay"


def _try(project: Project, owner: User, **values: float) -> Shadow:
    check = configured(lineup_of(project.pk).by_slug[DECAY].check, values)
    shadow, _ = begin_shadow(
        project=project, check=check, user_id=owner.pk, now=timezone.now()
    )
    return shadow


def _caught_up(project: Project) -> None:
    while catch_up(project_id=project.pk, clock=timezone.now):
        pass


def _dismiss_and_keep(project: Project, reviewer: User) -> None:
    """A dismissed signal of the check that becomes a case."""
    signal = Signal.objects.filter(
        project=project, check_slug=DECAY, state=SignalState.OPEN
    ).order_by("-chance", "-pk")[0]
    decided = review.decide(
        signal_id=signal.pk,
        user=reviewer,
        base_version=signal.version,
        decision=review.DecisionInput(
            verdict=Verdict.DISMISS,
            reason=DismissalReason.CONVERGED.value,
            note="The order was confirmed; nothing was left to say.",
        ),
    )
    make_case(
        project_id=project.pk,
        new=NewCase(
            check_slug=decided.check_slug,
            name="A run that ends because the order is confirmed",
            scope=decided.screening.scope,
            headline=decided.headline,
            reason=decided.reason,
            note="The order was confirmed; nothing was left to say.",
            signal_id=decided.pk,
            trace_id=decided.trace_id,
        ),
        trace=engine_trace(decided.trace),
        user_id=reviewer.pk,
        now=timezone.now(),
    )


def furnish_line_up(project: Project, owner: User, reviewer: User) -> None:
    """Keys that were tried, adopted and paused; a running shadow that never moves."""
    _dismiss_and_keep(project, reviewer)
    for values in ({"last_percent": 45}, {"last_percent": 80, "min_calls": 6}):
        shadow = _try(project, owner, **values)
        while run_shadow(shadow_id=shadow.pk):
            pass
    cancel_shadow(shadow_id=_try(project, owner, min_calls=20).pk)
    tool_drift = lineup_of(project.pk).by_slug["tool-drift"].check
    adopt_key(
        project_id=project.pk,
        wish=Wish(
            configured(tool_drift, {"window": 5}), note="Four calls are few for us."
        ),
        user_id=owner.pk,
        now=timezone.now(),
    )
    set_paused(
        project_id=project.pk,
        slug="missing-usage",
        is_paused=True,
        user_id=owner.pk,
        now=timezone.now(),
    )
    _caught_up(project)
    running = _try(project, owner, last_percent=30)
    # Held by nobody who works on it: its page stays as it is.
    claim_shadow(shadow_id=running.pk, lease_seconds=3_600)
    Shadow.objects.filter(pk=running.pk).update(traces_done=running.traces_total // 3)


def line_up_addresses(project: Project) -> list[tuple[str, str]]:
    """The names and addresses of their pages."""

    def of(name: str, *more: object) -> str:
        return reverse(name, args=[project.slug, *more])

    empty = Project.objects.get(name=EMPTY, members__in=project.members.all())
    kept = RegressionCase.objects.filter(project=project)
    superseded = Signal.objects.filter(project=project, state="superseded").first()
    found = [
        ("shadows", of("shadows", DECAY)),
        ("shadows-adopted", of("shadows", "tool-drift")),
        ("project-check-paused", of("project-check", "missing-usage")),
        ("regression", of("regression")),
        ("regression-empty", reverse("regression", args=[empty.slug])),
    ]
    found += [
        (
            f"shadow-{shadow.state}-{shadow.pk}",
            of("shadow", DECAY, shadow.pk),
        )
        for shadow in Shadow.objects.filter(project=project).order_by("pk")
    ]
    found += [("signal-kept", of("signal", case.signal_id)) for case in kept[:1]]
    if superseded is not None:
        found.append(("signal-superseded", of("signal", superseded.pk)))
    return found
