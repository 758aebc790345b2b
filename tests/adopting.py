"""Changing the line-up of a project in tests, the way the product does it."""

from __future__ import annotations

from typing import Any

from apps.accounts.models import Project, User
from apps.engine.check import Check, configured
from apps.pipeline.lineups import catch_up
from apps.pipeline.shadows import Wish, adopt_key, begin_shadow, run_shadow, set_paused
from apps.review import operations as review
from apps.review.models import HistoryEntry, Signal
from apps.review.operations import DecisionInput
from apps.review.shadow_results import Pair
from apps.review.transitions import Verdict
from apps.screening.lineup import lineup_of
from apps.screening.models import RegressionCase, Shadow
from apps.screening.regression import NewCase, make_case
from apps.screening.shadows import check_of
from apps.traces.queries import engine_trace
from tests.factories import NOW, decay_trace, upload_traces

FALLING = (100, 90, 80, 70, 60)
STEEP = (100, 80, 60, 40, 20)
"""Below half of its first output at the end; `FALLING` ends at 60 % of it."""
GENTLE = (100, 95, 90, 85, 80)
RUNS = {"falling": FALLING, "steep": STEEP, "gentle": GENTLE}


def upload_runs(project: Project, *names: str) -> None:
    """One upload of the runs with these names."""
    upload_traces(project, *(decay_trace(*RUNS[name], name=name) for name in names))


def decide(name: str, user: User, verdict: Verdict, reason: str = "") -> Signal:
    """The only signal of the trace with this name, decided."""
    signal = Signal.objects.get(trace__name=name)
    return review.decide(
        signal_id=signal.pk,
        user=user,
        decision=DecisionInput(verdict=verdict, reason=reason),
        base_version=signal.version,
    )


def pair(project: Project, shadow: Shadow) -> Pair:
    """The key that counts beside the key of a shadow."""
    lineup = lineup_of(project.pk)
    current = lineup.by_slug[shadow.check_slug].check
    return Pair(project, current, check_of(shadow, lineup))


def key(project: Project, slug: str = "output-decay", **values: Any) -> Check:
    """The check as the project has it now, with other parameters."""
    return configured(lineup_of(project.pk).by_slug[slug].check, values)


def adopt(project: Project, slug: str = "output-decay", **values: Any) -> Check:
    """Adopt other parameters of a check and catch up."""
    check = key(project, slug, **values)
    adopt_key(project_id=project.pk, wish=Wish(check), user_id=None, now=NOW)
    caught_up(project)
    return check


def pause(project: Project, slug: str = "output-decay", *, is_paused: bool) -> None:
    """Pause a check or let it go on, and catch up."""
    set_paused(
        project_id=project.pk, slug=slug, is_paused=is_paused, user_id=None, now=NOW
    )
    caught_up(project)


def caught_up(project: Project) -> None:
    """Let the line-up answer about everything, in this process."""
    while catch_up(project_id=project.pk, clock=lambda: NOW):
        pass


def begun(project: Project, slug: str = "output-decay", **values: Any) -> Shadow:
    """A shadow of other parameters that no worker has begun with."""
    shadow, _ = begin_shadow(
        project=project, check=key(project, slug, **values), user_id=None, now=NOW
    )
    return shadow


def shadowed(project: Project, slug: str = "output-decay", **values: Any) -> Shadow:
    """A shadow of other parameters that has come to its end."""
    shadow = begun(project, slug, **values)
    while run_shadow(shadow_id=shadow.pk):
        pass
    shadow.refresh_from_db()
    return shadow


def make_regression_case(
    project: Project, signal: Signal | None = None
) -> RegressionCase:
    """A case of a signal, of the project's first one by default."""
    return kept_quiet(project, signal)[0]


def kept_quiet(
    project: Project, signal: Signal | None = None
) -> tuple[RegressionCase, bool]:
    """As `make_regression_case`, and whether the case is new."""
    signal = signal or Signal.objects.filter(project=project).order_by("pk")[0]
    new = NewCase(
        check_slug=signal.check_slug,
        name="A run that ends in short answers",
        scope=signal.screening.scope,
        headline=signal.headline,
        reason="converged",
        note="",
        signal_id=signal.pk,
        trace_id=signal.trace_id,
    )
    return make_case(
        project_id=project.pk,
        new=new,
        trace=engine_trace(signal.trace),
        user_id=None,
        now=NOW,
    )


def acts(signal: Signal) -> list[str]:
    """What happened to a signal, oldest first."""
    rows = HistoryEntry.objects.filter(signal=signal).order_by("base_version")
    return list(rows.values_list("act", flat=True))
