"""How far the scoring of a project is, so that nothing unfinished is told as final."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import msgspec
from django.db.models import Exists, OuterRef

from apps.engine.agent_contracts import BadDefinition
from apps.engine.contracts.fact_spec import FactSpec, decoded_fact
from apps.engine.contracts.spec import decoded_contract
from apps.scoring.definitions import ProjectAsked, asked_in
from apps.scoring.models import StaleTask, StaleTrace
from apps.scoring.operations import has_stale
from apps.screening.definitions import unread_because
from apps.screening.lineup import current_definitions
from apps.screening.models import DefinitionKind
from apps.traces.behind import behind_count
from apps.verdicts.models import ProjectVerdict


class Progress:
    """How far scoring is: what is asked, how many traces are left, what was settled."""

    def __init__(self, project_id: int) -> None:
        """Five queries, however large the project; what was settled is one more."""
        self._project_id = project_id
        self.asked = asked_at_present(project_id)
        self.left = behind_count(project_id, self.asked.name, work="scored_as")

    @cached_property
    def is_behind(self) -> bool:
        """Whether traces, tasks or verdicts wait. Where no trace was ever scored none do."""
        if self.left:
            return True
        if self._row is None:
            return has_stale(self._project_id)
        return bool(self._row.is_noted) or self._row.settled_as != self.asked.name

    @property
    def verdict(self) -> ProjectVerdict | None:
        """What was settled last; `None` where nothing ever was."""
        return self._row if self._row is not None and self._row.detail else None

    @cached_property
    def _row(self) -> Any:
        notes = [
            Exists(model.objects.filter(project_id=OuterRef("project_id")))
            for model in (StaleTask, StaleTrace)
        ]
        rows = ProjectVerdict.objects.annotate(is_noted=notes[0] | notes[1])
        return rows.filter(project_id=self._project_id).first()


def asked_at_present(project_id: int) -> ProjectAsked:
    """What is asked in a project, with the facts that it declared as planted."""
    facts: list[tuple[str, FactSpec]] = []
    unread = []
    for row in current_definitions(project_id):
        is_fact = row.kind == DefinitionKind.PLANTED_FACT
        wrong = _wrong_with(msgspec.json.encode(row.spec), is_fact=is_fact)
        if wrong is not None:
            unread.append(unread_because(row, wrong))
        elif is_fact:
            facts.append((row.slug, decoded_fact(row.spec)))
    return asked_in(project_id, facts, unread)


@lru_cache(maxsize=4_096)
def _wrong_with(spec: bytes, *, is_fact: bool) -> BadDefinition | None:
    """Why a stored spec cannot be read; none if it can."""
    value = msgspec.json.decode(spec)
    try:
        decoded_fact(value) if is_fact else decoded_contract(value)
    except BadDefinition as error:
        # Kept for long: without its traceback, which holds frames.
        return error.with_traceback(None)
    return None
