"""A support desk whose memory agent is red behind outcomes that are green, scored."""

from __future__ import annotations

from typing import Any

from apps.accounts.models import Project
from apps.engine.trace import AgentInvocation, Outcome, OutcomeKind, Trace
from tests.desks import FAIL, PASS, desk_trace
from tests.factories import decay_trace, make_project, make_user, upload_traces
from tests.scored import asked_of, scored

KNOWS = {"name": "Knows the number", "kind": "regex", "pattern": "ending 27"}
ROUTES = {"name": "To one of the desks", "kind": "regex", "pattern": "billing|refunds"}


def desk(
    trial: int, *, route: str = "billing", memory: str = "No notes.", **more: Any
) -> Trace:
    """One run: triage, then memory, then the writer."""
    return desk_trace(
        ("triage", [("says", {"route": route})]),
        (
            "memory",
            [("calls", ("search_notes", {"topic": "number"}, [])), ("says", memory)],
        ),
        (
            "writer",
            [("calls", ("send_mail", {"to": "A-4471"}, "ok")), ("says", "Done.")],
        ),
        trial=trial,
        **more,
    )


def falling(
    number: int, agent: str, outcome: Outcome = PASS, *, places: int = 5, **more: Any
) -> Trace:
    """A run of one agent whose answers become shorter, so that it has a signal."""
    lengths = [300 - 40 * place - number for place in range(places)]
    made = decay_trace(
        *lengths, name=f"{agent} falls {number}", outcome=outcome, **more
    )
    invocations = (AgentInvocation(number=0, agent=agent),)
    return Trace(
        **{
            **{name: getattr(made, name) for name in made.__struct_fields__},
            "invocations": invocations,
        }
    )


def make_masked_desk(*, times: int = 1) -> Project:
    """A project with masking, a mixed task that forks, gaps, and signals; scored.

    `times` multiplies its traces and tasks. Signals: of the planner, which is red
    behind passes, and of the clerk, which is rarer and green.
    """
    project = make_project(owner=make_user(f"desk{times}"), name="Masked desk")
    for turn in range(1, times + 1):
        upload_traces(
            project,
            *(desk(trial, task=f"ticket {turn}") for trial in range(1, 6)),
            *_mixed(f"mixed {turn}"),
            *(
                falling(trial, "planner", task=f"plan {turn}", trial=trial)
                for trial in range(1, 4)
            ),
            falling(50 + turn, "clerk", FAIL, places=7, task=f"single {turn}", trial=1),
            falling(70 + turn, "clerk", Outcome(kind=OutcomeKind.UNKNOWN), places=6),
            name=f"night {turn}.jsonl",
        )
    scored(project)
    asked_of(project, "memory", KNOWS)
    asked_of(project, "triage", ROUTES)
    asked_of(project, "planner", {**KNOWS, "name": "Plans the refund"})
    asked_of(project, "clerk", {"kind": "regex", "pattern": "answer", "name": "Says"})
    return scored(project)


def _mixed(task: str) -> list[Trace]:
    """Four trials that fork at the route; one side passes."""
    return [
        desk(
            trial,
            route="refunds" if trial > 2 else "billing",
            memory="The card ending 27.",
            outcome=PASS if trial > 2 else FAIL,
            task=task,
        )
        for trial in range(1, 5)
    ]
