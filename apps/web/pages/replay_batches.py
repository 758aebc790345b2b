"""What the list of batches needs: newest first, each with its runs, spending, breaches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from apps.accounts.permissions import Permission
from apps.agents.models import Agent
from apps.replays.batch_queries import (
    ON_A_PAGE,
    BatchFilter,
    BatchRow,
    Inventory,
    agents_with_batches,
    batch_rows,
    inventory,
    is_memory,
)
from apps.replays.models import Batch
from apps.replays.transitions import BatchState
from apps.web.access import Place
from apps.web.numbers import whole
from apps.web.pages.replay_words import BATCH_WORDS, StateWord, money_in_words
from apps.web.words import number_in_words

STATES = {state.value: BATCH_WORDS[state].word for state in BatchState}


class BatchLine(msgspec.Struct, frozen=True):
    """One batch of the list."""

    row: BatchRow
    word: StateWord
    spent: str
    is_memory: bool

    @property
    def batch(self) -> Batch:
        """The batch itself."""
        return self.row.batch


class BatchesPage(msgspec.Struct, frozen=True):
    """One page of the batches of a project."""

    place: Place
    lines: list[BatchLine]
    where: BatchFilter
    there: Inventory
    agents: list[Agent]
    states: Mapping[str, str]
    shown: str
    next_query: str
    first_query: str
    refusal: str
    targets_refusal: str


def filter_of(query: Mapping[str, str]) -> BatchFilter:
    """The filter that an address asks for; what it does not know it ignores."""
    state = query.get("state", "")
    return BatchFilter(
        agent=whole(query.get("agent", "")),
        state=state if state in STATES else "",
        before=whole(query.get("before", "")),
    )


def query_of(where: BatchFilter, **more: Any) -> str:
    """The filter as the query of an address."""
    fields = {"agent": where.agent, "state": where.state, **more}
    given = {name: value for name, value in fields.items() if value}
    return f"?{urlencode(given)}"


def batch_line(row: BatchRow) -> BatchLine:
    """A batch with its words."""
    batch = row.batch
    return BatchLine(
        row=row,
        word=BATCH_WORDS[batch.state],
        spent=spent_in_words(batch),
        is_memory=is_memory(batch),
    )


def spent_in_words(batch: Batch) -> str:
    """What was spent: calls, tokens, and money where it is known."""
    parts = [
        f"{number_in_words(batch.spent_calls)} "
        + ("call" if batch.spent_calls == 1 else "calls"),
        f"{number_in_words(batch.spent_tokens)} tokens",
    ]
    if batch.is_money_known and batch.spent_money:
        parts.append(money_in_words(batch.spent_money))
    return ", ".join(parts)


def batches_page(place: Place, query: Mapping[str, str]) -> BatchesPage:
    """The batches that an address asks for: a fixed number of queries."""
    where = filter_of(query)
    found = batch_rows(place.project.pk, where)
    shown = found[:ON_A_PAGE]
    count = len(shown)
    return BatchesPage(
        place=place,
        lines=[batch_line(row) for row in shown],
        where=where,
        there=inventory(place.project.pk),
        agents=agents_with_batches(place.project.pk),
        states=STATES,
        shown=f"{count} {'batch' if count == 1 else 'batches'} shown, newest first",
        next_query=(
            query_of(where, before=shown[-1].batch.pk) if len(found) > ON_A_PAGE else ""
        ),
        first_query=query_of(where) if where.before else "",
        refusal=place.refusal(Permission.REPLAY),
        targets_refusal=place.refusal(Permission.MANAGE_TARGETS),
    )
