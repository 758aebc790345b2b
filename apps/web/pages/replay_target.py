"""What the page of one target needs: its form, key, history, and what it ran."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from django.conf import settings

from apps.accounts.permissions import Permission
from apps.engine.replay.run import TargetKind
from apps.replays.allowed import sends_in_clear
from apps.replays.models import Batch, Target, TargetVersion
from apps.replays.queries import batches_of_target, target_rows, version_history
from apps.web.access import Place
from apps.web.pages.replay_isolation import Isolation, isolation_here
from apps.web.pages.replay_targets import (
    IN_THE_SANDBOX,
    KindLine,
    TargetLine,
    kind_lines,
    points_at,
    target_line,
)
from apps.web.replay_target_forms import EXPLAINED, TargetForm


class VersionLine(msgspec.Struct, frozen=True):
    """One version with what it changed, and whether it counts now."""

    row: TargetVersion
    changes: str
    is_current: bool


class NewTargetPage(msgspec.Struct, frozen=True):
    """The form of a new target of one kind."""

    place: Place
    form: TargetForm
    kinds: list[KindLine]
    explained: str
    notes: list[str]
    isolation: Isolation | None
    may_seal: bool


class TargetPage(msgspec.Struct, frozen=True):
    """One target with the form of what it is set to."""

    place: Place
    line: TargetLine
    form: TargetForm
    explained: str
    notes: list[str]
    history: list[VersionLine]
    batches: list[Batch]
    isolation: Isolation | None
    may_seal: bool
    refusal: str

    @property
    def target(self) -> Target:
        """The target itself."""
        return self.line.target


def new_target_page(place: Place, form: TargetForm) -> NewTargetPage:
    """The form of a new target."""
    return NewTargetPage(
        place=place,
        form=form,
        kinds=kind_lines(),
        explained=EXPLAINED[form.kind],
        notes=notes_on(form.kind),
        isolation=isolation_here() if form.kind in IN_THE_SANDBOX else None,
        may_seal=bool(settings.REPLAY_KEYS),
    )


def target_page(
    place: Place, target: Target, form: TargetForm, now: datetime
) -> TargetPage:
    """One target. A fixed number of queries."""
    kind = TargetKind(target.kind)
    row = target_rows(Target.objects.filter(pk=target.pk))[0]
    return TargetPage(
        place=place,
        line=target_line(row, now),
        form=form,
        explained=EXPLAINED[kind],
        notes=[*notes_on(kind), *_in_clear(row.version.settings)],
        history=_history(target),
        batches=batches_of_target(target),
        isolation=isolation_here() if kind in IN_THE_SANDBOX else None,
        may_seal=bool(settings.REPLAY_KEYS),
        refusal=place.refusal(Permission.MANAGE_TARGETS),
    )


def _in_clear(of_target: dict[str, Any]) -> list[str]:
    if not sends_in_clear(of_target):
        return []
    return [
        "It is called over plain http: whoever is on the way can read its key, the "
        "prompts and the answers."
    ]


def notes_on(kind: TargetKind) -> list[str]:
    """What a person should know before a target of this kind is used."""
    if kind is TargetKind.OPENAI:
        return [
            "Temperature 0 is asked for and not promised: most providers answer the same "
            "request differently now and then. The runs show how often.",
            "What is sent to the endpoint leaves this site: the frozen prompt, messages "
            "and recorded tool results of the cases that are run.",
        ]
    if kind is TargetKind.HTTP:
        said = [
            "Whether the agent has other tools than those it is handed cannot be seen "
            "from here: “real calls 0” is what the harness could see."
        ]
        if not settings.REPLAY_STUB_URL:
            said.append(
                "This site does not know under which address agents elsewhere reach it. "
                "The operator sets EVALSITE_REPLAY_STUB_URL; until then the tools of an "
                "HTTP agent cannot be answered."
            )
        return said
    if kind in IN_THE_SANDBOX:
        return [
            "It reaches no network but the model named here, and only through the "
            "harness. What it tries beside that is written down with the step it came at."
        ]
    return []


def _history(target: Target) -> list[VersionLine]:
    rows = version_history(target)
    lines = []
    for place, row in enumerate(rows):
        before = rows[place + 1].settings if place + 1 < len(rows) else None
        is_first = row.number == 1
        said = (
            points_at(target.kind, row.settings)
            if before is None and is_first
            else _changes(before or {}, row.settings)
        )
        lines.append(VersionLine(row=row, changes=said, is_current=place == 0))
    return lines


def _changes(before: dict[str, Any], after: dict[str, Any]) -> str:
    names = sorted({*before, *after})
    said = [
        f"{name.replace('_', ' ')}: {_shown(before.get(name))} → {_shown(after.get(name))}"
        for name in names
        if before.get(name) != after.get(name)
    ]
    return "; ".join(said) or "nothing"


def _shown(value: Any) -> str:
    if value in (None, "", [], {}):
        return "none"
    plain = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return plain if len(plain) <= 120 else f"{plain[:119]}…"
