"""What each version of each check answered about each trace. Rows are insert-only."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from apps.accounts.models import Project
from apps.engine.check import Answer, Level
from apps.traces.models import Trace


class Screening(models.Model):
    """One check's answer about one scope of a trace, with all of its evidence.

    `parameters_hash` names the parameters (kept whole in `evidence["parameters"]`).
    What lists filter, sort and count stands in columns, the rest in `evidence`.
    `chance` is the null probability of the observed shape; `chance_of_signal` is how
    often the null model alone makes the check fire here, kept for quiet answers too,
    so that expected counts can be summed over everything that was screened.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, db_index=False)
    check_slug = models.CharField(max_length=40)
    check_version = models.IntegerField()
    parameters_hash = models.CharField(max_length=16)
    scope = models.CharField(max_length=80)
    answer = models.CharField(
        max_length=14, choices=[(a.value, a.value) for a in Answer]
    )
    level = models.CharField(max_length=13, choices=[(v.value, v.value) for v in Level])
    reason_code = models.CharField(max_length=40)
    headline = models.TextField()
    agent = models.CharField(max_length=300, null=True)
    chance = models.FloatField(null=True)
    chance_of_signal = models.FloatField(null=True)
    input_hash = models.CharField(max_length=64)
    evidence = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "trace",
                    "check_slug",
                    "check_version",
                    "parameters_hash",
                    "scope",
                ],
                name="one_answer_per_check_and_scope",
            ),
            models.CheckConstraint(
                condition=Q(chance=None) | Q(chance__gte=0, chance__lte=1),
                name="chance_is_a_probability",
            ),
        ]
        indexes = [
            # Answers the counts per check of a project from the index alone.
            models.Index(
                fields=["project", "check_slug", "answer", "level", "reason_code"],
                name="screening_counts",
                include=["chance_of_signal"],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.check_slug} v{self.check_version} on {self.trace_id}"
