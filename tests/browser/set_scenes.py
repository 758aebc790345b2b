"""Trace sets of the furnished project, and the pages on which they are compared."""

from __future__ import annotations

from urllib.parse import urlencode

from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import Project, User
from apps.pipeline.baselines import choose_baseline, make_baseline
from apps.traces.models import TraceSet
from apps.traces.queries import TraceFilter
from apps.traces.sets import Chosen, NewSet, make_set

SETS = {
    "All of April": TraceFilter(),
    "Failed runs": TraceFilter(outcome="fail"),
    "The evening desk": TraceFilter(outcome="pass"),
}


def make_sets(project: Project, owner: User) -> None:
    """Sets to compare: one is the baseline, one waits to become it."""
    now = timezone.now()
    for name, where in SETS.items():
        new = NewSet(name, Chosen(where), "As agreed for the look at the release.")
        make_set(project=project, new=new, user_id=owner.pk, now=now)
    sets = TraceSet.objects.filter(project=project)
    april, failed = sets.get(slug="all-of-april"), sets.get(slug="failed-runs")
    choose_baseline(trace_set=april, now=now)
    make_baseline(trace_set_id=april.pk, clock=timezone.now)
    choose_baseline(trace_set=failed, now=now)


def compare_addresses(project: Project, empty: Project) -> list[tuple[str, str]]:
    """Names and addresses of the pages of sets and comparisons."""

    def of(name: str, *more: object) -> str:
        return reverse(name, args=[project.slug, *more])

    sides = {"first": "the-evening-desk", "second": "failed-runs"}
    return [
        ("sets", of("sets")),
        ("sets-empty", reverse("sets", args=[empty.slug])),
        ("set-new", of("set-new") + "?outcome=fail"),
        ("set-baseline", of("trace-set", "all-of-april")),
        ("set-becoming", of("trace-set", "failed-runs")),
        ("set-delete", of("set-delete", "all-of-april")),
        ("compare", of("compare") + "?" + urlencode(sides)),
        ("compare-choose", of("compare")),
        ("compare-empty", reverse("compare", args=[empty.slug])),
    ]
