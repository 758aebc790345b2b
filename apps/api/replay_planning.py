"""What is asked of a batch through the JSON door, made into a plan with its estimate.

A batch starts only with the `confirm` of the estimate that was read: it changes with
anything in the plan, in its cases or in the target.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec
from django.conf import settings

from apps.api.refusals import BadRequest
from apps.engine.contracts.spec import BadDefinition
from apps.engine.memory_tests import (
    MemoryTest,
    decoded_memory_test,
    encoded_memory_test,
)
from apps.engine.replay.case import Case
from apps.engine.replay.estimates import Estimate, TargetSettings, estimate
from apps.engine.replay.paraphrases import DECLARED, refuse_wordings
from apps.engine.replay.prices import PriceTable
from apps.engine.replay.regimes import RegimesAsked, regimes_of
from apps.engine.replay.run import Limits, Regime, TargetKind
from apps.engine.replay.stub_plan import BadPlan, decoded_plan, encoded_plan
from apps.isolation.sandbox.levels import Level
from apps.replays.cases import case_of
from apps.replays.memory_costs import memory_estimate, most_calls
from apps.replays.models import ReplayCase, Target, TargetVersion
from apps.replays.planning import (
    DEFAULT_REPEATS,
    MOST_GROUPS,
    MOST_REPEATS,
    Caps,
    NewBatch,
    Plan,
    limits_at,
    stored_estimate,
)
from apps.replays.prices_file import known_prices, price_of
from apps.replays.queries import chosen_cases
from apps.replays.targets import current_version
from apps.review.models import Signal

HOTTEST: Final = 2.0
MOST_TEMPERATURES: Final = 8
_MOST: Final = {
    "seconds": 3_600,
    "model_calls": 1_000,
    "tool_calls": 10_000,
    "output_tokens": 200_000,
}


class AskedLimits(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What one run may use at most."""

    seconds: float = Limits().seconds
    model_calls: int = Limits().model_calls
    tool_calls: int = Limits().tool_calls
    output_tokens: int = Limits().output_tokens


class AskedCaps(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all runs together may use at most; `null` is no cap."""

    calls: int | None = None
    tokens: int | None = None
    money: Decimal | None = None
    seconds: int | None = None

    def caps(self) -> Caps:
        """As a plan has them; raises `BadRequest`."""
        for name, most in (("calls", 2**31), ("tokens", 2**63), ("seconds", 2**31)):
            value = getattr(self, name)
            if value is not None and not 0 < value < most:
                raise BadRequest(f"“caps.{name}” is a whole number above 0.")
        if self.money is not None and not (
            self.money.is_finite() and 0 < self.money < 10**8
        ):
            raise BadRequest("“caps.money” is an amount above 0.")
        return Caps(**msgspec.structs.asdict(self))


class _Regimes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    determinism: bool = True
    sampling: tuple[float | None, ...] = ()
    paraphrases: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()


class AskedBatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a request that estimates or starts a batch."""

    name: str
    target: int
    cases: tuple[int, ...] = ()
    repeats: int = DEFAULT_REPEATS
    regimes: _Regimes = _Regimes()
    stubs: dict[str, Any] = {}
    limits: AskedLimits = AskedLimits()
    caps: AskedCaps = AskedCaps()
    memory: dict[str, Any] | None = None
    least_isolation: str = ""
    seed: int = 1
    signal: int | None = None
    confirm: str = ""


class PlannedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A batch that can be started, and what it may need."""

    version: TargetVersion
    cases: tuple[ReplayCase, ...]
    new: NewBatch

    @property
    def confirm(self) -> str:
        """32 hex digits over the version, the cases, the plan and the estimate."""
        value = [
            self.version.pk,
            [one.pk for one in self.cases],
            msgspec.to_builtins(self.new, str_keys=True),
        ]
        return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:32]


def converted(value: Any, kind: type[Any]) -> Any:
    """The value as one of these structs; raises `BadRequest` that names the field."""
    try:
        return msgspec.convert(value, kind, strict=True)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        where = f" in “{place.strip('`.')}”" if place.strip("`.") else ""
        raise BadRequest(f"{what.rstrip('.')}{where}.") from None


def planned_batch(project_id: int, asked: AskedBatch) -> PlannedBatch:
    """The plan of a batch of a project; raises `BadRequest`."""
    target = Target.objects.filter(project_id=project_id, pk=_id(asked.target)).first()
    if target is None or target.kind == TargetKind.RECORDED.value:
        raise BadRequest("“target” is the id of a target that can be run.")
    version = current_version(target.pk)
    rows = chosen_cases(project_id, [_id(one) for one in asked.cases])
    if len(rows) != len(set(asked.cases)):
        raise BadRequest("“cases” are ids of cases of this project.")
    _check(project_id, asked)
    limits = limits_at(Limits(**msgspec.structs.asdict(asked.limits)), version.settings)
    table, _ = known_prices()
    cost = TargetSettings(
        kind=TargetKind(target.kind),
        model=_model(target, version),
        limits=limits,
        declared=asked.regimes.declared,
    )
    price = price_of(table, cost.model)
    if asked.caps.money is not None and price is None:
        raise BadRequest(
            "Money cannot be capped: the price table has no price for the model of "
            "this target. Cap calls or tokens instead."
        )
    shared = _Shared(asked, rows, cost, table, price)
    new = _replays(shared) if asked.memory is None else _memory(shared)
    return PlannedBatch(version=version, cases=tuple(rows), new=new)


class _Shared(msgspec.Struct, frozen=True):
    """What both kinds of batches are planned with."""

    asked: AskedBatch
    rows: Sequence[ReplayCase]
    cost: TargetSettings
    table: PriceTable
    price: dict[str, str] | None

    def plan(self, **more: Any) -> Plan:
        """The plan, with what only one kind has."""
        asked = self.asked
        return Plan(
            **{
                "limits": self.cost.limits,
                "stubs": _stubs(asked.stubs),
                "price": self.price,
                "seed": asked.seed,
                "least_isolation": asked.least_isolation,
                **more,
            }
        )

    def batch(self, plan: Plan, found: Estimate, **more: Any) -> NewBatch:
        """The batch of a plan."""
        return NewBatch(
            name=self.asked.name,
            plan=plan,
            caps=self.asked.caps.caps(),
            estimate=stored_estimate(found),
            signal=self.asked.signal,
            **more,
        )


def _replays(shared: _Shared) -> NewBatch:
    asked = shared.asked
    regimes = _regimes(asked.regimes)
    try:
        found = estimate(
            [case_of(row) for row in shared.rows],
            repeats=asked.repeats,
            regimes=regimes,
            settings=shared.cost,
            prices=shared.table,
        )
    except LookupError as error:
        raise BadRequest(f"“regimes.paraphrases”: {error.args[0]}") from None
    paraphrases = {
        f"{DECLARED}{number}": text
        for number, text in enumerate(asked.regimes.declared, start=1)
    }
    plan = shared.plan(repeats=asked.repeats, regimes=regimes, paraphrases=paraphrases)
    return shared.batch(plan, found)


def _memory(shared: _Shared) -> NewBatch:
    test = _test(shared.asked.memory)
    limits = msgspec.structs.replace(
        shared.cost.limits,
        model_calls=max(shared.cost.limits.model_calls, most_calls(test)),
    )
    cost = msgspec.structs.replace(shared.cost, limits=limits)
    before = [_bytes_of(case_of(row)) for row in shared.rows[:1]]
    found = memory_estimate(test, settings=cost, base=sum(before), prices=shared.table)
    plan = shared.plan(
        repeats=test.repeats,
        regimes=(),
        limits=limits,
        memory=encoded_memory_test(test),
    )
    return shared.batch(plan, found, depths=test.depths)


def _bytes_of(case: Case) -> int:
    return len(msgspec.json.encode((case.messages, case.tools)))


def _test(value: Any) -> MemoryTest:
    try:
        return decoded_memory_test(value)
    except BadDefinition as error:
        where = f".{error.field}" if error.field else ""
        raise BadRequest(f"“memory{where}”: {error}") from None


def _check(project_id: int, asked: AskedBatch) -> None:
    """What no later rule refuses in a sentence; raises `BadRequest`."""
    if not 1 <= asked.repeats <= MOST_REPEATS:
        raise BadRequest(f"“repeats” is a number from 1 to {MOST_REPEATS}.")
    if len(asked.cases) > MOST_GROUPS:
        raise BadRequest(f"A batch has at most {MOST_GROUPS} cases.")
    if not 0 <= asked.seed < 2**31:
        raise BadRequest("“seed” is a number from 0 to 2147483647.")
    for name, most in _MOST.items():
        if not 1 <= getattr(asked.limits, name) <= most:
            raise BadRequest(f"“limits.{name}” is a number from 1 to {most:,}.")
    _check_names(project_id, asked)


def _check_names(project_id: int, asked: AskedBatch) -> None:
    levels = [one.value for one in Level]
    if asked.least_isolation not in {"", *levels}:
        raise BadRequest(f"“least_isolation” is one of: {', '.join(levels)}.")
    if asked.signal is None:
        return
    known = Signal.objects.filter(project_id=project_id, pk=_id(asked.signal))
    if not known.exists():
        raise BadRequest("“signal” is the id of a signal of this project.")


def _id(value: int) -> int:
    """An id that the database can look for; 0 is none."""
    return value if 0 < value < 2**63 else 0


def _model(target: Target, version: TargetVersion) -> str:
    """The model that a target asks, "" where only it knows."""
    is_elsewhere = target.kind == TargetKind.HTTP.value
    return "" if is_elsewhere else str(version.settings.get("model", ""))


def _regimes(asked: _Regimes) -> tuple[Regime, ...]:
    heats = [one for one in asked.sampling if one is not None]
    if len(asked.sampling) > MOST_TEMPERATURES or not all(
        0 < one <= HOTTEST for one in heats
    ):
        raise BadRequest(
            f"“regimes.sampling” are up to {MOST_TEMPERATURES} temperatures above 0 and "
            f"at most {HOTTEST:g}, or null for the target's own."
        )
    try:
        refuse_wordings(asked.declared)
    except ValueError as error:
        raise BadRequest(f"“regimes.declared”: {error}") from None
    return regimes_of(RegimesAsked(**msgspec.structs.asdict(asked)))


def _stubs(value: dict[str, Any]) -> dict[str, Any]:
    try:
        plan = decoded_plan(value)
    except BadPlan as error:
        raise BadRequest(f"“stubs”: {error}") from None
    for name in plan.handlers:
        if name not in settings.REPLAY_HANDLERS:
            raise BadRequest(
                f"“stubs”: the handler “{name[:80]}” is not among those that the "
                "operator allows (EVALSITE_REPLAY_HANDLERS)."
            )
    return encoded_plan(plan)
