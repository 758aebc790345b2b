"""The line-up of a project: which key of each check is current there, and if it queues.

A key is a version with its parameters. Answers of any key may be stored; those of
current keys are what lists, counts and the queue are about.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any

import msgspec
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.fields.json import KeyTextTransform

from apps.engine.check import Check, configured
from apps.engine.checks import CHECKS, versions_of
from apps.engine.checks.error_rate_shift import ErrorRateShift
from apps.engine.checks.latency_shift import LatencyShift
from apps.engine.contracts import BadDefinition, definition_check
from apps.engine.nulls import ErrorBaseline, LatencyBaseline
from apps.screening.models import (
    Adoption,
    CheckState,
    Definition,
    DefinitionState,
)
from apps.traces.models import TraceSet

CheckKey = tuple[str, int, str]
"""A version of a check with its parameters: slug, version, hash of the parameters."""


def parameters_hash(check: Check) -> str:
    """A short stable name for the parameters of a check."""
    encoded = msgspec.json.encode(check.parameters, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:16]


def key_of(check: Check) -> CheckKey:
    """The key under which the answers of `check` are stored."""
    return check.slug, check.version, parameters_hash(check)


class Entry(msgspec.Struct, frozen=True):
    """One check of a line-up; a paused one answers, but nothing of it is queued.

    `defined_slug` is that of the definition by which the project wrote it, which the
    addresses of its page hold, and "" for a check that comes with Evalsite. `gave_way`
    says, as a sentence, what was adopted and cannot count in this release, or is "".
    """

    check: Check
    key: CheckKey
    is_paused: bool = False
    defined_slug: str = ""
    gave_way: str = ""

    @property
    def is_defined_here(self) -> bool:
        """Whether the project wrote it."""
        return bool(self.defined_slug)


class LineUp:
    """The checks of one project, in the order in which people see them."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = tuple(entries)

    @cached_property
    def checks(self) -> tuple[Check, ...]:
        """Every check that answers about a new trace."""
        return tuple(entry.check for entry in self.entries)

    @cached_property
    def by_slug(self) -> dict[str, Entry]:
        """The entries by the slug of their check."""
        return {entry.check.slug: entry for entry in self.entries}

    @cached_property
    def labels(self) -> dict[str, str]:
        """The labels of the checks by slug."""
        return {entry.check.slug: entry.check.label for entry in self.entries}

    @cached_property
    def queueing(self) -> frozenset[CheckKey]:
        """The keys whose review signals are queued."""
        return frozenset(entry.key for entry in self.entries if not entry.is_paused)

    @cached_property
    def name(self) -> str:
        """16 hexadecimal digits that change with what is to be answered or queued."""
        keys = sorted((*entry.key, entry.is_paused) for entry in self.entries)
        return hashlib.sha256(msgspec.json.encode(keys)).hexdigest()[:16]

    def current(self, prefix: str = "") -> Q:
        """The condition that an answer is one of a current key.

        `prefix` is the path to the screening, such as `screening__`.
        """
        condition = Q(pk__in=[])
        for slug, version, parameters in (entry.key for entry in self.entries):
            condition |= Q(
                **{
                    f"{prefix}check_slug": slug,
                    f"{prefix}check_version": version,
                    f"{prefix}parameters_hash": parameters,
                }
            )
        return condition


def current_adoptions(project_id: int) -> dict[str, Adoption]:
    """The last adoption of each check of the project."""
    rows = (
        Adoption.objects.filter(project_id=project_id)
        .order_by("check_slug", "-number")
        .distinct("check_slug")
    )
    return {row.check_slug: row for row in rows}


def current_definitions(project_id: int) -> list[Definition]:
    """The newest row of each definition that is not retired, by slug."""
    rows = (
        Definition.objects.filter(project_id=project_id)
        .order_by("slug", "-number")
        .distinct("slug")
    )
    return [row for row in rows if row.state != DefinitionState.RETIRED]


def lineup_of(project_id: int) -> LineUp:
    """The line-up of a project: three queries.

    A check without an adoption counts in its newest version; a version that is no
    longer registered gives way to the newest one.
    """
    adopted = current_adoptions(project_id)
    baseline = _baseline_of(project_id)
    entries = [
        _entry(compared_with(check, baseline), adopted.get(check.slug))
        for check in CHECKS
    ]
    defined = map(_defined, current_definitions(project_id))
    entries += [entry for entry in defined if entry is not None]
    return LineUp(entries)


def _entry(newest: Check, adopted: Adoption | None) -> Entry:
    check = _adopted_check(newest, adopted) if adopted else newest
    return Entry(
        check,
        key_of(check),
        is_paused=adopted is not None and adopted.state == CheckState.PAUSED,
        gave_way=_gave_way(check, adopted) if adopted else "",
    )


def _gave_way(check: Check, adopted: Adoption) -> str:
    """What was adopted and does not count, with what counts instead; "" if all does."""
    if adopted.check_version != check.version:
        return (
            f"Version {adopted.check_version} was adopted and is not part of this "
            f"release of Evalsite: version {check.version} counts instead, with the "
            "parameters it comes with. Adopt what shall count."
        )
    counting = msgspec.to_builtins(check.parameters)
    if not isinstance(adopted.parameters, dict):
        lost = ["all of them"]
    else:
        lost = [
            f"“{name}”"
            for name, value in adopted.parameters.items()
            if name not in counting or counting[name] != value
        ]
    if not lost:
        return ""
    return (
        "Parameters that were adopted cannot be used by this release of Evalsite "
        f"({', '.join(lost)}): those shown here count instead. Adopt what shall count."
    )


def _adopted_check(newest: Check, adopted: Adoption) -> Check:
    if newest.version == adopted.check_version:
        return with_stored_parameters(newest, adopted.parameters)
    for check in versions_of(newest.slug):
        if check.version == adopted.check_version:
            return with_stored_parameters(check, adopted.parameters)
    return newest


class Baseline(msgspec.Struct, frozen=True):
    """What the checks that compare with a baseline set read of it."""

    name: str
    key: str
    latencies: LatencyBaseline
    failures: ErrorBaseline


def _baseline_of(project_id: int) -> Baseline | None:
    found = (
        TraceSet.objects.filter(
            project_id=project_id, is_baseline=True, baseline__has_key="key"
        )
        .values_list("pk", "name", KeyTextTransform("key", "baseline"))
        .first()
    )
    if found is None:
        return None
    set_id, name, key = found
    try:
        return msgspec.structs.replace(_figures_of(set_id, key), name=name)
    except TraceSet.DoesNotExist:
        # It was computed again or removed since the line before.
        return None
    except (msgspec.ValidationError, LookupError, TypeError):
        # Computed by a release that kept other figures: the page of the set makes anew.
        return None


@lru_cache(maxsize=8)
def _figures_of(set_id: int, key: str) -> Baseline:
    """The figures of a baseline, which may be long: read once per process and key.

    Raises `TraceSet.DoesNotExist`, which is not kept.
    """
    row = TraceSet.objects.get(pk=set_id, baseline__key=key)
    kept: dict[str, Any] = row.baseline or {}
    return Baseline(
        name=row.name,
        key=key,
        latencies=msgspec.convert(kept["latencies"], LatencyBaseline),
        failures=msgspec.convert(kept["failures"], ErrorBaseline),
    )


def compared_with(check: Check, baseline: Baseline | None) -> Check:
    """`check` with the baseline set that it compares with; others as they are."""
    if baseline is None:
        return check
    given: dict[str, Any] = {
        "baseline_name": baseline.name,
        "baseline_key": baseline.key,
    }
    if isinstance(check, LatencyShift):
        return replace(check, baseline=baseline.latencies, **given)
    if isinstance(check, ErrorRateShift):
        return replace(check, baseline=baseline.failures, **given)
    return check


def with_stored_parameters(check: Check, parameters: Any) -> Check:
    """`check` with parameters out of a row; those that it has no more are left out.

    What is stored and is no object of them gives none.
    """
    if not isinstance(parameters, dict):
        return check
    known = {limit.name for limit in check.limits}
    kept = {name: value for name, value in parameters.items() if name in known}
    try:
        return configured(check, kept)
    except (ValueError, TypeError):
        # Its limits are narrower now than when this was adopted.
        return check


def _defined(row: Definition) -> Entry | None:
    try:
        check = definition_check(
            kind=row.kind,
            slug=row.slug,
            label=row.label,
            version=row.version,
            spec=row.spec,
        )
    except BadDefinition:
        # Stored by a release that took it: its page says why it is not checked.
        return None
    return Entry(
        check,
        key_of(check),
        is_paused=row.state == DefinitionState.PAUSED,
        defined_slug=row.slug,
    )


def pin_new_checks(*, project_id: int, now: datetime) -> LineUp:
    """Hold on to the newest version of every check that has no adoption yet.

    A later release then changes nothing in the project until somebody adopts it. Safe
    to run twice and at the same time.
    """
    adopted = current_adoptions(project_id)
    new = [check for check in CHECKS if check.slug not in adopted]
    rows = [
        Adoption(
            project_id=project_id,
            check_slug=check.slug,
            number=1,
            check_version=check.version,
            parameters=msgspec.to_builtins(check.parameters),
            parameters_hash=parameters_hash(check),
            adopted_at=now,
        )
        for check in new
    ]
    if rows:
        Adoption.objects.bulk_create(rows, ignore_conflicts=True)
    return lineup_of(project_id)


class Choice(msgspec.Struct, frozen=True):
    """Which key of a check somebody wants to count, and why."""

    check: Check
    state: CheckState = CheckState.ACTIVE
    note: str = ""


class AdoptedMeanwhile(Exception):
    """Somebody else changed the line-up of this check at the same time."""


def adopt(
    *, project_id: int, choice: Choice, user_id: int | None, now: datetime
) -> Adoption:
    """Make this key of a check current in the project; what is queued is not touched.

    Raises `AdoptedMeanwhile` when the line-up of the check changed at the same time.
    """
    check = choice.check
    last = (
        Adoption.objects.filter(project_id=project_id, check_slug=check.slug)
        .order_by("-number")
        .first()
    )
    try:
        with transaction.atomic():
            return Adoption.objects.create(
                project_id=project_id,
                check_slug=check.slug,
                number=last.number + 1 if last else 1,
                check_version=check.version,
                parameters=msgspec.to_builtins(check.parameters),
                parameters_hash=parameters_hash(check),
                state=choice.state,
                note=choice.note,
                adopted_by_id=user_id,
                adopted_at=now,
            )
    except IntegrityError:
        raise AdoptedMeanwhile(
            "Somebody changed this check at the same time. Look at it again first."
        ) from None
