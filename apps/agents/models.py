"""Tables of agents, the names they are recorded under, and what is asked of them.

What is asked is append-only: the row with the largest number counts, so that every
verdict can be traced to the contracts it rests on.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from apps.accounts.models import Project
from apps.engine.agent_contracts.stored import listed


class Agent(models.Model):
    """A part of the system under test, found in its traces or named by hand.

    `key` is the normalised name by which recorded names find their agent; "" is what
    no named agent owns. `name` is what people see. `writing_tools` are names of tools
    that a person said change something. An agent that was merged into another one keeps
    its row and has no names.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    key = models.CharField(max_length=300, blank=True)
    name = models.CharField(max_length=300, blank=True)
    description = models.TextField(blank=True)
    writing_tools = ArrayField(models.TextField(), default=list)
    is_by_hand = models.BooleanField(default=False)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "key"], name="one_agent_per_key")
        ]

    def __str__(self) -> str:
        return self.name or "unnamed agent"

    @property
    def words_stamp(self) -> str:
        """Changes with the name and the description that people see."""
        return _stamp([self.name, self.description])

    @property
    def tools_stamp(self) -> str:
        """Changes with the tools that a person said write."""
        return _stamp(list(self.writing_tools))


def _stamp(value: list[str]) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:16]


class AgentName(models.Model):
    """A normalised recorded name and the agent it stands for."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    key = models.CharField(max_length=300, blank=True)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="names")
    is_by_hand = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "key"], name="one_agent_of_each_name"
            )
        ]

    def __str__(self) -> str:
        return f"{self.key or 'no name'} is {self.agent_id}"


class NameChange(models.Model):
    """That a recorded name was given to another agent. Append-only."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    key = models.CharField(max_length=300, blank=True)
    before = models.CharField(max_length=300, blank=True)
    after = models.CharField(max_length=300, blank=True)
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.key}: {self.before} to {self.after}"


class AgentDefinition(models.Model):
    """From one moment on, what an agent decides and must hold. Append-only.

    `decision` is a `DecisionSpec` as JSON, NULL for the automatic one. `contracts` is a
    list of contracts as JSON, all of which count.
    """

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, db_index=False)
    number = models.IntegerField()
    decision = models.JSONField(null=True)
    contracts = models.JSONField(default=list)
    note = models.TextField(blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["agent", "number"], name="one_agent_definition_per_number"
            )
        ]

    def __str__(self) -> str:
        return f"definition {self.number} of agent {self.agent_id}"

    @property
    def held(self) -> list[Any]:
        """The contracts as they are stored, whatever that is."""
        return listed(self.contracts)


class OutcomeDefinition(models.Model):
    """From one moment on, what the whole system decides and must reach. Append-only.

    `expectations` is a list of outcome expectations as JSON, each with the name or
    pattern of the tasks that it is about (`task`); the closest one counts.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    number = models.IntegerField()
    decision = models.JSONField(null=True)
    expectations = models.JSONField(default=list)
    note = models.TextField(blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL
    )
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "number"], name="one_outcome_definition_per_number"
            )
        ]

    def __str__(self) -> str:
        return f"outcome definition {self.number} of project {self.project_id}"

    @property
    def held(self) -> list[Any]:
        """The expectations as they are stored, whatever that is."""
        return listed(self.expectations)
