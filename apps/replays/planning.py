"""Planning a batch: which cases, how often, under which conditions, at what cost at most.

A batch, its groups and all its runs are written in one transaction. From then on the
plan never changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import msgspec
from django.conf import settings
from django.db import transaction

from apps.agents.queries import agent_now, agents_behind
from apps.engine.replay.estimates import Estimate
from apps.engine.replay.regimes import applicable
from apps.engine.replay.run import Limits, Regime
from apps.replays.cases import case_of
from apps.replays.models import (
    Batch,
    BatchKind,
    Group,
    ReplayCase,
    Run,
    TargetVersion,
)
from apps.replays.transitions import BatchState

MOST_REPEATS: Final = 100
MOST_GROUPS: Final = 500
DEFAULT_REPEATS: Final = 5
LONGEST_NAME: Final = 200


class WrongPlan(ValueError):
    """A batch that cannot be: `field` names the place, the message says why."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Caps(msgspec.Struct, frozen=True, kw_only=True):
    """The most that all runs of a batch may use together; `None` is no cap."""

    calls: int | None = None
    tokens: int | None = None
    money: Decimal | None = None
    seconds: int | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is frozen with a batch, as it is stored.

    `stubs` is a `StubPlan` and `memory` a `MemoryTest`, as JSON. `paraphrases` are
    texts of people by the slug that a regime names. `price` has those of a million input
    and output tokens at the time of planning, `None` where not known.
    `least_isolation` is "" for that of the site, and never below it.
    """

    repeats: int = DEFAULT_REPEATS
    regimes: tuple[Regime, ...] = (Regime(),)
    stubs: dict[str, Any] = {}
    limits: Limits = Limits()
    paraphrases: dict[str, str] = {}
    memory: dict[str, Any] | None = None
    price: dict[str, str] | None = None
    least_isolation: str = ""
    seed: int = 0


class NewBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that is to be made. `depths` are those of a memory test, else empty."""

    name: str
    plan: Plan
    caps: Caps = Caps()
    estimate: dict[str, Any] = {}
    depths: tuple[int, ...] = ()
    signal: int | None = None


def stored_estimate(found: Estimate) -> dict[str, Any]:
    """An estimate as it is kept with a batch; `micros` are millionths of `currency`."""
    value: dict[str, Any] = msgspec.to_builtins(found)
    return {**value, "sentence": found.sentence}


def limits_at(limits: Limits, settings_of_target: dict[str, Any]) -> Limits:
    """The limits of runs at a target: no more output of a call than it is set to."""
    most = settings_of_target.get("max_tokens", limits.output_tokens)
    return msgspec.structs.replace(
        limits, output_tokens=min(limits.output_tokens, most)
    )


def regime_key(regime: dict[str, Any], worded: str = "") -> str:
    """Under which name groups of one case are the same conditions: 64 hex digits.

    `worded` is the text of a paraphrase that people declared, whose slug is a number.
    """
    encoded = msgspec.json.encode([regime, worded], order="deterministic")
    return hashlib.sha256(encoded).hexdigest()


def start_batch(
    *,
    version: TargetVersion,
    cases: Sequence[ReplayCase],
    new: NewBatch,
    user_id: int | None,
    now: datetime,
) -> Batch:
    """Write a batch with all its runs, waiting for a worker; raises `WrongPlan`.

    The caller wakes a worker once this is committed. A memory test has a group for
    each depth, of its first case or none; other batches one for each case and regime,
    without paraphrases that leave the case as it is. It is of the agent for which the
    name of the target's stands now, and so may its cases be.
    """
    target = version.target
    if target.is_retired:
        raise WrongPlan(f"The target “{target.name}” was put away.", field="target")
    groups = _groups(cases, new)
    agent_id = agent_now(target.agent)
    _check(agent_id, cases, new, groups=len(groups))
    with transaction.atomic():
        batch = Batch.objects.create(
            project_id=target.project_id,
            agent_id=agent_id,
            target_version=version,
            name=" ".join(new.name.replace("\x00", "").split())[:LONGEST_NAME],
            kind=BatchKind.MEMORY if new.plan.memory else BatchKind.REPLAY,
            state=BatchState.RUNNING.value,
            plan=msgspec.to_builtins(new.plan),
            estimate=new.estimate,
            signal=new.signal,
            concurrency=version.settings.get("concurrency", 1),
            max_calls=new.caps.calls,
            max_tokens=new.caps.tokens,
            max_money=new.caps.money,
            max_seconds=new.caps.seconds,
            run_count=len(groups) * new.plan.repeats,
            created_by_id=user_id,
            created_at=now,
            started_at=now,
        )
        made = Group.objects.bulk_create(
            [
                Group(
                    batch=batch,
                    case=case,
                    number=number,
                    regime=regime,
                    regime_key=regime_key(
                        regime,
                        new.plan.paraphrases.get(regime.get("paraphrase", ""), ""),
                    ),
                )
                for number, (case, regime) in enumerate(groups, start=1)
            ]
        )
        Run.objects.bulk_create(
            [
                Run(
                    batch=batch,
                    group=group,
                    number=number,
                    seed=new.plan.seed + 1_000 * group.number + number,
                )
                # Round by round, so that what is known so far is known of every group.
                for number in range(1, new.plan.repeats + 1)
                for group in made
            ]
        )
    return batch


def _groups(
    cases: Sequence[ReplayCase], new: NewBatch
) -> list[tuple[ReplayCase | None, dict[str, Any]]]:
    if new.plan.memory is not None:
        base = cases[0] if cases else None
        return [(base, {"kind": "memory", "depth": depth}) for depth in new.depths]
    declared = list(new.plan.paraphrases.values())
    return [
        (case, msgspec.to_builtins(regime))
        for case in cases
        for regime in applicable(case_of(case), new.plan.regimes, declared=declared)[0]
    ]


def _check(
    agent_id: int, cases: Sequence[ReplayCase], new: NewBatch, *, groups: int
) -> None:
    plan, most = new.plan, settings.REPLAY_MAX_RUNS
    if not new.name.strip():
        raise WrongPlan("Give the batch a name.", field="name")
    if not 1 <= plan.repeats <= MOST_REPEATS:
        raise WrongPlan(f"Each case is run 1 to {MOST_REPEATS} times.", field="repeats")
    own = set(agents_behind(agent_id))
    if any(case.agent_id not in own or case.is_retired for case in cases):
        raise WrongPlan(
            "One of the cases is of another agent, or was put away.", field="cases"
        )
    if not groups:
        what = "depth" if plan.memory is not None else "case and one regime"
        raise WrongPlan(f"Choose at least one {what}.", field="cases")
    if groups > MOST_GROUPS or groups * plan.repeats > most:
        raise WrongPlan(
            f"That makes {groups * plan.repeats:,} runs in {groups:,} groups; a batch "
            f"has at most {most:,} runs in {MOST_GROUPS:,} groups.",
            field="repeats",
        )
    for field in ("calls", "tokens", "money", "seconds"):
        cap = getattr(new.caps, field)
        if cap is not None and cap <= 0:
            raise WrongPlan(
                "A cap is more than 0; leave it empty for none.", field=field
            )
