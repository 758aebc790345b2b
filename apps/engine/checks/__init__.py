"""All checks, in the order in which people see them. A new check is one line here."""

from __future__ import annotations

from typing import Final

from apps.engine.check import Check
from apps.engine.checks.duplicate_calls import DuplicateCalls
from apps.engine.checks.error_rate_shift import ErrorRateShift
from apps.engine.checks.error_streak import ErrorStreak
from apps.engine.checks.final_answer import FinalAnswerCheck
from apps.engine.checks.handoff_ping_pong import HandoffPingPong
from apps.engine.checks.input_growth import InputGrowth
from apps.engine.checks.latency_shift import LatencyShift
from apps.engine.checks.missing_usage import MissingUsage
from apps.engine.checks.no_progress import NoProgress
from apps.engine.checks.no_self_check import NoSelfCheck
from apps.engine.checks.output_decay import OutputDecay
from apps.engine.checks.repeated_call import RepeatedCall
from apps.engine.checks.repeated_side_effect import RepeatedSideEffect
from apps.engine.checks.retry_storm import RetryStorm
from apps.engine.checks.single_tool import SingleTool
from apps.engine.checks.tool_drift import ToolDrift
from apps.engine.checks.tool_not_offered import ToolNotOffered
from apps.engine.checks.truncation import Truncation
from apps.engine.checks.unsupported_claim import UnsupportedClaim
from apps.engine.checks.unused_result import UnusedResult

CHECKS: Final[tuple[Check, ...]] = (
    OutputDecay(),
    ToolDrift(),
    RepeatedCall(),
    NoProgress(),
    RepeatedSideEffect(),
    ErrorStreak(),
    RetryStorm(),
    Truncation(),
    ToolNotOffered(),
    HandoffPingPong(),
    FinalAnswerCheck(),
    UnsupportedClaim(),
    LatencyShift(),
    ErrorRateShift(),
    DuplicateCalls(),
    UnusedResult(),
    InputGrowth(),
    SingleTool(),
    NoSelfCheck(),
    MissingUsage(),
)

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
