"""What the checks that a project defines have in common: the whole rule is a spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from apps.engine.check import Basis, Level, Parameter
from apps.engine.contracts.fact_spec import FactSpec
from apps.engine.contracts.spec import ContractSpec, canonical

Spec = TypeVar("Spec", ContractSpec, FactSpec)


@dataclass(frozen=True)
class DefinedCheck(Generic[Spec]):
    """A check named by a project, and what it asks; `kind` names its one parameter."""

    slug: str
    label: str
    version: int
    spec: Spec

    kind: ClassVar[str]
    basis: ClassVar[Basis] = Basis.FACT
    limits: ClassVar[tuple[Parameter, ...]] = ()
    """None: a definition is changed as a whole."""

    @property
    def level(self) -> Level:
        """What the spec says may happen with a signal."""
        return self.spec.level

    @property
    def parameters(self) -> dict[str, Any]:
        """The definition itself."""
        return {self.kind: canonical(self.spec)}
