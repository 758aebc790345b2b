"""All checks, in the order in which people see them. A new check is one line here."""

from __future__ import annotations

from typing import Final

from apps.engine.check import Check
from apps.engine.checks.missing_usage import MissingUsage
from apps.engine.checks.output_decay import OutputDecay
from apps.engine.checks.tool_drift import ToolDrift

CHECKS: Final[tuple[Check, ...]] = (OutputDecay(), ToolDrift(), MissingUsage())

_BY_SLUG: Final = {check.slug: check for check in CHECKS}


def by_slug(slug: str) -> Check:
    """The registered check called `slug`; raises `KeyError` if there is none."""
    return _BY_SLUG[slug]
