"""Runs one case once, by whatever its target is: the same drivers as in the application."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from apps.engine.memory_tests import TrialRecord
from apps.engine.replay.case import Case
from apps.engine.replay.run import (
    Ending,
    ErrorKind,
    Limits,
    Proof,
    Ran,
    Regime,
    RunError,
    TargetKind,
)
from apps.engine.replay.stubs import StubSession
from apps.engine.replay.turns import Api
from apps.isolation.client import Reach
from apps.isolation.hooks import Hooks, NotNow
from apps.isolation.http_agent import HttpAgentOrder, run_http_agent
from apps.isolation.local_code import (
    LocalOrder,
    TurnByTurn,
    run_callable,
    run_command,
    run_stateful,
)
from apps.isolation.model_endpoint import EndpointOrder, run_endpoint
from apps.isolation.model_relay import relay_of
from apps.isolation.sandbox import Allowed, Relay, SandboxOrder
from apps.isolation.stub_handlers import handler_in_sandbox
from apps.replays.target_settings import (
    CallableSettings,
    CommandSettings,
    HttpSettings,
    ModelSettings,
)
from evalsite.offline.replay_budget import Purse
from evalsite.offline.replay_stub_server import OpenStubs, StubServer
from evalsite.offline.replay_target import OfflineTarget

_SAYING: Final = "That is our fault and says nothing of the agent."


class OneRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run that is to be made. `case` is worded anew where its regime says so.

    `frozen` is the case as it was given: stubs answer by its recordings.
    """

    case: Case
    frozen: Case
    regime: Regime = Regime()
    number: int = 1
    seed: int = 0


class Drivers:
    """Runs a target; safe to use from several threads at once."""

    def __init__(
        self, target: OfflineTarget, *, purse: Purse, server: StubServer
    ) -> None:
        self._target = target
        self._purse = purse
        self._server = server
        self._handlers = {
            name: handler_in_sandbox(
                self._sandbox(name, allowed=target.granted.handlers)
            )
            for name in target.stubs.handlers
        }
        self._by_kind: dict[TargetKind, Callable[[OneRun, Hooks], Ran]] = {
            TargetKind.OPENAI: self._model,
            TargetKind.HTTP: self._agent,
            TargetKind.CALLABLE: self._callable,
            TargetKind.COMMAND: self._command,
        }

    def run(self, order: OneRun) -> Ran:
        """The record of one run; whatever breaks is a record too."""
        try:
            return self._by_kind[self._target.kind](order, self._purse.hooks())
        except NotNow as later:
            return _not_made(ErrorKind.RATE_LIMITED, str(later))
        except Exception as error:  # noqa: BLE001 - the other runs can still be made
            sentence = (
                f"The harness broke on this run ({type(error).__name__}). {_SAYING}"
            )
            return _not_made(ErrorKind.OURS, sentence)

    def talk(
        self, order: OneRun, drive: Callable[[TurnByTurn], TrialRecord]
    ) -> tuple[Ran, TrialRecord | None]:
        """Talk with a stateful callable; the record of the talk, if it began."""
        return run_stateful(
            self._local(order, self._purse.hooks()),
            drive,
            answer=self._session(order).answer,
            stop=self._purse.is_stopped,
            clock_ns=time.time_ns,
        )

    def _session(self, order: OneRun) -> StubSession:
        return StubSession(order.frozen, self._target.stubs, handlers=self._handlers)

    def _model(self, order: OneRun, hooks: Hooks) -> Ran:
        target = self._target
        of = _settings(target, ModelSettings)
        return run_endpoint(
            EndpointOrder(
                case=order.case,
                base_url=of.base_url,
                regime=order.regime,
                limits=target.run_limits,
                model=of.model,
                api=Api(of.api),
                is_streamed=of.stream,
                parameters={"max_tokens": of.max_tokens, **of.parameters},
                secret=target.secret,
                seed=order.seed,
                reach=self._reach(),
            ),
            answer=self._session(order).answer,
            hooks=hooks,
        )

    def _agent(self, order: OneRun, hooks: Hooks) -> Ran:
        target = self._target
        of = _settings(target, HttpSettings)
        stubs = OpenStubs(
            order.frozen, self._session(order), most=target.run_limits.tool_calls
        )
        with self._server.open(stubs) as address:
            wanted = HttpAgentOrder(
                case=order.case,
                url=of.url,
                run=f"{order.case.name or order.case.agent} {order.number}".strip(),
                regime=order.regime,
                limits=target.run_limits,
                stub_base=address if order.case.tools else "",
                secret=target.secret,
                secret_header=of.header,
                secret_prefix=of.prefix,
                reach=self._reach(),
            )
            return run_http_agent(wanted, seen_calls=stubs.seen, hooks=hooks)

    def _callable(self, order: OneRun, hooks: Hooks) -> Ran:
        return run_callable(
            self._local(order, hooks),
            answer=self._session(order).answer,
            stop=hooks.stop,
            clock_ns=time.time_ns,
        )

    def _command(self, order: OneRun, hooks: Hooks) -> Ran:
        return run_command(
            self._local(order, hooks),
            answer=self._session(order).answer,
            stop=hooks.stop,
            clock_ns=time.time_ns,
        )

    def _local(self, order: OneRun, hooks: Hooks) -> LocalOrder:
        target = self._target
        of = target.settings
        case, words = order.case, _words(of)
        model = getattr(of, "model", "")
        if model:
            case = msgspec.structs.replace(case, model=model)
        return LocalOrder(
            case=case,
            sandbox=msgspec.structs.replace(
                self._sandbox(words, allowed=target.granted.callables),
                secrets=(target.secret,) if target.secret else (),
                relay=self._relay(order, hooks),
            ),
            temperature=order.regime.temperature,
            seed=order.seed,
        )

    def _sandbox(
        self, words: str | tuple[str, ...], *, allowed: Sequence[str]
    ) -> SandboxOrder:
        target = self._target
        return SandboxOrder(
            target=words,
            allowed=Allowed(
                callables=frozenset(allowed),
                commands=frozenset(target.granted.commands),
            ),
            limits=target.run_limits,
            python=target.python,
            code=target.code,
            readable=target.readable,
            env=target.env,
            least=target.least,
        )

    def _relay(self, order: OneRun, hooks: Hooks) -> Relay | None:
        """The way of local code to its model, where the target names one."""
        target = self._target
        base_url = getattr(target.settings, "base_url", "")
        if not base_url:
            return None
        endpoint = EndpointOrder(
            case=order.case,
            base_url=base_url,
            regime=order.regime,
            limits=target.run_limits,
            model=target.model,
            secret=target.secret,
            reach=self._reach(),
        )
        return relay_of(endpoint, hooks=hooks)

    def _reach(self) -> Reach:
        return Reach(inner=self._target.granted.hosts)


def _settings(target: OfflineTarget, kind: type[Any]) -> Any:
    assert isinstance(target.settings, kind)  # noqa: S101 - decoded by its kind
    return target.settings


def _words(of: Any) -> str | tuple[str, ...]:
    if isinstance(of, CallableSettings):
        return of.callable
    assert isinstance(of, CommandSettings)  # noqa: S101 - the only other local kind
    return (of.command, *of.arguments)


def _not_made(kind: ErrorKind, sentence: str) -> Ran:
    now = time.time_ns()
    return Ran(
        ending=Ending.FAILED,
        error=RunError(kind=kind, sentence=sentence),
        proof=Proof(level="none", limits=Limits()),
        start_ns=now,
        end_ns=now,
    )
