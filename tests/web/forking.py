"""A project with tasks of every kind, scored: stable, masked, mixed, unscored."""

from __future__ import annotations

from typing import Any

from apps.accounts.models import Project
from apps.engine.trace import Trace
from apps.traces.models import Task
from tests.desks import FAIL, PASS, UNKNOWN, desk_trace
from tests.factories import make_project, make_user, upload_traces
from tests.masked_desks import KNOWS, desk
from tests.scored import asked_of, scored

LONG_TEXT = "word " * 3_000


def refund(
    trial: int, said: str, *writes: tuple[str, Any], task: str = "fork", **more: Any
) -> Trace:
    """A run that looks an order up, says something, and then writes or not."""
    thought = {"content": said, "reasoning_content": f"I think: {said}"}
    # A run that decides nothing must not seem to: its answer is prose and no object.
    acts: list[tuple[str, Any]] = [("says", thought if writes else said)]
    acts += [("calls", (name, given, "ok")) for name, given in writes]
    look = ("calls", ("get_order", {"order": 17}, {"total": 40}))
    return desk_trace(("clerk", [look, *acts]), trial=trial, task=task, **more)


def forking_trials() -> list[Trace]:
    """Trials that refund pass, those that cancel fail; one more ended before."""
    again = ("send_mail", {"to": "A-4471"})
    return [
        refund(1, "Refund it.", ("refund", {"order": 17}), again, outcome=PASS),
        refund(2, "Refund it now.", ("refund", {"order": 17}), again, outcome=PASS),
        refund(3, "Cancel it.", ("cancel", {"order": 17}), outcome=FAIL),
        refund(4, "Better cancel.", ("cancel", {"order": 17}), outcome=FAIL),
        refund(5, "Not allowed.", outcome=FAIL),
    ]


def make_forking_project() -> Project:
    """Scored, save the last upload: the task `waiting` is not scored yet."""
    project = make_project(owner=make_user("olga"), name="Support desk")
    upload_traces(
        project,
        *(desk(trial, task="masked") for trial in range(1, 6)),
        *(
            desk(trial, task="unstable", route=route, outcome=UNKNOWN)
            for trial, route in enumerate(("billing", "refunds", "sales"), 1)
        ),
        *(desk(trial, task="wrong", outcome=FAIL) for trial in range(1, 6)),
        *forking_trials(),
    )
    scored(project)
    asked_of(project, "memory", KNOWS)
    scored(project)
    upload_traces(project, *(desk(n, task="waiting") for n in (1, 2)), name="late")
    return project


def task_of(key: str) -> Task:
    """The task of that name that was found last."""
    return Task.objects.filter(key=key).latest("pk")
