"""Two batches of the demo: an agent that wavers alone, and a memory that forgets."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from apps.agents.models import Agent
from apps.engine.memory_tests import decoded_memory_test, encoded_memory_test
from apps.engine.replay.run import Regime, RegimeKind, TargetKind
from apps.pipeline.demo import doubtful
from apps.replays.allowed import allowed_here
from apps.replays.cases import rename_case
from apps.replays.freezing import freeze_invocation
from apps.replays.models import Batch, ReplayCase, TargetVersion
from apps.replays.planning import NewBatch, Plan, start_batch
from apps.replays.targets import NewTarget, add_target, current_version
from apps.traces.models import Trace

REPEATS: Final = 5
CASES: Final = {
    "short ticket 11": "Triage is 43 % sure",
    "short ticket 24": "Triage is 93 % sure",
}
FACTS: Final[dict[str, Any]] = {
    "facts": [
        {
            "slug": "call-back",
            "value": "0170-55-27",
            "telling": "Please call me back only on the number {value}.",
            "probe": "Which number will you call me back on?",
            "decoys": [],
        }
    ],
    "depths": [0, 8, 16, 32],
    "repeats": REPEATS,
    "filler": {"languages": ["en", "de"]},
    "mode": "store",
}


def start_replays(*, project_id: int, user_id: int, now: datetime) -> list[Batch]:
    """Start both batches; the caller wakes workers once this is committed.

    The trials of the escalation agent must have been read: the cases are frozen from
    them, so that what it decides alone stands beside what it decided there.
    """
    agents = {agent.key: agent for agent in Agent.objects.filter(project_id=project_id)}
    return [
        _wavering(agents["escalation"], user_id, now),
        _forgetting(agents["memory"], user_id, now),
    ]


def _target(agent: Agent, callable_: str, user_id: int, now: datetime) -> TargetVersion:
    new = NewTarget(
        name=f"{agent.name} as a Python callable",
        kind=TargetKind.CALLABLE,
        settings={"callable": callable_, "seconds": 20},
    )
    target = add_target(
        agent=agent, new=new, allowed=allowed_here(), user_id=user_id, now=now
    )
    return current_version(target.pk)


def _wavering(agent: Agent, user_id: int, now: datetime) -> Batch:
    version = _target(agent, "desk_agents:escalation", user_id, now)
    plan = Plan(
        repeats=REPEATS,
        regimes=(Regime(), Regime(kind=RegimeKind.SAMPLING, temperature=0.7)),
        # Which tool it calls is what is looked at; what the tool says is not.
        stubs={"misses": "empty"},
        seed=1,
    )
    return start_batch(
        version=version,
        cases=list(_cases(agent.project_id, user_id, now)),
        new=NewBatch(name="Escalation alone, in doubt and sure", plan=plan),
        user_id=user_id,
        now=now,
    )


def _cases(project_id: int, user_id: int, now: datetime) -> Iterator[ReplayCase]:
    waiting = dict(CASES)
    for trace in doubtful.escalation_trials():
        if name := waiting.pop(trace.name, ""):
            [number] = [
                one.number for one in trace.invocations if one.agent == "escalation"
            ]
            stored = Trace.objects.filter(project_id=project_id, name=trace.name)
            kept = freeze_invocation(
                trace=stored.earliest("id"), invocation=number, user_id=user_id, now=now
            )
            rename_case(case=kept.case, name=name)
            yield kept.case


def _forgetting(agent: Agent, user_id: int, now: datetime) -> Batch:
    test = decoded_memory_test(FACTS)
    plan = Plan(repeats=REPEATS, memory=encoded_memory_test(test), seed=1)
    new = NewBatch(
        name="A number, told and buried", plan=plan, depths=tuple(test.depths)
    )
    return start_batch(
        version=_target(agent, "desk_agents:Memory", user_id, now),
        cases=[],
        new=new,
        user_id=user_id,
        now=now,
    )
