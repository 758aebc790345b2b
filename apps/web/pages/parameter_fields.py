"""The parameters of a check as fields of a form, and what was typed as its values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from apps.engine.check import Check, Parameter
from apps.web.pages.check import range_in_words

LONGEST_NAMES = 10_000


class ParameterField(msgspec.Struct, frozen=True):
    """One parameter: what stands in its field, what it may be, and what is wrong."""

    name: str
    label: str
    value: str
    current: str
    allowed: str
    is_names: bool
    step: str
    low: str
    high: str
    error: str = ""


def typed_values(
    check: Check, data: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of the parameters, and the sentences about those that may not be so.

    What was left out keeps the value that the check has.
    """
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for limit in check.limits:
        if limit.name not in data:
            continue
        value = _value_of(limit, data[limit.name])
        if refusal := limit.refusal(value):
            errors[limit.name] = refusal
        else:
            values[limit.name] = value
    return values, errors


def _value_of(limit: Parameter, typed: str) -> Any:
    if limit.names:
        names = typed[:LONGEST_NAMES].replace("\x00", "").replace(",", "\n").split("\n")
        return [name.strip() for name in names if name.strip()]
    try:
        number = float(typed)
    except ValueError:
        return typed
    # `float` takes “1_0” for ten, which nobody means.
    if "_" in typed or not math.isfinite(number):
        return typed
    return int(number) if limit.is_whole and number.is_integer() else number


def fields_of(
    check: Check,
    *,
    current: Check,
    typed: Mapping[str, str],
    errors: Mapping[str, str],
) -> list[ParameterField]:
    """The fields of `check`; `current` is the key that counts, `typed` wins over both."""
    here = current.parameters
    values = check.parameters
    return [
        ParameterField(
            name=limit.name,
            label=limit.label,
            value=typed.get(
                limit.name, _as_typed(here.get(limit.name, values[limit.name]))
            ),
            current=_as_typed(here[limit.name]) if limit.name in here else "",
            allowed=range_in_words(limit),
            is_names=limit.names,
            step="1" if limit.is_whole else "any",
            low=f"{limit.low:g}",
            high=f"{limit.high:g}",
            error=errors.get(limit.name, ""),
        )
        for limit in check.limits
    ]


def _as_typed(value: Any) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(value)
    return f"{value:.12g}" if isinstance(value, float) else str(value)
