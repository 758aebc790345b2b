"""What is to be done in one run, and who does it: a driver for each kind of target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from django.conf import settings

from apps.engine.replay.case import Case
from apps.engine.replay.paraphrases import reworded
from apps.engine.replay.run import Limits, Ran, Regime, RegimeKind, TargetKind
from apps.engine.replay.stub_plan import StubPlan, decoded_plan
from apps.engine.replay.stubs import Handler, StubSession
from apps.isolation.hooks import Hooks
from apps.isolation.sandbox import Allowed, Level, SandboxOrder
from apps.isolation.stub_handlers import handler_in_sandbox
from apps.pipeline.replay_calls import Answer
from apps.replays.cases import case_of
from apps.replays.models import BatchKind, Run
from apps.replays.planning import Plan
from apps.replays.running import RunClaim

HANDLER_SECONDS: Final = 10.0
"""So long a handler may take to answer one call of a tool."""


class CannotRun(Exception):
    """A run cannot even begin; the message is a sentence for a person."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One run that is to be made, without its secret.

    `case` is what the agent is given, worded anew where the regime says so, and
    `frozen` the case as it was kept. `settings` are those of the version of the target.
    `depth` is that of a memory test. `refusal` says why the run cannot be made.
    """

    run_id: int
    number: int
    seed: int
    kind: TargetKind
    target_name: str
    settings: dict[str, Any]
    case: Case
    frozen: Case
    regime: Regime
    depth: int | None = None
    plan: Plan
    stubs: StubPlan
    task_key: str
    title: str
    refusal: str = ""

    @property
    def limits(self) -> Limits:
        """What the run may use at most."""
        return self.plan.limits

    def session(self, *, log: Collection[Mapping[str, Any]] = ()) -> StubSession:
        """The stubs of the run, after the calls of a `log`.

        Raises `CannotRun` where the operator does not allow a handler any more.
        """
        try:
            handlers = {name: _handler(name) for name in self.stubs.handlers}
            return StubSession(
                self.frozen, self.stubs, log=tuple(log), handlers=handlers
            )
        except ValueError as error:
            raise CannotRun(str(error)) from None


def _handler(name: str) -> Handler:
    """A callable that the operator listed, in the sandbox; nobody else can name one."""
    if name not in settings.REPLAY_HANDLERS:
        raise CannotRun(
            f"The handler “{name}” is not among those that the operator allows "
            "(EVALSITE_REPLAY_HANDLERS)."
        )
    return handler_in_sandbox(
        SandboxOrder(
            target=name,
            allowed=Allowed(callables=frozenset(settings.REPLAY_HANDLERS)),
            limits=Limits(seconds=HANDLER_SECONDS),
            code=tuple(Path(one) for one in settings.REPLAY_FOLDERS),
            never=(Path(settings.DATA_DIR),),
            least=Level(settings.REPLAY_LEAST_ISOLATION),
        )
    )


def order_of_run(run_id: int) -> Order:
    """What is to be done in a run. One query."""
    run = Run.objects.select_related(
        "group__case", "batch__agent", "batch__target_version__target"
    ).get(pk=run_id)
    batch, group = run.batch, run.group
    target = batch.target_version.target
    plan = msgspec.convert(batch.plan, Plan)
    kept = group.case
    frozen = Case(agent=batch.agent.name) if kept is None else case_of(kept)
    is_memory = batch.kind == BatchKind.MEMORY
    regime = Regime() if is_memory else msgspec.convert(group.regime, Regime)
    case, refusal = _worded(frozen, regime, plan)
    return Order(
        run_id=run_id,
        number=run.number,
        seed=run.seed,
        kind=TargetKind(target.kind),
        target_name=target.name,
        settings=batch.target_version.settings,
        case=case,
        frozen=frozen,
        regime=regime,
        depth=group.regime["depth"] if is_memory else None,
        plan=plan,
        stubs=decoded_plan(plan.stubs),
        task_key=f"replay/{batch.pk}/{group.pk}",
        title=f"{batch.name if kept is None else kept.name}, run {run.number}",
        refusal=refusal,
    )


def _worded(case: Case, regime: Regime, plan: Plan) -> tuple[Case, str]:
    """The case as the agent is given it, or why it cannot be."""
    if regime.kind is not RegimeKind.PARAPHRASE:
        return case, ""
    # In the order of their slugs, of which each ends in its number.
    by_slug = sorted(plan.paraphrases.items(), key=lambda one: (len(one[0]), one[0]))
    declared = [text for _, text in by_slug]
    try:
        return reworded(case, regime.paraphrase, declared=declared), ""
    except (ValueError, LookupError) as error:
        return case, f"The input could not be worded anew: {error}"


class Equipment(msgspec.Struct, frozen=True, kw_only=True):
    """What a driver is given besides its order.

    `claim` is the run's. `answer` answers tool calls. `secret` opens the key of the
    target at the moment of asking, and is empty where there is none.
    """

    claim: RunClaim
    answer: Answer
    hooks: Hooks
    secret: Callable[[], str]


Driver: TypeAlias = Callable[[Order, Equipment], Ran]
Drive: TypeAlias = Callable[[Any], Any]
"""Holds a conversation, and gives back what came of it."""

Talk: TypeAlias = Callable[[Order, Equipment, Drive], tuple[Ran, Any]]
"""The record of a conversation, and what came of it; `None` where it broke off."""
