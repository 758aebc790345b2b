"""What each version of each check answered about each trace, and which one counts.

Answers are insert-only. Which key of a check (version and parameters) is current in a
project is the last row of its history.
"""

from __future__ import annotations

from django.conf import settings
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
                fields=[
                    "project",
                    "check_slug",
                    "check_version",
                    "parameters_hash",
                    "answer",
                    "level",
                    "reason_code",
                ],
                name="screening_counts",
                include=["chance_of_signal"],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.check_slug} v{self.check_version} on {self.trace_id}"


class AnswerCount(models.Model):
    """How many answers came or went: the counts of a project are sums of these rows.

    Triggers add a row for each kind of answer that a statement adds or takes away, so
    nobody who writes answers waits for another; `sum_up` makes few rows of many.
    `count` is negative where answers went.
    """

    project_id = models.BigIntegerField()
    check_slug = models.CharField(max_length=40)
    check_version = models.IntegerField()
    parameters_hash = models.CharField(max_length=16)
    answer = models.CharField(max_length=14)
    level = models.CharField(max_length=13)
    reason_code = models.CharField(max_length=40)
    chance_of_signal = models.FloatField(null=True)
    count = models.IntegerField()

    class Meta:
        indexes = [models.Index(fields=["project_id"], name="answer_count_project")]

    def __str__(self) -> str:
        return f"{self.count} times {self.answer} of {self.check_slug}"


class CheckState(models.TextChoices):
    """Whether the signals of a check are queued. A paused check answers all the same."""

    ACTIVE = "active", "Active"
    PAUSED = "paused", "Paused"


class Adoption(models.Model):
    """From one moment on, which key of a check counts in a project. Append-only.

    The row with the largest `number` of a check is current. `adopted_by` is NULL where
    the product chose: the newest version that it knew when the check first ran here.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    check_slug = models.CharField(max_length=40)
    number = models.IntegerField()
    check_version = models.IntegerField()
    parameters = models.JSONField(default=dict)
    parameters_hash = models.CharField(max_length=16)
    state = models.CharField(
        max_length=6, choices=CheckState.choices, default=CheckState.ACTIVE
    )
    note = models.TextField(blank=True)
    adopted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    adopted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "check_slug", "number"],
                name="one_adoption_per_number",
            )
        ]

    def __str__(self) -> str:
        return f"{self.check_slug} v{self.check_version} in {self.project_id}"


class DefinitionKind(models.TextChoices):
    """What a project may define as a check of its own."""

    CONTRACT = "contract", "Contract"
    PLANTED_FACT = "planted-fact", "Planted fact"


class DefinitionState(models.TextChoices):
    """Whether a definition is checked, answers without queueing, or is of the past."""

    ACTIVE = "active", "Active"
    PAUSED = "paused", "Paused"
    RETIRED = "retired", "Retired"


class Definition(models.Model):
    """A check that a project defines: a contract or a planted fact. Append-only.

    The row with the largest `number` of a slug is current. `version` grows when the
    spec does change, not when the state does.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    kind = models.CharField(max_length=12, choices=DefinitionKind.choices)
    slug = models.CharField(max_length=27)
    number = models.IntegerField()
    version = models.IntegerField()
    label = models.CharField(max_length=80)
    spec = models.JSONField()
    state = models.CharField(
        max_length=7, choices=DefinitionState.choices, default=DefinitionState.ACTIVE
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "slug", "number"],
                name="one_definition_per_number",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.slug} v{self.version} in {self.project_id}"


class ShadowState(models.TextChoices):
    """Where a shadow run stands."""

    RUNNING = "running", "Running"
    DONE = "done", "Done"
    CANCELLED = "cancelled", "Cancelled"
    FAILED = "failed", "Failed"
    ADOPTED = "adopted", "Adopted"


class Shadow(models.Model):
    """One key of a check tried on the traces that are here; the queue is not touched.

    Its answers are rows of `Screening` under its own key. `last_trace` is the trace up
    to which it has come (by id), `claimed_until` the lease of the worker on it.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    check_slug = models.CharField(max_length=40)
    check_version = models.IntegerField()
    parameters = models.JSONField(default=dict)
    parameters_hash = models.CharField(max_length=16)
    state = models.CharField(
        max_length=9, choices=ShadowState.choices, default=ShadowState.RUNNING
    )
    last_trace = models.BigIntegerField(default=0)
    traces_done = models.IntegerField(default=0)
    traces_total = models.IntegerField(default=0)
    tries = models.IntegerField(default=0)
    claimed_until = models.DateTimeField(null=True)
    failure = models.TextField(blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "check_slug", "check_version", "parameters_hash"],
                condition=Q(state="running"),
                name="one_running_shadow_per_key",
            )
        ]
        indexes = [
            models.Index(
                fields=["claimed_until"],
                condition=Q(state="running"),
                name="shadow_lease",
            )
        ]

    def __str__(self) -> str:
        return f"shadow {self.pk} of {self.check_slug} v{self.check_version}"


class RegressionCase(models.Model):
    """A trace, kept whole, on whose `scope` a check must give no review signal.

    Made from a dismissed signal. `content` is the trace as the engine reads it
    (compressed); it stays when the trace itself goes. A retired case is not run.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    check_slug = models.CharField(max_length=40)
    name = models.CharField(max_length=120)
    scope = models.CharField(max_length=80)
    headline = models.TextField()
    reason = models.CharField(max_length=14)
    note = models.TextField(blank=True)
    content = models.BinaryField()
    signal_id = models.BigIntegerField()
    trace = models.ForeignKey(Trace, null=True, on_delete=models.SET_NULL)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "signal_id"],
                condition=Q(retired_at=None),
                name="one_regression_case_per_signal",
            )
        ]
        indexes = [
            models.Index(
                fields=["project", "check_slug", "id"], name="regression_cases"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.check_slug})"
