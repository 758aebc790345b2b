"""What a project defines as checks of its own: written, changed, paused, read.

Rows are only added. The row with the largest number of a slug is current; the version
grows when what is asked does change, so that answers of different questions are never
counted together.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.text import slugify

from apps.engine.agent_contracts import Unread
from apps.engine.check import Check
from apps.engine.contracts import BadDefinition, definition_check
from apps.engine.contracts.definitions import LONGEST_SLUG
from apps.screening.models import Definition, DefinitionState

RESERVED_SLUGS = frozenset({"new"})
MOST_DEFINITIONS = 100
"""Definitions of one project that are not retired: each answers about every trace."""


class DefinedMeanwhile(Exception):
    """Somebody else changed the definition at the same time; the message says so."""


class Wanted(msgspec.Struct, frozen=True):
    """What somebody wants to define. `spec` is a JSON value as the engine decodes it."""

    kind: str
    label: str
    spec: dict[str, Any]


def check_of(wanted: Wanted, *, slug: str, version: int) -> Check:
    """The check that this would be; raises `BadDefinition` with field and sentence."""
    return definition_check(
        kind=wanted.kind,
        slug=slug,
        label=wanted.label,
        version=version,
        spec=wanted.spec,
    )


def unread_because(row: Definition, error: BadDefinition) -> Unread:
    """A stored definition that this version cannot read, for the sentence of it."""
    what = f"{row.get_kind_display()} “{row.label}” (version {row.number})"
    return Unread(
        f"{what}, a check of its own,", error.field, str(error), stored=row.spec
    )


def slug_from(label: str) -> str:
    """A short name out of a label; raises `BadDefinition` where nothing is left of it."""
    slug = slugify(label)[:LONGEST_SLUG].strip("-").replace("_", "-")
    slug = "-".join(part for part in slug.split("-") if part)
    if not slug or slug in RESERVED_SLUGS:
        raise BadDefinition(
            "Choose a name with a few letters in it; it becomes the address.",
            field="label",
        )
    return slug


def current_definition(*, project_id: int, slug: str) -> Definition | None:
    """The newest row of a definition, whatever its state."""
    return history_of(project_id=project_id, slug=slug).first()


def history_of(*, project_id: int, slug: str) -> QuerySet[Definition]:
    """All rows of a definition, the newest first."""
    rows = Definition.objects.filter(project_id=project_id, slug=slug)
    return rows.select_related("created_by").order_by("-number")


def definitions_of(project_id: int) -> list[Definition]:
    """The newest row of every definition of the project, retired ones at the end."""
    rows = (
        Definition.objects.filter(project_id=project_id)
        .order_by("slug", "-number")
        .distinct("slug")
    )
    return sorted(
        rows, key=lambda row: (row.state == DefinitionState.RETIRED, row.label.lower())
    )


def define(
    *, project_id: int, wanted: Wanted, user_id: int | None, now: datetime
) -> Definition:
    """A new definition, active from now on.

    Raises `BadDefinition` where it cannot be checked or its name is taken.
    """
    slug = slug_from(wanted.label)
    check = check_of(wanted, slug=slug, version=1)
    if len(_not_retired(project_id)) >= MOST_DEFINITIONS:
        raise BadDefinition(
            f"A project may have {MOST_DEFINITIONS} definitions; retire one first."
        )
    taken = BadDefinition(
        "A definition with this name is there already, maybe a retired one.",
        field="label",
    )
    if current_definition(project_id=project_id, slug=slug) is not None:
        raise taken
    row = Definition(
        project_id=project_id,
        kind=wanted.kind,
        slug=slug,
        number=1,
        version=1,
        label=wanted.label,
        spec=_stored(check),
        created_by_id=user_id,
        created_at=now,
    )
    if not _added(row):
        raise taken
    return row


def redefine(
    *,
    current: Definition,
    wanted: Wanted,
    user_id: int | None,
    now: datetime,
) -> Definition:
    """Another name or another question for a definition; its short name stays.

    The version grows only with another question. Nothing is written where nothing
    changes. Raises `BadDefinition`, and `DefinedMeanwhile` where `current` is not the
    newest row any more.
    """
    version = current.version
    check = check_of(wanted, slug=current.slug, version=version)
    spec = _stored(check)
    if spec == current.spec and wanted.label == current.label:
        return current
    return _follow(
        current,
        label=wanted.label,
        spec=spec,
        version=version + (spec != current.spec),
        user_id=user_id,
        now=now,
    )


def set_state(
    *,
    current: Definition,
    state: DefinitionState,
    user_id: int | None,
    now: datetime,
) -> Definition:
    """Pause a definition, let it go on, or retire it; nothing is written twice.

    Raises `DefinedMeanwhile` where `current` is not the newest row any more.
    """
    if state == current.state:
        return current
    return _follow(current, state=state, user_id=user_id, now=now)


def _follow(
    current: Definition, *, user_id: int | None, now: datetime, **changed: Any
) -> Definition:
    """The row after `current`, with what changed."""
    fields = {
        "label": current.label,
        "spec": current.spec,
        "version": current.version,
        "state": current.state,
    } | changed
    row = Definition(
        project_id=current.project_id,
        kind=current.kind,
        slug=current.slug,
        number=current.number + 1,
        created_by_id=user_id,
        created_at=now,
        **fields,
    )
    if not _added(row):
        raise DefinedMeanwhile(
            "Somebody changed this definition at the same time. Look at it again first."
        )
    return row


def _added(row: Definition) -> bool:
    """Add a row unless its number is taken."""
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        return False
    return True


def _stored(check: Check) -> dict[str, Any]:
    """The spec as it is stored: in the one encoding of the engine."""
    (spec,) = check.parameters.values()
    stored: dict[str, Any] = spec
    return stored


def _not_retired(project_id: int) -> list[Definition]:
    return [
        row
        for row in definitions_of(project_id)
        if row.state != DefinitionState.RETIRED
    ]
