"""The versions of what is asked, of an agent or of outcomes, and what each changed."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from apps.agents.changes import changes_between
from apps.agents.models import AgentDefinition, OutcomeDefinition


class Version(msgspec.Struct, frozen=True):
    """One version of what is asked, and what it changed."""

    row: AgentDefinition | OutcomeDefinition
    changes: list[str]
    is_current: bool


def asked_versions(
    history: Sequence[AgentDefinition] | Sequence[OutcomeDefinition],
) -> list[Version]:
    """The versions, newest first as they are given, each with what it changed."""
    rows: list[AgentDefinition | OutcomeDefinition] = list(history)
    befores = [*rows[1:], None][: len(rows)]
    return [
        Version(
            row=row,
            changes=changes_between(
                (None, []) if before is None else (before.decision, before.held),
                (row.decision, row.held),
                name="name" if isinstance(row, AgentDefinition) else "task",
            ).sentences
            or ["nothing is asked"],
            is_current=at == 0,
        )
        for at, (row, before) in enumerate(zip(rows, befores, strict=True))
    ]
