"""Callables and commands of an operator, as they are run in the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from django.conf import settings

from apps.engine.replay.run import Limits, ModelCalled, Ran, TargetKind
from apps.engine.trace import Usage, UsageState
from apps.isolation.client import Reach
from apps.isolation.hooks import WorstCase
from apps.isolation.local_code import (
    LocalOrder,
    TurnByTurn,
    run_callable,
    run_command,
    run_stateful,
)
from apps.isolation.model_endpoint import EndpointOrder
from apps.isolation.model_relay import relay_of
from apps.isolation.sandbox import Allowed, Level, SandboxOrder
from apps.pipeline.replay_orders import Equipment, Order
from apps.replays.allowed import inner_hosts_here
from apps.replays.target_settings import CallableSettings, CommandSettings

_NO_TOKENS: Final = Usage(
    state=UsageState.REPORTED, input_total=0, output_total=0, total=0
)


def run_a_callable(order: Order, equipment: Equipment) -> Ran:
    """Run a Python callable alone."""
    local = _of_callable(order, equipment)
    with _counted(equipment, local):
        return run_callable(
            local,
            answer=equipment.answer,
            stop=equipment.hooks.stop,
            clock_ns=equipment.hooks.clock_ns,
        )


def run_a_command(order: Order, equipment: Equipment) -> Ran:
    """Run a command alone."""
    target = msgspec.convert(order.settings, CommandSettings)
    local = _local(order, equipment, (target.command, *target.arguments))
    with _counted(equipment, local):
        return run_command(
            local,
            answer=equipment.answer,
            stop=equipment.hooks.stop,
            clock_ns=equipment.hooks.clock_ns,
        )


def talk_with_a_callable(
    order: Order, equipment: Equipment, drive: Callable[[TurnByTurn], Any]
) -> tuple[Ran, Any]:
    """Talk with a stateful callable; what `drive` gave back, `None` if nothing began."""
    local = _of_callable(order, equipment)
    with _counted(equipment, local):
        return run_stateful(
            local,
            drive,
            answer=equipment.answer,
            stop=equipment.hooks.stop,
            clock_ns=equipment.hooks.clock_ns,
        )


@contextmanager
def _counted(equipment: Equipment, local: LocalOrder) -> Iterator[None]:
    """Count local code that asks no model as one call, which costs nothing."""
    hooks = equipment.hooks
    if local.sandbox.relay is not None:
        yield
        return
    hooks.before_call(WorstCase(input_tokens=0, output_tokens=0))
    try:
        yield
    finally:
        hooks.after_call(ModelCalled(request=None, usage=_NO_TOKENS))


def _of_callable(order: Order, equipment: Equipment) -> LocalOrder:
    target = msgspec.convert(order.settings, CallableSettings)
    return _local(order, equipment, target.callable)


def _local(
    order: Order, equipment: Equipment, target: str | tuple[str, ...]
) -> LocalOrder:
    set_to = msgspec.convert(order.settings, _SETTINGS[order.kind])
    limits, secret = limits_of(order, set_to.seconds), equipment.secret()
    relay = None
    if set_to.base_url:
        endpoint = EndpointOrder(
            case=order.case,
            base_url=set_to.base_url,
            limits=limits,
            model=set_to.model,
            regime=order.regime,
            secret=secret,
            reach=reach(),
        )
        relay = relay_of(endpoint, hooks=equipment.hooks)
    case = order.case
    return LocalOrder(
        case=msgspec.structs.replace(case, model=set_to.model or case.model),
        sandbox=SandboxOrder(
            target=target,
            allowed=Allowed(
                callables=frozenset(settings.REPLAY_CALLABLES),
                commands=frozenset(settings.REPLAY_COMMANDS),
            ),
            limits=limits,
            code=tuple(Path(one) for one in settings.REPLAY_FOLDERS),
            never=(Path(settings.DATA_DIR),),
            secrets=(secret,) if secret else (),
            least=_least(order),
            relay=relay,
        ),
        temperature=order.regime.temperature,
        seed=order.seed,
    )


_SETTINGS: Final[dict[TargetKind, type[CallableSettings | CommandSettings]]] = {
    TargetKind.CALLABLE: CallableSettings,
    TargetKind.COMMAND: CommandSettings,
}


def _least(order: Order) -> Level:
    """The least isolation: that of the site, or a higher one that the plan asks for."""
    site = Level(settings.REPLAY_LEAST_ISOLATION)
    wanted = Level(order.plan.least_isolation or site)
    return wanted if wanted.is_at_least(site) else site


def limits_of(order: Order, seconds: int) -> Limits:
    """The limits of the plan, and no more time than the target is given."""
    limits = order.limits
    return msgspec.structs.replace(limits, seconds=min(limits.seconds, seconds))


def reach() -> Reach:
    """What may be called: addresses of the world, and those that the operator lists."""
    return Reach(inner=inner_hosts_here())
