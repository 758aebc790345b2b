"""Tables of uploads, traces, agent invocations, steps, bodies, tasks.

The recordings of replays are traces too, and lie in the same tables. `objects` never
gives them out: what an agent did alone must not be counted among what was recorded.
Whoever wants both asks `everything`.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q

from apps.accounts.models import Project
from apps.engine.trace import OrderSource, OutcomeKind
from apps.traces.content_models import FINISHES as FINISHES
from apps.traces.content_models import FLAG_PLACEHOLDER as FLAG_PLACEHOLDER
from apps.traces.content_models import FLAG_RESETS_CONTEXT as FLAG_RESETS_CONTEXT
from apps.traces.content_models import KINDS as KINDS
from apps.traces.content_models import STATUSES as STATUSES
from apps.traces.content_models import USAGE_STATES as USAGE_STATES
from apps.traces.content_models import AgentInvocation as AgentInvocation
from apps.traces.content_models import BodyChunk as BodyChunk
from apps.traces.content_models import Step as Step
from apps.traces.recorded import RecordedTraces, RecordedUploads
from apps.traces.set_models import TraceSet as TraceSet
from apps.traces.set_models import TraceSetMember as TraceSetMember
from apps.traces.transitions import RawKept, TaskSource, UploadSource, UploadState


class Upload(models.Model):
    """One received file. Its bytes lie in the store under their SHA-256, unchanged.

    With the source `live` it is what came live in one day: no bytes are kept, `sha256`
    is a name for the day, and it is done from the start. With the source `replay` it
    holds the recordings of one batch in the same way.

    The counters are written with each batch, so they are the progress while reading
    and the receipt afterwards; `readers` lists who read what: member, format, version
    and traces. `attempt` is the fencing number of whoever reads and
    only ever grows; `tries` counts attempts in a row that stored nothing.

    `redactions` counts the secrets that were replaced, by rule slug. Of a
    structure-only upload `stored_sha256` is the hash of what lies in the store, and
    `reduced` says what was read of the bytes that came, and rejected.

    `reread_as` is set while an upload that has traces is being read again: the slug of
    the format, or empty for what the content says; NULL otherwise. `reread_note` says
    why the last such reading changed nothing. `doubled_count` is how many of
    `duplicate_count` stood in this very upload already.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    sha256 = models.CharField(max_length=64)
    size = models.BigIntegerField()
    name = models.CharField(max_length=255)
    source = models.CharField(
        max_length=6,
        choices=[(s.value, s.value) for s in UploadSource],
        default=UploadSource.FILE.value,
        db_default=UploadSource.FILE.value,
    )
    state = models.CharField(
        max_length=8, choices=[(s.value, s.value) for s in UploadState]
    )
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    format_override = models.CharField(max_length=40, blank=True)
    format = models.CharField(max_length=40, blank=True)
    reader_version = models.IntegerField(null=True)

    attempt = models.IntegerField(default=0)
    tries = models.IntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    failure = models.TextField(blank=True)
    reread_as = models.CharField(max_length=40, null=True)
    reread_note = models.TextField(blank=True, default="", db_default="")

    bytes_read = models.BigIntegerField(default=0)
    bytes_total = models.BigIntegerField(null=True)
    trace_count = models.IntegerField(default=0)
    step_count = models.IntegerField(default=0)
    model_call_count = models.IntegerField(default=0)
    tool_call_count = models.IntegerField(default=0)
    usage_known = models.IntegerField(default=0)
    usage_states = models.JSONField(default=dict, db_default={})
    error_count = models.IntegerField(default=0, db_default=0)
    readers = models.JSONField(default=list, db_default=[])
    duplicate_count = models.IntegerField(default=0)
    doubled_count = models.IntegerField(default=0, db_default=0)
    rejected_count = models.IntegerField(default=0)
    signal_count = models.IntegerField(default=0)
    models_seen = ArrayField(models.TextField(), default=list)
    agents_seen = ArrayField(models.TextField(), default=list)
    notes = models.JSONField(default=list)

    raw_kept = models.CharField(
        max_length=10,
        choices=[(one.value, one.value) for one in RawKept],
        default=RawKept.KEPT.value,
        db_default=RawKept.KEPT.value,
    )
    stored_sha256 = models.CharField(
        max_length=64, blank=True, default="", db_default=""
    )
    redactions = models.JSONField(default=dict, db_default={})
    reduced = models.JSONField(null=True)

    objects = RecordedUploads()
    everything = models.Manager["Upload"]()

    class Meta:
        base_manager_name = "everything"
        constraints = [
            models.UniqueConstraint(
                fields=["project", "sha256"], name="same_bytes_same_upload"
            ),
            models.CheckConstraint(
                condition=~Q(state="failed") | ~Q(failure=""),
                name="a_failed_upload_says_why",
            ),
        ]
        indexes = [
            models.Index(fields=["project", "-id"], name="upload_newest"),
            models.Index(
                fields=["state", "lease_until"],
                condition=Q(state__in=["received", "reading"]),
                name="upload_unfinished",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.sha256[:12]})"

    @property
    def raw_sha256(self) -> str:
        """The hash under which what is kept lies in the store."""
        return self.stored_sha256 or self.sha256


class RejectedRecord(models.Model):
    """A record of an upload that was not read: where, why, and how it begins."""

    upload = models.ForeignKey(Upload, on_delete=models.CASCADE)
    place = models.CharField(max_length=120)
    reason = models.TextField()
    excerpt = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


class Task(models.Model):
    """The input that several traces share; each of them is a trial of it.

    `source` says who said so: the file, the same root input, or a person. `title` is
    how the input begins, for tasks that were found by it. The trials of a replay task
    are the runs of one case in one regime of one batch.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    key = models.CharField(max_length=200)
    source = models.CharField(
        max_length=5,
        choices=[(s.value, s.value) for s in TaskSource],
        default=TaskSource.FILE.value,
        db_default=TaskSource.FILE.value,
    )
    title = models.CharField(max_length=300, blank=True, db_default="")
    is_replay = models.BooleanField(default=False, db_default=False)

    objects = RecordedTraces()
    everything = models.Manager["Task"]()

    class Meta:
        base_manager_name = "everything"
        constraints = [
            models.UniqueConstraint(
                fields=["project", "key", "is_replay"], name="task_key_unique"
            )
        ]

    def __str__(self) -> str:
        return self.title or self.key


class Trace(models.Model):
    """One run of one system on one task, with the counts that lists show.

    `input_hash` is that of the root input, by which trials are found where the file
    names no task. What a person set (`is_task_set`) is never changed by finding.
    `is_replay`: it is the recording of a run of one agent alone.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    upload = models.ForeignKey(Upload, on_delete=models.CASCADE)
    ordinal = models.IntegerField()
    native_id = models.CharField(max_length=200, null=True)
    content_hash = models.CharField(max_length=64)
    name = models.CharField(max_length=300)
    format = models.CharField(max_length=40)
    session = models.CharField(max_length=200, blank=True)
    task = models.ForeignKey(Task, null=True, on_delete=models.SET_NULL)
    trial = models.IntegerField(null=True)
    is_task_set = models.BooleanField(default=False, db_default=False)
    input_hash = models.CharField(max_length=16, null=True)
    start_ns = models.BigIntegerField(null=True)
    end_ns = models.BigIntegerField(null=True)
    order = models.CharField(
        max_length=4, choices=[(o.value, o.value) for o in OrderSource]
    )

    outcome = models.CharField(
        max_length=8, choices=[(o.value, o.value) for o in OutcomeKind]
    )
    outcome_score = models.FloatField(null=True)
    outcome_out_of = models.FloatField(null=True)
    outcome_label = models.CharField(max_length=200, blank=True)
    outcome_source = models.CharField(max_length=200, blank=True)

    step_count = models.IntegerField()
    model_call_count = models.IntegerField()
    tool_call_count = models.IntegerField()
    usage_known = models.IntegerField()
    error_count = models.IntegerField()
    signal_count = models.IntegerField(default=0)
    models_seen = ArrayField(models.TextField(), default=list)
    agents_seen = ArrayField(models.TextField(), default=list)
    metadata = models.JSONField(default=dict)
    labels = models.JSONField(default=dict)
    notes = models.JSONField(default=list)
    traits = ArrayField(models.TextField(), default=list, db_default=[])
    screened_as = models.CharField(max_length=16, blank=True, default="", db_default="")
    scored_as = models.CharField(max_length=16, blank=True, default="", db_default="")
    is_replay = models.BooleanField(default=False, db_default=False)

    objects = RecordedTraces()
    everything = models.Manager["Trace"]()

    class Meta:
        base_manager_name = "everything"
        constraints = [
            models.UniqueConstraint(
                fields=["upload", "ordinal"], name="one_trace_per_place_in_upload"
            ),
            models.UniqueConstraint(
                fields=["project", "native_id"],
                condition=Q(native_id__isnull=False),
                name="one_trace_per_native_id",
            ),
            models.CheckConstraint(
                condition=Q(usage_known__lte=models.F("model_call_count")),
                name="usage_known_of_model_calls",
            ),
        ]
        indexes = [
            models.Index(fields=["project", "-id"], name="trace_newest"),
            models.Index(
                fields=["project", "-step_count", "-id"], name="trace_longest"
            ),
            models.Index(
                fields=["project", "-error_count", "-id"], name="trace_most_errors"
            ),
            models.Index(
                fields=["project", "-signal_count", "-id"], name="trace_most_signals"
            ),
            models.Index(fields=["project", "outcome", "-id"], name="trace_by_outcome"),
            models.Index(fields=["project", "format", "-id"], name="trace_by_format"),
            models.Index(fields=["task", "trial", "id"], name="trace_trials"),
            models.Index(
                fields=["project", "input_hash"],
                condition=Q(input_hash__isnull=False),
                name="trace_by_input",
            ),
            models.Index(
                fields=["project", "name"],
                name="trace_by_name",
                opclasses=["int8_ops", "varchar_pattern_ops"],
            ),
            models.Index(
                fields=["project", "session"],
                condition=~Q(session=""),
                name="trace_by_session",
            ),
            models.Index(
                fields=["project", "screened_as", "id"],
                condition=Q(is_replay=False),
                name="trace_screened_as",
            ),
            models.Index(fields=["project", "scored_as", "id"], name="trace_scored_as"),
            GinIndex(fields=["models_seen"], name="trace_models"),
            GinIndex(fields=["agents_seen"], name="trace_agents"),
        ]

    def __str__(self) -> str:
        return self.name
