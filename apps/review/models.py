"""Signals in the queue, their append-only history, and drafts of decisions."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from apps.accounts.models import Project
from apps.review.transitions import (
    BlindVerdict,
    DismissalReason,
    FailureKind,
    SignalState,
    Verdict,
)
from apps.screening.models import Screening
from apps.traces.models import Trace


class Signal(models.Model):
    """A screening that wants a look. At most one per screening.

    `version` counts its changes: an act that was based on an older version is
    refused. The columns before `state` are copies for filters and sorting; `chance`
    is 1 where no null model exists. `q` is the chance corrected for how many sequences
    the check was asked about (NULL for a fact), and `rank` orders the queue by it.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    screening = models.OneToOneField(Screening, on_delete=models.CASCADE)
    trace = models.ForeignKey(Trace, on_delete=models.CASCADE)
    check_slug = models.CharField(max_length=40)
    check_version = models.IntegerField()
    agent = models.CharField(max_length=300, blank=True)
    chance = models.FloatField()
    q = models.FloatField(null=True)
    rank = models.FloatField(default=1.0, db_default=1.0)
    effect = models.FloatField(default=0.0)
    length = models.IntegerField(default=0)
    usage_missing = models.BooleanField(default=False)
    outcome = models.CharField(max_length=8)
    is_masked = models.BooleanField(default=False, db_default=False)
    headline = models.TextField()
    created_at = models.DateTimeField()

    state = models.CharField(
        max_length=10, choices=SignalState.choices, default=SignalState.OPEN
    )
    version = models.IntegerField(default=0)
    claimed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="claimed_signals",
    )
    claimed_until = models.DateTimeField(null=True)
    verdict = models.CharField(max_length=16, choices=Verdict.choices, blank=True)
    reason = models.CharField(
        max_length=14, choices=DismissalReason.choices, blank=True
    )
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="decided_signals",
    )
    decided_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(state="claimed", claimed_until__isnull=False)
                | (~Q(state="claimed") & Q(claimed_until=None)),
                name="only_a_claimed_signal_has_a_lease",
            ),
            models.CheckConstraint(
                condition=(Q(state="decided") & ~Q(verdict=""))
                | (~Q(state="decided") & Q(verdict="")),
                name="only_a_decided_signal_has_a_verdict",
            ),
        ]
        indexes = [
            models.Index(
                fields=["project", "state", "rank", "chance", "id"],
                name="signal_rarest",
            ),
            models.Index(fields=["project", "state", "-id"], name="signal_newest"),
            models.Index(fields=["project", "state", "id"], name="signal_oldest"),
            models.Index(
                fields=["project", "state", "-effect", "id"], name="signal_largest"
            ),
            models.Index(
                fields=["project", "check_slug", "state", "rank", "chance", "id"],
                name="signal_by_check",
            ),
            models.Index(
                fields=["project", "agent", "state", "rank", "chance", "id"],
                name="signal_by_agent",
            ),
            models.Index(
                fields=["project", "outcome", "state", "rank", "chance", "id"],
                name="signal_by_outcome",
            ),
            models.Index(
                fields=["project", "is_masked", "state", "rank", "chance", "id"],
                name="signal_masked",
            ),
            models.Index(
                fields=["claimed_until"],
                condition=Q(state="claimed"),
                name="signal_lease",
            ),
        ]

    def __str__(self) -> str:
        return f"signal {self.pk}: {self.headline}"


class HistoryEntry(models.Model):
    """One thing that happened to a signal. Never changed; a trigger refuses it.

    `base_version` is the version it was based on, so two acts on the same version
    cannot both be written.
    """

    signal = models.ForeignKey(Signal, on_delete=models.CASCADE, db_index=False)
    base_version = models.IntegerField()
    act = models.CharField(max_length=10)
    at = models.DateTimeField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    state_before = models.CharField(max_length=10, blank=True)
    state_after = models.CharField(max_length=10)
    verdict = models.CharField(max_length=16, choices=Verdict.choices, blank=True)
    reason = models.CharField(
        max_length=14, choices=DismissalReason.choices, blank=True
    )
    note = models.TextField(blank=True)
    failure_kind = models.CharField(
        max_length=10, choices=FailureKind.choices, blank=True
    )
    where_agent = models.CharField(max_length=300, blank=True)
    where_step = models.IntegerField(null=True)
    evidence_hash = models.CharField(max_length=64)
    submission = models.UUIDField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["signal", "base_version"], name="one_act_per_version"
            ),
            models.UniqueConstraint(
                fields=["signal", "submission"],
                condition=Q(submission__isnull=False),
                name="one_act_per_submission",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.act} at version {self.base_version} of signal {self.signal_id}"


class Draft(models.Model):
    """What a reviewer has typed about a signal and not submitted yet."""

    signal = models.ForeignKey(Signal, on_delete=models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    fields = models.JSONField(default=dict)
    saved_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["signal", "user"], name="one_draft_per_reviewer"
            )
        ]

    def __str__(self) -> str:
        return f"draft of {self.user_id} on {self.signal_id}"


class BlindLook(models.Model):
    """A trace that a reviewer judges without knowing what the checks said of it.

    About half of them were flagged when they were drawn (`was_flagged`), so that a
    blind look itself gives nothing away. `place` is their seeded order in the queue.
    Claims and decisions leave lines of `BlindEntry`.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    trace = models.OneToOneField(Trace, on_delete=models.CASCADE)
    was_flagged = models.BooleanField()
    place = models.FloatField()
    created_at = models.DateTimeField()
    state = models.CharField(
        max_length=10, choices=SignalState.choices, default=SignalState.OPEN
    )
    version = models.IntegerField(default=0)
    claimed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="claimed_blind_looks",
    )
    claimed_until = models.DateTimeField(null=True)
    verdict = models.CharField(max_length=11, choices=BlindVerdict.choices, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="decided_blind_looks",
    )
    decided_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=(Q(state="decided") & ~Q(verdict=""))
                | (~Q(state="decided") & Q(verdict="")),
                name="only_a_decided_blind_look_has_a_verdict",
            )
        ]
        indexes = [
            models.Index(
                fields=["project", "state", "place", "id"], name="blind_look_place"
            )
        ]

    def __str__(self) -> str:
        return f"blind look {self.pk} at trace {self.trace_id}"


class BlindEntry(models.Model):
    """One thing that happened to a blind look. Append-only, as all history is."""

    look = models.ForeignKey(BlindLook, on_delete=models.CASCADE, db_index=False)
    base_version = models.IntegerField()
    act = models.CharField(max_length=10)
    at = models.DateTimeField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    verdict = models.CharField(max_length=11, choices=BlindVerdict.choices, blank=True)
    failure_kind = models.CharField(
        max_length=10, choices=FailureKind.choices, blank=True
    )
    where_agent = models.CharField(max_length=300, blank=True)
    where_step = models.IntegerField(null=True)
    note = models.TextField(blank=True)
    submission = models.UUIDField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["look", "base_version"], name="one_blind_act_per_version"
            ),
            models.UniqueConstraint(
                fields=["look", "submission"],
                condition=Q(submission__isnull=False),
                name="one_blind_act_per_submission",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.act} at version {self.base_version} of look {self.look_id}"


class BlindDraft(models.Model):
    """What a reviewer has typed about a blind look and not submitted yet."""

    look = models.ForeignKey(BlindLook, on_delete=models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    fields = models.JSONField(default=dict)
    saved_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["look", "user"], name="one_blind_draft_per_reviewer"
            )
        ]

    def __str__(self) -> str:
        return f"draft of {self.user_id} on blind look {self.look_id}"
