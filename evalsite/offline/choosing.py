"""Which checks a command runs, and with which parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from apps.engine.check import Check, configured
from apps.engine.checks import CHECKS


def chosen_checks(
    *,
    only: Sequence[str] = (),
    skipped: Sequence[str] = (),
    changes: Sequence[str] = (),
) -> tuple[Check, ...]:
    """Return the checks to run, in the order in which people see them.

    `only` and `skipped` are slugs; without `only` all run. `changes` are texts such as
    "output-decay.min_calls=6"; of two for one parameter the last counts, and a list of
    names is separated by commas. Raises `ValueError` with a sentence for a check or a
    parameter that does not exist, a value that it may not take, a change of a check
    that does not run, and when no check is left.
    """
    for slug in (*only, *skipped):
        _known(slug)
    checks = [
        check
        for check in CHECKS
        if (not only or check.slug in only) and check.slug not in skipped
    ]
    if not checks:
        raise ValueError("No check is left to run.")
    values: dict[str, dict[str, Any]] = {}
    for change in changes:
        slug, name, value = _change(change)
        if slug not in {check.slug for check in checks}:
            raise ValueError(f"--set {change}: the check {slug} does not run.")
        values.setdefault(slug, {})[name] = value
    return tuple([configured(check, values.get(check.slug, {})) for check in checks])


def _known(slug: str) -> Check:
    for check in CHECKS:
        if check.slug == slug:
            return check
    known = ", ".join(check.slug for check in CHECKS)
    raise ValueError(f"There is no check “{slug}”. There are: {known}.")


def _change(text: str) -> tuple[str, str, Any]:
    place, is_given, value = text.partition("=")
    slug, is_dotted, name = place.strip().partition(".")
    if not (is_given and is_dotted):
        raise ValueError(
            f"“{text}” is no change of a parameter. Write --set CHECK.PARAMETER=VALUE, "
            "such as --set output-decay.min_calls=6."
        )
    limits = {limit.name: limit for limit in _known(slug).limits}
    if name in limits and limits[name].names:
        return slug, name, [word.strip() for word in value.split(",") if word.strip()]
    return slug, name, _number(value)


def _number(text: str) -> Any:
    """The number that a text writes; anything else stays a text, which is refused."""
    try:
        value = msgspec.json.decode(text.strip(), type=int | float)
    except msgspec.DecodeError:
        return text
    return value if math.isfinite(value) else text
