"""Spans that were accepted and their traces in the making, and what was refused.

A span is durable here before its sender is told that it was taken. The row of a trace
is the job that makes a stored trace of its spans; no message of a broker is needed.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from apps.accounts.models import Project
from apps.traces.models import Trace


class LiveTrace(models.Model):
    """A trace whose spans arrive one request after another.

    `due_at` is when its spans are to be made a trace, and None when nothing has
    changed since. `generation` counts the requests that changed its spans; `attempt`
    is the fencing number of whoever assembles it; `tries` counts attempts in a row that
    stored nothing. `stored_bytes` is the part of
    `byte_count` that the stored trace was made of, and `redactions` counts the secrets
    that were replaced in it, by rule slug. Once its spans are forgotten (`is_settled`) nothing can be added.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    native_id = models.CharField(max_length=64)
    trace = models.OneToOneField(
        Trace, null=True, on_delete=models.CASCADE, related_name="live"
    )
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField()
    span_count = models.IntegerField(default=0)
    byte_count = models.BigIntegerField(default=0)
    stored_bytes = models.BigIntegerField(default=0)
    refused_count = models.IntegerField(default=0)
    has_ended_root = models.BooleanField(default=False)
    is_settled = models.BooleanField(default=False)
    due_at = models.DateTimeField(null=True)
    generation = models.IntegerField(default=0)
    attempt = models.IntegerField(default=0)
    tries = models.IntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    failure = models.TextField(blank=True)
    redactions = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "native_id"], name="one_live_trace_per_id"
            )
        ]
        indexes = [
            models.Index(
                fields=["due_at"], condition=Q(due_at__isnull=False), name="live_due"
            ),
            models.Index(fields=["project", "-last_seen"], name="live_last_seen"),
            models.Index(
                fields=["last_seen"],
                condition=Q(is_settled=False),
                name="live_unsettled",
            ),
        ]

    def __str__(self) -> str:
        return f"live trace {self.native_id}"


class LiveSpan(models.Model):
    """One span as it came: the protobuf bytes of a ResourceSpans that holds it alone.

    They are sealed where the project keeps raw bytes encrypted or not at all. `fullness` orders two copies of a span; the fuller one is kept.
    """

    live_trace = models.ForeignKey(LiveTrace, on_delete=models.CASCADE, db_index=False)
    span_id = models.CharField(max_length=64)
    fullness = models.BigIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["live_trace", "span_id"], name="each_live_span_once"
            )
        ]

    def __str__(self) -> str:
        return f"span {self.span_id} of live trace {self.live_trace_id}"


class Refusal(models.Model):
    """What was not taken from live senders on one day for one reason."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    day = models.DateField()
    code = models.CharField(max_length=40)
    count = models.BigIntegerField(default=0)
    sentence = models.TextField()
    last_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "day", "code"], name="one_line_per_reason_and_day"
            )
        ]

    def __str__(self) -> str:
        return f"{self.code} on {self.day}: {self.count}"
