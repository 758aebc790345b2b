"""What the list of targets needs: each with what it points at and whether it has a key."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from apps.accounts.permissions import Permission
from apps.engine.replay.run import TargetKind
from apps.replays.models import Target
from apps.replays.queries import TargetRow, target_rows, targets_of
from apps.web.access import Place
from apps.web.numbers import whole
from apps.web.pages.replay_isolation import Isolation, isolation_here
from apps.web.replay_target_forms import EXPLAINED, KINDS, WITH_KEY

ON_A_PAGE: Final = 100
MOST_RETIRED: Final = 200
IN_THE_SANDBOX: Final = frozenset({TargetKind.CALLABLE, TargetKind.COMMAND})


class TargetLine(msgspec.Struct, frozen=True):
    """One target of the list."""

    row: TargetRow
    kind: str
    points_at: str
    takes_key: bool
    paused_until: datetime | None

    @property
    def target(self) -> Target:
        """The target itself."""
        return self.row.target


class KindLine(msgspec.Struct, frozen=True):
    """A kind that a target may be of, in words; `missing` says why it cannot be yet."""

    code: str
    label: str
    explained: str


class TargetsPage(msgspec.Struct, frozen=True):
    """The targets of a project, the kinds there are, and the isolation reached here."""

    place: Place
    lines: list[TargetLine]
    retired: list[TargetLine]
    kinds: list[KindLine]
    isolation: Isolation
    refusal: str
    next_url: str
    first_url: str


def points_at(kind: str, settings: Mapping[str, Any]) -> str:
    """What a target points at: its model and address, its callable or its command."""
    asks = ""
    if settings.get("base_url"):
        asks = f"{settings.get('model') or 'a model'} at {settings['base_url']}"
    if kind == TargetKind.OPENAI:
        return asks
    if kind == TargetKind.HTTP:
        return str(settings.get("url", ""))
    if kind == TargetKind.RECORDED:
        return "its trials in the traces"
    own = " ".join(
        [
            str(settings.get("callable", "") or settings.get("command", "")),
            *settings.get("arguments", ()),
        ]
    )
    return f"{own}, which may ask {asks}" if asks else own


def target_line(row: TargetRow, now: datetime) -> TargetLine:
    """A target as lists show it."""
    kind = TargetKind(row.target.kind)
    until = row.target.paused_until
    return TargetLine(
        row=row,
        kind=KINDS[kind],
        points_at=points_at(kind, row.version.settings),
        takes_key=kind in WITH_KEY,
        paused_until=until if until is not None and until > now else None,
    )


def targets_page(place: Place, query: Mapping[str, str], now: datetime) -> TargetsPage:
    """The targets of a project: those in use, and retired ones apart."""
    start = whole(query.get("from", "")) or 0
    rows = targets_of(place.project.pk)
    used = target_rows(rows.filter(is_retired=False)[start : start + ON_A_PAGE + 1])
    put_away = target_rows(rows.filter(is_retired=True)[:MOST_RETIRED])
    more = len(used) > ON_A_PAGE
    return TargetsPage(
        place=place,
        lines=[target_line(row, now) for row in used[:ON_A_PAGE]],
        retired=[target_line(row, now) for row in put_away],
        kinds=kind_lines(),
        isolation=isolation_here(),
        refusal=place.refusal(Permission.MANAGE_TARGETS),
        next_url=f"?from={start + ON_A_PAGE}" if more else "",
        first_url="?" if start else "",
    )


def kind_lines() -> list[KindLine]:
    """The kinds of targets with what each of them means."""
    return [KindLine(one.value, KINDS[one], EXPLAINED[one]) for one in KINDS]
