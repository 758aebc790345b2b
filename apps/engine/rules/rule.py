"""What every rule does the same way with its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from apps.engine.check import Parameter


@dataclass(frozen=True)
class Rule:
    """A check whose fields are its parameters, each within one of its `limits`.

    A subclass is a frozen dataclass too. Its fields (with a type) are parameters; what
    never changes stands in its body without a type, so that it is no field: `slug`,
    `label`, `version`, `level`, `basis`, `needs_bodies`, `limits` and those of the four
    texts that name no parameter. Raises `ValueError` with a sentence for a value that a
    limit refuses.
    """

    limits: ClassVar[tuple[Parameter, ...]] = ()

    def __post_init__(self) -> None:
        for limit in self.limits:
            if refusal := limit.refusal(getattr(self, limit.name)):
                raise ValueError(refusal)

    @property
    def parameters(self) -> dict[str, Any]:
        """The value of each parameter as JSON, in the order of `limits`."""
        return {limit.name: self._as_json(limit) for limit in self.limits}

    def _as_json(self, limit: Parameter) -> Any:
        value = getattr(self, limit.name)
        return list(value) if limit.names else value
