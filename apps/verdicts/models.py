"""Tables of the verdicts of agents over a project, of patterns, and of trial notes."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from apps.accounts.models import Project
from apps.agents.models import Agent
from apps.traces.models import Trace


class AgentVerdict(models.Model):
    """What is said of one agent over all traces of a project, and what it rests on.

    `evidence` are the counts of `AgentEvidence`. `green_traces` are those whose outcome
    is green, `masked_traces` of them those in which the agent is red; the same for
    tasks, where it may be unstable too. `detail` holds reasons, gaps, what each
    contract says, tools, models, and the colour that replays show behind green traces.
    Agents are listed by `rank`, the largest first.
    """

    agent = models.OneToOneField(Agent, on_delete=models.CASCADE, primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    colour = models.CharField(max_length=8)
    rank = models.IntegerField(default=0)
    traces = models.IntegerField(default=0)
    tasks = models.IntegerField(default=0)
    green_traces = models.IntegerField(default=0)
    masked_traces = models.IntegerField(default=0)
    green_tasks = models.IntegerField(default=0)
    masked_tasks = models.IntegerField(default=0)
    evidence = models.JSONField(default=dict)
    detail = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"agent {self.agent_id} is {self.colour}"

    @property
    def hidden_alone(self) -> str:
        """The colour that replays show behind traces that passed; "" for none."""
        return str(self.detail.get("hidden_alone", ""))

    @property
    def is_masked(self) -> bool:
        """Whether it is red or unstable behind an outcome that passed, there or alone."""
        return bool(self.masked_traces or self.masked_tasks or self.hidden_alone)


class ProjectVerdict(models.Model):
    """The end-to-end outcomes of a project beside its agents, in counts.

    `settled_as` names what it was made from; `changes` is what is different from the
    last time, newest first.
    """

    project = models.OneToOneField(Project, on_delete=models.CASCADE, primary_key=True)
    settled_as = models.CharField(max_length=40, blank=True)
    settled_at = models.DateTimeField(null=True)
    detail = models.JSONField(default=dict)
    changes = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"verdicts of project {self.project_id}"


class PatternSearch(models.Model):
    """The rules that one search found over the runs of a project, or that it found none."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    target = models.CharField(max_length=10)
    read_as = models.CharField(max_length=40)
    found = models.JSONField(default=dict)
    made_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "target"], name="one_pattern_search_per_target"
            )
        ]

    def __str__(self) -> str:
        return f"patterns of {self.target} runs of project {self.project_id}"


class TrialNoteKind(models.TextChoices):
    """What a reviewer says of how a trial came to its outcome."""

    SOUND_BUT_WRONG = "sound_but_wrong", "Sound but wrong"
    RIGHT_BY_LUCK = "right_by_luck", "Right by luck"
    WITHDRAWN = "withdrawn", "Withdrawn"


class TrialNote(models.Model):
    """A reviewer's note on one trial. Append-only: the newest of a trial counts."""

    trace = models.ForeignKey(Trace, on_delete=models.CASCADE)
    kind = models.CharField(max_length=16, choices=TrialNoteKind.choices)
    step = models.IntegerField(null=True)
    note = models.TextField(blank=True)
    noted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    noted_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.kind} on trace {self.trace_id}"
