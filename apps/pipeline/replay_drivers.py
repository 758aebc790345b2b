"""How targets of each kind are run: what is set in the product, as a driver takes it."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import msgspec
from django.conf import settings

from apps.engine.replay.run import Ran, TargetKind
from apps.engine.replay.turns import Api
from apps.isolation.http_agent import HttpAgentOrder, run_http_agent, run_http_turns
from apps.isolation.model_endpoint import (
    EndpointOrder,
    run_endpoint,
    run_endpoint_turns,
)
from apps.pipeline.replay_local import (
    limits_of,
    reach,
    run_a_callable,
    run_a_command,
    talk_with_a_callable,
)
from apps.pipeline.replay_orders import CannotRun, Drive, Driver, Equipment, Order, Talk
from apps.pipeline.replay_stubs import seen_calls
from apps.replays.running import RunClaim
from apps.replays.stub_calls import open_stubs
from apps.replays.target_settings import HttpSettings, ModelSettings


def ask_endpoint(order: Order, equipment: Equipment) -> Ran:
    """Run an agent that is a model behind an OpenAI-compatible endpoint."""
    return run_endpoint(
        _of_endpoint(order, equipment), answer=equipment.answer, hooks=equipment.hooks
    )


def talk_with_endpoint(
    order: Order, equipment: Equipment, drive: Drive
) -> tuple[Ran, Any]:
    """Talk with a model, turn by turn."""
    return run_endpoint_turns(
        _of_endpoint(order, equipment),
        drive,
        answer=equipment.answer,
        hooks=equipment.hooks,
    )


def _of_endpoint(order: Order, equipment: Equipment) -> EndpointOrder:
    target = msgspec.convert(order.settings, ModelSettings)
    return EndpointOrder(
        case=order.case,
        base_url=target.base_url,
        regime=order.regime,
        limits=limits_of(order, target.seconds),
        model=target.model,
        api=Api(target.api),
        is_streamed=target.stream,
        parameters={"max_tokens": target.max_tokens, **target.parameters},
        secret=equipment.secret(),
        seed=order.seed,
        reach=reach(),
    )


def ask_agent(order: Order, equipment: Equipment) -> Ran:
    """Run an agent elsewhere, with stubs of this run for its tools."""
    return run_http_agent(
        _of_agent(order, equipment),
        seen_calls=partial(seen_calls, equipment.claim),
        hooks=equipment.hooks,
    )


def talk_with_agent(
    order: Order, equipment: Equipment, drive: Drive
) -> tuple[Ran, Any]:
    """Talk with an agent elsewhere, turn by turn."""
    return run_http_turns(
        _of_agent(order, equipment),
        drive,
        seen_calls=partial(seen_calls, equipment.claim),
        hooks=equipment.hooks,
    )


def _of_agent(order: Order, equipment: Equipment) -> HttpAgentOrder:
    target = msgspec.convert(order.settings, HttpSettings)
    return HttpAgentOrder(
        case=order.case,
        url=target.url,
        run=str(order.run_id),
        regime=order.regime,
        limits=limits_of(order, target.seconds),
        stub_base=_stub_base(order, equipment.claim),
        secret=equipment.secret(),
        secret_header=target.header,
        secret_prefix=target.prefix,
        reach=reach(),
    )


def _stub_base(order: Order, claim: RunClaim) -> str:
    """The address of the stubs of a run; "" where its case has no tools."""
    if not order.case.tools:
        return ""
    if not settings.REPLAY_STUB_URL:
        raise CannotRun(
            "The tools of this agent are stubbed at an address of this site, and the "
            "operator has not said how agents reach it (EVALSITE_REPLAY_STUB_URL)."
        )
    return f"{settings.REPLAY_STUB_URL}/api/stubs/{open_stubs(claim)}"


DRIVERS: Final[dict[TargetKind, Driver]] = {
    TargetKind.OPENAI: ask_endpoint,
    TargetKind.HTTP: ask_agent,
    TargetKind.CALLABLE: run_a_callable,
    TargetKind.COMMAND: run_a_command,
}
"""Who runs the targets of each kind; there is nothing to run for recorded ones."""

TALKS: Final[dict[TargetKind, Talk]] = {
    TargetKind.OPENAI: talk_with_endpoint,
    TargetKind.HTTP: talk_with_agent,
    TargetKind.CALLABLE: talk_with_a_callable,
}
"""Who talks with targets of each kind, turn by turn; commands are run for each turn."""
