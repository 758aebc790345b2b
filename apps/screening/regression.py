"""Regression cases: traces, kept whole, on which a check must keep quiet.

A case is made of a signal that a reviewer dismissed. It fails under a key that gives a
review signal on its scope; telemetry is no failure. The trace is kept in our own format,
compressed, as it was stored: without bodies where the project keeps none.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import msgspec
import zstandard
from django.core.cache import cache
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from apps.engine.check import Check
from apps.engine.formats.evalsite_jsonl import trace_of
from apps.engine.formats.evalsite_writer import dump
from apps.engine.trace import Trace as EngineTrace
from apps.screening.answering import answers_of, scope_of
from apps.screening.lineup import key_of
from apps.screening.models import RegressionCase
from apps.screening.operations import is_review_signal

logger = logging.getLogger(__name__)

_MAX_CONTENT = 1024**3
_KEPT_SECONDS = 24 * 3600

UNREADABLE = (
    "The kept trace of this case is damaged and cannot be read. Retire the case; it can "
    "be made again from its signal."
)


class NewCase(msgspec.Struct, frozen=True):
    """What a case is made of: the dismissed signal, in plain values."""

    check_slug: str
    name: str
    scope: str
    headline: str
    reason: str
    note: str
    signal_id: int
    trace_id: int


class Failure(msgspec.Struct, frozen=True):
    """A case on which a key gives a review signal, and what it says there."""

    case_id: int
    name: str
    trace_id: int | None
    headline: str


def frozen(trace: EngineTrace) -> bytes:
    """A trace as a case keeps it."""
    return zstandard.ZstdCompressor(level=10).compress(dump(trace))


def thawed(content: bytes) -> EngineTrace:
    """The trace of a case: every check says of it what it said of the stored one."""
    raw = zstandard.ZstdDecompressor().decompress(content, max_output_size=_MAX_CONTENT)
    return trace_of(msgspec.json.decode(raw))


def make_case(
    *,
    project_id: int,
    new: NewCase,
    trace: EngineTrace,
    user_id: int | None,
    now: datetime,
) -> tuple[RegressionCase, bool]:
    """Keep a case; the case, and whether it is new. One signal is one case."""
    try:
        with transaction.atomic():
            case = RegressionCase.objects.create(
                project_id=project_id,
                check_slug=new.check_slug,
                name=new.name[:120],
                scope=new.scope,
                headline=new.headline,
                reason=new.reason,
                note=new.note,
                content=frozen(trace),
                signal_id=new.signal_id,
                trace_id=new.trace_id,
                created_by_id=user_id,
                created_at=now,
            )
    except IntegrityError:
        found = RegressionCase.objects.get(
            project_id=project_id, signal_id=new.signal_id, retired_at=None
        )
        return found, False
    return case, True


def rename_case(*, case: RegressionCase, name: str) -> None:
    """Give a case another name."""
    RegressionCase.objects.filter(pk=case.pk).update(name=name[:120])


def retire_case(*, case: RegressionCase, now: datetime) -> bool:
    """Stop running a case; it stays in the list. Whether it was run until now."""
    rows = RegressionCase.objects.filter(pk=case.pk, retired_at=None)
    return rows.update(retired_at=now) == 1


def restore_case(*, case: RegressionCase) -> bool:
    """Run a retired case again; whether that was possible.

    It is not when another case was made of the same signal meanwhile.
    """
    try:
        with transaction.atomic():
            rows = RegressionCase.objects.filter(pk=case.pk)
            return rows.exclude(retired_at=None).update(retired_at=None) == 1
    except IntegrityError:
        return False


def cases_of(project_id: int, *, slug: str = "") -> QuerySet[RegressionCase]:
    """The cases of a project, or of one check, oldest first; without their traces."""
    rows = RegressionCase.objects.filter(project_id=project_id).defer("content")
    return (rows.filter(check_slug=slug) if slug else rows).order_by("pk")


def case_of_signal(*, project_id: int, signal_id: int) -> RegressionCase | None:
    """The case that was made of a signal and is still run, or None."""
    rows = cases_of(project_id).filter(signal_id=signal_id, retired_at=None)
    return rows.first()


def run_cases(*, project_id: int, check: Check) -> list[Failure]:
    """The cases of a check that fail under this key, by age; empty when none does.

    Retired cases are not run. What a key says of a case never changes, so it is
    remembered.
    """
    rows = cases_of(project_id, slug=check.slug).filter(retired_at=None)
    return [
        Failure(case.pk, case.name, case.trace_id, said)
        for case in rows
        if (said := said_of(case, check))
    ]


def said_of(case: RegressionCase, check: Check) -> str:
    """The headline of the review signal that a key gives on a case; empty if quiet.

    `UNREADABLE` where the kept trace is damaged.
    """
    key = _cache_key(case, check)
    known: Any = cache.get(key)
    if isinstance(known, str):
        return known
    content = RegressionCase.objects.values_list("content", flat=True).get(pk=case.pk)
    try:
        trace = thawed(bytes(content))
    except Exception:
        # Nobody can say that the check keeps quiet here, so it stands in the way.
        logger.exception("The regression case %s cannot be read", case.pk)
        return UNREADABLE
    said = _headline(case.scope, check, trace)
    cache.set(key, said, _KEPT_SECONDS)
    return said


def _cache_key(case: RegressionCase, check: Check) -> str:
    slug, version, parameters = key_of(check)
    # Ids are used again in tests and after a restore; the moment tells them apart.
    made = int(case.created_at.timestamp() * 1000)
    return f"case-{case.pk}-{made}-{slug}-{version}-{parameters}"


def _headline(scope: str, check: Check, trace: EngineTrace) -> str:
    for answer in answers_of(check, trace):
        if is_review_signal(answer) and scope_of(answer) == scope:
            return answer.headline
    return ""
