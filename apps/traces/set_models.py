"""Tables of named sets of traces. They know traces by name, so `models` may hold them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from apps.accounts.models import Project


class TraceSet(models.Model):
    """A named set of traces, frozen when it was made: a baseline, or a group by hand.

    `made_from` says in words and as filter fields how its traces were chosen.
    `baseline` holds what the checks that compare with a baseline read of it, and only
    one set of a project is the baseline for them.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    slug = models.SlugField(max_length=60)
    name = models.CharField(max_length=80)
    note = models.TextField(blank=True)
    made_from = models.JSONField(default=dict)
    trace_count = models.IntegerField(default=0)
    baseline = models.JSONField(null=True)
    is_baseline = models.BooleanField(default=False)
    traces = models.ManyToManyField("traces.Trace", through="TraceSetMember")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "slug"], name="one_trace_set_per_slug"
            ),
            models.UniqueConstraint(
                fields=["project"],
                condition=Q(is_baseline=True),
                name="one_baseline_per_project",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class TraceSetMember(models.Model):
    """One trace of one set."""

    pk = models.CompositePrimaryKey("trace_set_id", "trace_id")
    trace_set = models.ForeignKey(TraceSet, on_delete=models.CASCADE, db_index=False)
    trace = models.ForeignKey("traces.Trace", on_delete=models.CASCADE)

    def __str__(self) -> str:
        return f"trace {self.trace_id} of set {self.trace_set_id}"
