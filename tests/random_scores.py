"""Random histories of a project: traces come, change and go, and people ask and decide.

Through the product's own operations, from a seed. Nothing is scored in here.
"""

from __future__ import annotations

from contextlib import suppress
from random import Random

from apps.accounts.models import Project, User
from apps.agents.models import Agent, AgentName
from apps.agents.operations import (
    Asked,
    WrongAgent,
    define_agent,
    define_outcome,
    merge_agents,
    rename_agent,
    split_name,
)
from apps.engine.trace import Outcome, OutcomeKind, Trace
from apps.pipeline.flow import read_again
from apps.pipeline.reading import read_upload
from apps.pipeline.shadows import NothingToChange
from apps.review import operations as review
from apps.review.models import HistoryEntry, Signal
from apps.review.operations import DecisionInput
from apps.review.transitions import Verdict
from apps.traces.batches import Receipt
from apps.traces.models import Task, Upload
from apps.traces.models import Trace as StoredTrace
from apps.traces.operations import claim_upload, discard_traces, fail_upload
from apps.traces.trials import (
    WrongPlace,
    join_tasks,
    part_tasks,
    place_trace,
    rename_task,
)
from tests.adopting import caught_up, pause
from tests.desks import desk_trace
from tests.factories import NOW, decay_trace, upload_traces

CONTRACTS = (
    {"name": "knows the number", "kind": "regex", "pattern": "ending 27"},
    {"name": "answers", "kind": "regex", "pattern": "."},
)
EXPECTED = {"task": "refund*", "expect": "label", "labels": ["good"]}


class History:
    """One project, what may happen to it, and what has."""

    def __init__(self, project: Project, user: User, seed: int) -> None:
        self.project, self.user = project, user
        self.random = Random(seed)
        self.done: list[str] = []
        self.number = 0

    def go_on(self, acts: int) -> None:
        """So many acts, of those that can be done now."""
        every = (
            self.upload, self.upload, self.read_again, self.erase, self.move,
            self.join_and_part, self.rename_task, self.decide, self.decide, self.undo,
            self.ask, self.expect, self.merge_or_split, self.rename_agent, self.pause,
        )  # fmt: skip
        for _ in range(acts):
            act = self.random.choice(every)
            self.done.append(act.__name__)
            with suppress(WrongAgent, WrongPlace, NothingToChange):
                act()

    def trace(self) -> Trace:
        self.number += 1
        choice = self.random.choice
        kind = choice([*OutcomeKind, OutcomeKind.PASS])
        outcome = Outcome(kind=kind, label=choice([None, "good", "bad"]))
        task = choice([None, "refund 1", "refund 2", "exchange"])
        if choice([True, False]):
            falling = choice([(90, 70, 50, 30, 10), (50, 60, 50, 60, 50)])
            name = f"run {self.number}"
            return decay_trace(*falling, name=name, outcome=outcome, task=task)
        return desk_trace(
            ("triage", [("says", {"route": choice(["a", "b"])})]),
            (choice(["memory", "Memory"]), [("says", choice(["ending 27", "none"]))]),
            task=task,
            trial=self.number,
            outcome=outcome,
            asked=f"Case {choice('abc')}",
        )

    def upload(self) -> None:
        traces = [self.trace() for _ in range(self.random.randint(1, 6))]
        upload_traces(self.project, *traces, name=f"{self.number}.jsonl")

    def _one(self, rows, *order):
        found = list(rows.order_by(*order or ("pk",)))
        return self.random.choice(found) if found else None

    def read_again(self) -> None:
        upload = self._one(Upload.objects.filter(project=self.project, state="done"))
        if upload is None or self._is_decided(upload):
            return
        # Everything is written over, as if a newer reader had found something else.
        StoredTrace.objects.filter(upload=upload).update(content_hash="0" * 64)
        read_again(upload=upload, format_override="")
        read_upload(upload_id=upload.pk, clock=lambda: NOW)

    def erase(self) -> None:
        """An upload that is being read is found to be broken, and nothing of it stays."""
        upload = self._one(Upload.objects.filter(project=self.project, state="done"))
        if upload is None or self._is_decided(upload) or self.random.random() < 0.5:
            return
        read_again(upload=upload, format_override="")
        claim = claim_upload(upload_id=upload.pk, lease_seconds=60)
        assert claim is not None
        discard_traces(claim=claim)
        fail_upload(
            claim=claim, receipt=Receipt(), sentence="The file cannot be read any more."
        )

    def _is_decided(self, upload: Upload) -> bool:
        rows = HistoryEntry.objects.filter(signal__trace__upload=upload, act="decided")
        return rows.exists()

    def move(self) -> None:
        trace = self._one(StoredTrace.objects.filter(project=self.project))
        if trace is not None:
            task = self.random.choice(["", "refund 1", "by hand"])
            place_trace(trace=trace, task=task, trial=self.random.choice([None, 3]))

    def join_and_part(self) -> None:
        tasks = list(Task.objects.filter(project=self.project).order_by("pk"))
        if len(tasks) > 1:
            task, into = self.random.sample(tasks, 2)
            moved = join_tasks(task=task, into=into)
            if self.random.random() < 0.5:
                part_tasks(task=task, into=into, moved=moved)

    def rename_task(self) -> None:
        task = self._one(Task.objects.filter(project=self.project))
        if task is not None:
            name = self.random.choice(["refund later", "exchange later"])
            rename_task(task=task, name=name)

    def decide(self) -> None:
        signal = self._one(Signal.objects.filter(project=self.project, state="open"))
        if signal is not None:
            review.decide(
                signal_id=signal.pk,
                user=self.user,
                decision=DecisionInput(verdict=Verdict.CONFIRM),
                base_version=signal.version,
            )

    def undo(self) -> None:
        signal = self._one(Signal.objects.filter(project=self.project, state="decided"))
        if signal is not None:
            review.undo(
                signal_id=signal.pk, user=self.user, base_version=signal.version
            )

    def ask(self) -> None:
        agent = self._one(Agent.objects.filter(project=self.project))
        if agent is not None:
            held = self.random.choice([(), CONTRACTS[:1], CONTRACTS])
            define_agent(agent=agent, asked=Asked(held=held), user_id=None, now=NOW)

    def expect(self) -> None:
        held = self.random.choice([(), (EXPECTED,)])
        define_outcome(
            project_id=self.project.pk, asked=Asked(held=held), user_id=None, now=NOW
        )

    def merge_or_split(self) -> None:
        names = AgentName.objects.filter(project=self.project)
        name, other = self._one(names), self._one(names)
        if name is None or other is None:
            return
        if self.random.random() < 0.5:
            merge_agents(agent=name.agent, into=other.agent, user_id=None, now=NOW)
        else:
            split_name(project_id=self.project.pk, key=name.key, user_id=None, now=NOW)

    def rename_agent(self) -> None:
        agent = self._one(Agent.objects.filter(project=self.project))
        if agent is not None:
            rename_agent(agent=agent, name=f"The {agent.key}", description="")

    def pause(self) -> None:
        pause(self.project, is_paused=self.random.random() < 0.5)
        caught_up(self.project)
