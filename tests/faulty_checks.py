"""A check that breaks on some traces, in every way in which a check may break."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from apps.engine.check import Screening as EngineScreening
from apps.engine.checks.output_decay import OutputDecay
from apps.engine.trace import Trace as EngineTrace


def _raised(answer: EngineScreening) -> Iterator[EngineScreening]:
    yield answer
    raise ZeroDivisionError


def _scoped(answer: EngineScreening, scope: str) -> EngineScreening:
    evidence = msgspec.structs.replace(answer.evidence, scope=scope)
    return msgspec.structs.replace(answer, evidence=evidence)


def _chance(answer: EngineScreening, value: float) -> EngineScreening:
    evidence = msgspec.structs.replace(answer.evidence, chance_of_signal=value)
    return msgspec.structs.replace(answer, evidence=evidence)


FAULTS = {
    "raises": _raised,
    "recursion": lambda answer: (_ for _ in ()).throw(RecursionError()),
    "nothing": lambda answer: iter(()),
    "twice": lambda answer: iter([answer, answer]),
    "long": lambda answer: iter([_scoped(answer, "a" * 80 + n) for n in "12"]),
    "nan": lambda answer: iter([_chance(answer, float("nan"))]),
    "beyond": lambda answer: iter([_chance(answer, 1.5)]),
    "code": lambda answer: iter(
        [msgspec.structs.replace(answer, reason_code="x" * 99)]
    ),
}


@dataclass(frozen=True, kw_only=True)
class Faulty(OutputDecay):
    """A check beside all others that breaks in one of many ways on falling runs."""

    fault: str = "raises"
    slug: str = "faulty"
    label: str = "Faulty check"

    def run(self, trace: EngineTrace) -> Iterator[EngineScreening]:
        answers = list(super().run(trace))
        if "falling" in trace.name or trace.name == "run":
            return FAULTS[self.fault](answers[0])
        return iter(answers)
