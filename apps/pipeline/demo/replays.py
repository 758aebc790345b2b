"""Two batches of the demo: an agent that wavers alone, and a memory that forgets."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from apps.agents.models import Agent
from apps.engine.memory_tests import decoded_memory_test, encoded_memory_test
from apps.engine.replay.case import Case
from apps.engine.replay.freezing import frozen_case
from apps.engine.replay.run import Regime, RegimeKind, TargetKind
from apps.engine.trace import Trace
from apps.pipeline.demo import doubtful
from apps.replays.allowed import allowed_here
from apps.replays.cases import Origin, keep_cases
from apps.replays.models import Batch, CaseSource, TargetVersion
from apps.replays.planning import NewBatch, Plan, start_batch
from apps.replays.targets import NewTarget, add_target, current_version

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
    """Start both batches; the caller wakes workers once this is committed."""
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
    kept = keep_cases(
        agent=agent,
        cases=list(_cases()),
        origin=Origin(CaseSource.HAND),
        user_id=user_id,
        now=now,
    )
    plan = Plan(
        repeats=REPEATS,
        regimes=(Regime(), Regime(kind=RegimeKind.SAMPLING)),
        # Which tool it calls is what is looked at; what the tool says is not.
        stubs={"misses": "empty"},
        seed=1,
    )
    return start_batch(
        version=version,
        cases=[one.case for one in kept],
        new=NewBatch(name="Escalation alone, in doubt and sure", plan=plan),
        user_id=user_id,
        now=now,
    )


def _cases() -> Iterator[Case]:
    waiting = dict(CASES)
    for trace in doubtful.escalation_trials():
        if name := waiting.pop(trace.name, ""):
            yield _case(trace, name)


def _case(trace: Trace, name: str) -> Case:
    [number] = [one.number for one in trace.invocations if one.agent == "escalation"]
    return msgspec.structs.replace(frozen_case(trace, number), name=name)


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
