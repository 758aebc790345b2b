"""Tables of replays: targets, cases, batches, groups, runs and their attempts.

A plan is frozen when a batch is made; what became of it is read from the rows of its
runs. Versions of targets and attempts are only added. Secrets are sealed.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower

from apps.accounts.models import Project
from apps.agents.models import Agent
from apps.engine.replay.run import TargetKind
from apps.replays.transitions import BatchState, RunState
from apps.traces.models import Task, Trace, Upload

_BY = settings.AUTH_USER_MODEL


class Target(models.Model):
    """How one agent is run alone. What it was set to is in its versions.

    Until `paused_until` no run of it begins: it has asked all to wait. `needs_key` says
    that its key was refused, and is cleared when a new one is set.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE)
    name = models.CharField(max_length=120)
    kind = models.CharField(
        max_length=8, choices=[(one.value, one.value) for one in TargetKind]
    )
    is_retired = models.BooleanField(default=False)
    paused_until = models.DateTimeField(null=True)
    needs_key = models.BooleanField(default=False)
    created_by = models.ForeignKey(_BY, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "agent",
                Lower("name"),
                condition=Q(is_retired=False),
                name="one_target_per_name",
            )
        ]

    def __str__(self) -> str:
        return self.name


class TargetVersion(models.Model):
    """What a target was set to from one moment on, without secrets. Append-only."""

    target = models.ForeignKey(
        Target, on_delete=models.CASCADE, related_name="versions", db_index=False
    )
    number = models.IntegerField()
    settings = models.JSONField()
    created_by = models.ForeignKey(_BY, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["target", "number"], name="one_target_version_per_number"
            )
        ]

    def __str__(self) -> str:
        return f"version {self.number} of target {self.target_id}"


class TargetSecret(models.Model):
    """The key that a target is called with, sealed. The newest row counts.

    A forgotten one has no bytes any more; nobody ever reads one out of a page.
    """

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="secrets")
    sealed = models.BinaryField(default=bytes)
    created_by = models.ForeignKey(_BY, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"key of target {self.target_id}"


class CaseSource(models.TextChoices):
    """Where a case came from."""

    TRACE = "trace", "Frozen from a trace"
    FILE = "file", "Read from a file"
    HAND = "hand", "Written by hand"


class ReplayCase(models.Model):
    """One frozen input of one agent. Its content never changes.

    `content` is the engine's `Case` as JSON, compressed; `hash` is `case_hash` of it.
    `shown` is how its input begins. `trace` and `invocation` say what it was frozen
    from, `task_key` of which task that was a trial.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, db_index=False)
    name = models.CharField(max_length=200)
    content = models.BinaryField()
    hash = models.CharField(max_length=64)
    shown = models.CharField(max_length=300, blank=True)
    recorded_calls = models.IntegerField(default=0)
    source = models.CharField(max_length=5, choices=CaseSource.choices)
    trace = models.ForeignKey(
        Trace, null=True, on_delete=models.SET_NULL, related_name="frozen_cases"
    )
    invocation = models.IntegerField(null=True)
    is_retired = models.BooleanField(default=False)
    created_by = models.ForeignKey(_BY, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "hash"], name="one_replay_case_per_content"
            )
        ]

    def __str__(self) -> str:
        return self.name


class BatchKind(models.TextChoices):
    """What a batch is for."""

    REPLAY = "replay", "Replays"
    MEMORY = "memory", "Memory test"


class Batch(models.Model):
    """A planned set of replays of one agent, and what it may cost.

    `plan` is frozen: stubs, regimes, limits, paraphrases, the memory test. `estimate`
    is what was shown before it started. The caps hold for all runs together; NULL is no
    cap. `reserved_*` is what calls under way may still cost, `spent_*` what ended calls
    cost, money in the currency of the price table. `is_money_known` is false where a
    price or a usage was not known. `signal` is the signal that it is an experiment for.
    `max_seconds` count from `started_at`, which resuming sets anew.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE)
    target_version = models.ForeignKey(TargetVersion, on_delete=models.RESTRICT)
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=6, choices=BatchKind.choices)
    state = models.CharField(
        max_length=9, choices=[(one.value, one.value) for one in BatchState]
    )
    plan = models.JSONField(default=dict)
    estimate = models.JSONField(default=dict)
    upload = models.ForeignKey(Upload, null=True, on_delete=models.SET_NULL)
    signal = models.BigIntegerField(null=True)
    concurrency = models.IntegerField(default=2)
    max_calls = models.IntegerField(null=True)
    max_tokens = models.BigIntegerField(null=True)
    max_money = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    max_seconds = models.IntegerField(null=True)
    reserved_calls = models.IntegerField(default=0)
    reserved_tokens = models.BigIntegerField(default=0)
    reserved_money = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    spent_calls = models.IntegerField(default=0)
    spent_tokens = models.BigIntegerField(default=0)
    spent_money = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    is_money_known = models.BooleanField(default=True)
    run_count = models.IntegerField(default=0)
    stopped_why = models.TextField(blank=True)
    created_by = models.ForeignKey(_BY, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    cancelled_by = models.ForeignKey(
        _BY, null=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        indexes = [
            models.Index(fields=["project", "-id"], name="batch_newest"),
            models.Index(
                fields=["id"], condition=Q(state="running"), name="batch_running"
            ),
            models.Index(
                fields=["signal"],
                condition=Q(signal__isnull=False),
                name="batch_of_signal",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Group(models.Model):
    """The runs of one case in one regime of one batch: the trials of one replay task.

    `is_newest`: no later batch has finished runs of the same case in the same regime,
    so that this is what the verdict of the agent counts.
    """

    batch = models.ForeignKey(
        Batch, on_delete=models.CASCADE, related_name="groups", db_index=False
    )
    case = models.ForeignKey(ReplayCase, null=True, on_delete=models.RESTRICT)
    number = models.IntegerField()
    regime = models.JSONField()
    regime_key = models.CharField(max_length=64)
    task = models.OneToOneField(Task, null=True, on_delete=models.SET_NULL)
    is_newest = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["batch", "number"], name="one_group_per_number"
            )
        ]
        indexes = [
            models.Index(
                fields=["batch"], condition=Q(is_newest=True), name="group_that_counts"
            )
        ]

    def __str__(self) -> str:
        return f"group {self.number} of batch {self.batch_id}"


class Run(models.Model):
    """One isolated execution and how it ended.

    `attempt` is the fencing number of whoever runs it and only ever grows; `tries`
    counts how often it was begun. Until `not_before` nobody begins it. `error_kind` and
    `sentence` say why it did not finish. `proof` and `effects` are the engine's, as
    JSON; `judged` is what a memory test says of it. `stub_digest` is the hash of the
    token with which an agent elsewhere reaches its stubs.
    """

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, db_index=False)
    group = models.ForeignKey(
        Group, on_delete=models.CASCADE, related_name="runs", db_index=False
    )
    number = models.IntegerField()
    seed = models.BigIntegerField(default=0)
    state = models.CharField(
        max_length=11,
        choices=[(one.value, one.value) for one in RunState],
        default=RunState.WAITING.value,
    )
    attempt = models.IntegerField(default=0)
    tries = models.IntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)
    trace = models.OneToOneField(
        Trace, null=True, on_delete=models.SET_NULL, related_name="replay_run"
    )
    error_kind = models.CharField(max_length=20, blank=True)
    sentence = models.TextField(blank=True)
    level = models.CharField(max_length=20, blank=True)
    has_breach = models.BooleanField(default=False)
    effects = models.JSONField(default=list)
    proof = models.JSONField(default=dict)
    judged = models.JSONField(null=True)
    printed = models.TextField(blank=True)
    stub_digest = models.CharField(max_length=64, blank=True, db_default="", default="")
    is_billed_twice = models.BooleanField(default=False)
    calls = models.IntegerField(default=0)
    input_tokens = models.BigIntegerField(null=True)
    output_tokens = models.BigIntegerField(null=True)
    money = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["group", "number"], name="one_run_per_number"
            ),
            models.CheckConstraint(
                condition=~Q(state="running") | Q(lease_until__isnull=False),
                name="a_running_run_has_a_lease",
            ),
        ]
        indexes = [
            models.Index(fields=["batch", "state", "id"], name="run_of_batch"),
            models.Index(
                fields=["stub_digest"],
                condition=~Q(stub_digest=""),
                name="run_by_stub_token",
            ),
            models.Index(
                fields=["state", "lease_until"],
                condition=Q(state__in=["waiting", "running"]),
                name="run_unfinished",
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.number} of group {self.group_id}"


class RunAttempt(models.Model):
    """One attempt at a run, from its claim to its end; kept for ever.

    `ending` is empty while it runs, and `lost` where its worker died. `retry_after` are
    the seconds that the target asked to wait.
    """

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="attempts", db_index=False
    )
    number = models.IntegerField()
    ending = models.CharField(max_length=12, blank=True)
    error_kind = models.CharField(max_length=20, blank=True)
    sentence = models.TextField(blank=True)
    retry_after = models.FloatField(null=True)
    calls = models.IntegerField(default=0)
    reserved_calls = models.IntegerField(default=0)
    reserved_tokens = models.BigIntegerField(default=0)
    reserved_money = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    spent_tokens = models.BigIntegerField(default=0)
    spent_money = models.DecimalField(max_digits=14, decimal_places=6, default=0)
    events = models.BinaryField(null=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "number"], name="one_attempt_per_number"
            )
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} at run {self.run_id}"


class StubCall(models.Model):
    """A tool call that came over the network to the stubs of a run. Append-only."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, db_index=False)
    attempt = models.IntegerField()
    number = models.IntegerField()
    tool = models.TextField()
    arguments = models.JSONField(null=True)
    answer = models.JSONField()
    called_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "attempt", "number"], name="one_stub_call_per_number"
            )
        ]

    def __str__(self) -> str:
        return f"call {self.number} of {self.tool} in run {self.run_id}"


class DaySpending(models.Model):
    """What the replays of a project have spent or reserved in one day (UTC)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    day = models.DateField()
    calls = models.IntegerField(default=0)
    money = models.DecimalField(max_digits=14, decimal_places=6, default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "day"], name="one_spending_per_day"
            )
        ]

    def __str__(self) -> str:
        return f"replays of project {self.project_id} on {self.day}"
