"""Tables of what is in a trace: agent invocations, steps, bodies.

Steps are narrow rows; what people read lies in compressed chunks beside them. A
missing count is NULL with a state, and the database refuses a count without one.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from apps.engine.trace import FinishReason, StepKind, StepStatus, UsageState, Via

KINDS = tuple(StepKind)
STATUSES = tuple(StepStatus)
FINISHES = tuple(FinishReason)
USAGE_STATES = tuple(UsageState)

FLAG_PLACEHOLDER = 1
FLAG_RESETS_CONTEXT = 2


class AgentInvocation(models.Model):
    """One activation of a named agent inside a trace."""

    pk = models.CompositePrimaryKey("trace_id", "number")
    trace = models.ForeignKey("traces.Trace", on_delete=models.CASCADE)
    number = models.IntegerField()
    agent = models.CharField(max_length=300, null=True)
    parent = models.IntegerField(null=True)
    via = models.CharField(max_length=8, choices=[(v.value, v.value) for v in Via])
    start_ns = models.BigIntegerField(null=True)
    end_ns = models.BigIntegerField(null=True)
    status = models.SmallIntegerField()
    native_id = models.CharField(max_length=200, null=True)

    def __str__(self) -> str:
        return f"{self.agent or 'agent'} #{self.number} of trace {self.trace_id}"


class Step(models.Model):
    """One ordered event of a trace: structure, timing and usage, no texts.

    `kind`, `status`, `finish` and `usage_state` are places in the tuples above.
    """

    pk = models.CompositePrimaryKey("trace_id", "seq")
    trace = models.ForeignKey("traces.Trace", on_delete=models.CASCADE, db_index=False)
    seq = models.IntegerField()
    kind = models.SmallIntegerField()
    status = models.SmallIntegerField()
    invocation = models.IntegerField(null=True)
    parent = models.IntegerField(null=True)
    name = models.TextField(null=True)
    start_ns = models.BigIntegerField(null=True)
    end_ns = models.BigIntegerField(null=True)
    error_type = models.TextField(null=True)
    native_id = models.TextField(null=True)

    provider = models.TextField(null=True)
    model = models.TextField(null=True)
    finish = models.SmallIntegerField(null=True)
    response_id = models.TextField(null=True)
    conversation = models.TextField(null=True)
    usage_state = models.SmallIntegerField(null=True)
    input_total = models.BigIntegerField(null=True)
    input_cached = models.BigIntegerField(null=True)
    input_cache_write = models.BigIntegerField(null=True)
    output_total = models.BigIntegerField(null=True)
    output_reasoning = models.BigIntegerField(null=True)
    total = models.BigIntegerField(null=True)
    retry_of = models.IntegerField(null=True)
    flags = models.SmallIntegerField(default=0)

    call_id = models.TextField(null=True)
    requested_by = models.IntegerField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=~Q(
                    usage_state__in=[
                        USAGE_STATES.index(UsageState.MISSING),
                        USAGE_STATES.index(UsageState.ZERO_SUSPECT),
                    ]
                )
                | Q(
                    input_total=None,
                    input_cached=None,
                    input_cache_write=None,
                    output_total=None,
                    output_reasoning=None,
                    total=None,
                ),
                name="missing_usage_is_null",
            ),
            models.CheckConstraint(
                condition=~Q(kind=KINDS.index(StepKind.MODEL_CALL))
                | Q(usage_state__isnull=False),
                name="a_model_call_has_a_usage_state",
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.seq} of trace {self.trace_id}"


class BodyChunk(models.Model):
    """The texts of up to 64 neighbouring steps, as one zstd-compressed JSON array."""

    pk = models.CompositePrimaryKey("trace_id", "first_seq")
    trace = models.ForeignKey("traces.Trace", on_delete=models.CASCADE, db_index=False)
    first_seq = models.IntegerField()
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"bodies from step {self.first_seq} of trace {self.trace_id}"
