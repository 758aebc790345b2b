"""All checks, in the order in which people see them. A new check is one line here."""

from __future__ import annotations

from typing import Final

from apps.engine.check import Check
from apps.engine.checks.missing_usage import MissingUsage
from apps.engine.checks.output_decay import OutputDecay
from apps.engine.checks.tool_drift import ToolDrift

CHECKS: Final[tuple[Check, ...]] = (OutputDecay(), ToolDrift(), MissingUsage())

OLDER: Final[tuple[Check, ...]] = ()
"""Versions before the newest that a project may still hold on to."""

_BY_SLUG: Final = {check.slug: check for check in CHECKS}


def by_slug(slug: str) -> Check:
    """The newest version of the check called `slug`; raises `KeyError` without one."""
    return _BY_SLUG[slug]


def versions_of(slug: str) -> tuple[Check, ...]:
    """Every registered version of the check called `slug`, the newest first."""
    found = [check for check in (*CHECKS, *OLDER) if check.slug == slug]
    return tuple(sorted(found, key=lambda check: -check.version))
