"""Tables of what agents did in traces and what the trials of a task have in common.

Every row can be made again from the traces and the definitions of the project, whose
name `traces.Trace.scored_as` holds. Scores of replays have no project, so that nothing
that is counted over a project counts them.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from apps.accounts.models import Project
from apps.agents.models import Agent
from apps.traces.models import Task, Trace


class Extraction(models.Model):
    """The columns of what was decided: `Extracted` of the engine, and hashes.

    `decision` is compared and `shown` is for people. `exact`, `structure` and `input`
    are hashes, "" where nothing was recorded.
    """

    state = models.CharField(max_length=12)
    decision = models.TextField(blank=True)
    shown = models.TextField(blank=True)
    how = models.TextField(blank=True)
    step = models.IntegerField(null=True)
    exact = models.CharField(max_length=16, blank=True)
    structure = models.CharField(max_length=16, blank=True)
    input = models.CharField(max_length=16, blank=True)
    temperature = models.FloatField(null=True)
    features = models.JSONField(default=dict)

    class Meta:
        abstract = True


class TraceScore(Extraction):
    """What the whole system did in one trace, and how its agents stand beside it.

    `outcome` is the colour of the recorded outcome under the expectations of the
    project, `outcome_reason` says why. `points` are the packed decision points by which
    trials are aligned. `recalls` is what memory kept, `masked` how many agents are red
    here although the outcome is green, `is_gap` that the outcome is red although every
    agent is green.
    """

    trace = models.OneToOneField(Trace, on_delete=models.CASCADE, primary_key=True)
    project = models.ForeignKey(
        Project, null=True, on_delete=models.CASCADE, db_index=False
    )
    outcome = models.CharField(max_length=8)
    outcome_reason = models.TextField(blank=True)
    points = models.BinaryField(default=bytes)
    is_order_uncertain = models.BooleanField(default=False)
    recalls = models.JSONField(default=list)
    agents = models.SmallIntegerField(default=0)
    red = models.SmallIntegerField(default=0)
    green = models.SmallIntegerField(default=0)
    masked = models.SmallIntegerField(default=0)
    is_gap = models.BooleanField(default=False)

    class Meta:
        indexes = [
            models.Index(
                fields=["project", "-trace"],
                condition=Q(masked__gt=0),
                name="trace_score_masked",
            ),
            models.Index(
                fields=["project", "-trace"],
                condition=Q(is_gap=True),
                name="trace_score_gap",
            ),
        ]

    def __str__(self) -> str:
        return f"score of trace {self.trace_id}"


class Conduct(Extraction):
    """What one agent did in one trace, and what its contracts say of it.

    `judged` has a value for each contract with its counts and the first answer that did
    not hold, `held` and the other counts are of all of them, over all its invocations. `colour` is the verdict on this
    trace alone, `is_masked` that it is red although the outcome is green.
    """

    pk = models.CompositePrimaryKey("trace_id", "agent_id")
    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, db_index=False)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, db_index=False)
    invocations = models.IntegerField()
    failures = models.IntegerField()
    calls = models.IntegerField()
    tools = models.JSONField(default=dict)
    models_used = models.JSONField(default=list)
    held = models.IntegerField(default=0)
    broken = models.IntegerField(default=0)
    undecided = models.IntegerField(default=0)
    not_applying = models.IntegerField(default=0)
    judged = models.JSONField(default=list)
    recalled = models.IntegerField(default=0)
    lost = models.IntegerField(default=0)
    contradicted = models.IntegerField(default=0)
    findings = models.IntegerField(default=0)
    colour = models.CharField(max_length=8)
    is_masked = models.BooleanField(default=False)

    class Meta:
        indexes = [
            models.Index(fields=["agent", "-trace"], name="conduct_by_agent"),
            models.Index(
                fields=["agent", "colour", "-trace"], name="conduct_by_colour"
            ),
            models.Index(
                fields=["agent", "-trace"],
                condition=Q(is_masked=True),
                name="conduct_masked",
            ),
        ]

    def __str__(self) -> str:
        return f"agent {self.agent_id} in trace {self.trace_id}"


class TaskScore(models.Model):
    """What the trials of one task have in common, end to end.

    `outcome` is green where every known trial passed, red where none did, mixed or
    unknown. `consistency` is the verdict on the decisions of the whole system.
    `fork_count` counts forks, `first_fork` is the least step at which one is, and
    `decisive` says in a sentence which fork the outcomes hang on, "" where none does, and
    `decisive_chance` how often chance alone makes one decisive.
    `detail` is what the page of the task shows without reading traces.
    """

    task = models.OneToOneField(Task, on_delete=models.CASCADE, primary_key=True)
    project = models.ForeignKey(
        Project, null=True, on_delete=models.CASCADE, db_index=False
    )
    trials = models.IntegerField()
    passed = models.IntegerField()
    failed = models.IntegerField()
    outcome = models.CharField(max_length=8)
    consistency = models.CharField(max_length=17)
    decided = models.IntegerField()
    distinct = models.IntegerField()
    majority = models.IntegerField()
    is_stable_but_wrong = models.BooleanField(default=False)
    fork_count = models.IntegerField(default=0)
    first_fork = models.IntegerField(null=True)
    decisive = models.TextField(blank=True)
    decisive_chance = models.FloatField(null=True)
    red = models.SmallIntegerField(default=0)
    unstable = models.SmallIntegerField(default=0)
    masked = models.SmallIntegerField(default=0)
    is_gap = models.BooleanField(default=False)
    rank = models.IntegerField(default=0)
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["project", "-rank", "task"], name="task_score_worst"),
            models.Index(
                fields=["project", "outcome", "-rank", "task"],
                name="task_score_outcome",
            ),
            models.Index(
                fields=["project", "consistency", "-rank", "task"],
                name="task_score_stability",
            ),
            models.Index(
                fields=["project", "-rank", "task"],
                condition=Q(masked__gt=0),
                name="task_score_masked",
            ),
        ]

    def __str__(self) -> str:
        return f"score of task {self.task_id}"


class AgentTaskScore(models.Model):
    """What one agent did over the trials of one task.

    `majority` of `trials` decided the same; `distinct_inputs` says how many inputs it
    was given. `colour` is the verdict on this task, `detail` its reasons and the
    distinct decisions with their trials.
    """

    pk = models.CompositePrimaryKey("task_id", "agent_id")
    task = models.ForeignKey(Task, on_delete=models.CASCADE, db_index=False)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, db_index=False)
    trials = models.IntegerField()
    decided = models.IntegerField()
    missing = models.IntegerField()
    failed = models.IntegerField()
    distinct = models.IntegerField()
    majority = models.IntegerField()
    distinct_inputs = models.IntegerField(default=0)
    consistency = models.CharField(max_length=17)
    is_stable_but_wrong = models.BooleanField(default=False)
    held = models.IntegerField(default=0)
    broken = models.IntegerField(default=0)
    undecided = models.IntegerField(default=0)
    colour = models.CharField(max_length=8)
    is_masked = models.BooleanField(default=False)
    detail = models.JSONField(default=dict)

    class Meta:
        indexes = [
            models.Index(
                fields=["agent", "consistency", "task"], name="agent_task_stability"
            ),
            models.Index(
                fields=["agent", "task"],
                condition=Q(is_masked=True),
                name="agent_task_masked",
            ),
        ]

    def __str__(self) -> str:
        return f"agent {self.agent_id} in task {self.task_id}"


class StaleTask(models.Model):
    """That something about the trials of a task has changed since it was scored.

    Rows are only added, by a trigger, and taken away by whoever scores; so nobody who
    writes traces waits for another. A task may be here many times, or be gone.
    """

    project_id = models.BigIntegerField()
    task_id = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["project_id", "id"], name="stale_task_next")]

    def __str__(self) -> str:
        return f"task {self.task_id} is to be scored"


class StaleTrace(models.Model):
    """That what people say of a trace has changed since it was scored. As `StaleTask`."""

    project_id = models.BigIntegerField()
    trace_id = models.BigIntegerField()

    class Meta:
        indexes = [models.Index(fields=["project_id", "id"], name="stale_trace_next")]

    def __str__(self) -> str:
        return f"trace {self.trace_id} is to be scored"
