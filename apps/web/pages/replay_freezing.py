"""What the page of a trace needs to freeze its agent invocations as cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from apps.accounts.permissions import Permission
from apps.engine.agent_names import agent_key
from apps.engine.trace import AgentInvocation
from apps.replays.freezing import (
    Acts,
    acts_in,
    known_keys,
    refused_size,
    unknown_agent,
)
from apps.replays.models import ReplayCase
from apps.replays.queries import frozen_of
from apps.traces.models import Trace
from apps.web.access import Place

MOST_SHOWN: Final = 50
UNNAMED: Final = "an agent without a name"
NO_STEPS: Final = "No case can be made of this trace: it has no steps."
NO_ACTS: Final = "Nothing that it did is recorded."
ALL_OWNED: Final = "Each recorded act is one of an agent that is listed here."


class Freezable(msgspec.Struct, frozen=True):
    """One agent invocation, and the case that was frozen from it, if any.

    `value` is what its button sends: its number, "" for what no named agent did.
    `refusal` says why nothing can be frozen of it, as far as the page knows.
    """

    value: str
    label: str
    case: ReplayCase | None
    refusal: str = ""


class FreezingPart(msgspec.Struct, frozen=True):
    """The invocations of a trace that can be frozen."""

    trace: Trace
    rows: list[Freezable]
    more: int
    refusal: str

    @property
    def count(self) -> int:
        """How many cases were frozen from this trace."""
        return sum(row.case is not None for row in self.rows)


def freezing_part(
    place: Place, trace: Trace, invocations: Sequence[AgentInvocation]
) -> FreezingPart:
    """The invocations of a trace and their cases: three queries, whatever its size."""
    frozen = frozen_of(trace.pk)
    listed = invocations[:MOST_SHOWN]
    at_once = _refused_at_once(trace)
    # A trace that is too large is not looked through for this.
    acts = None if at_once else acts_in(trace)
    known = _Known(trace, listed, acts) if acts else None
    of_size = at_once if acts is None else refused_size(trace, acts.packed)
    rows = [
        Freezable(
            value=str(one.number),
            label=f"{one.agent or UNNAMED}, invocation {one.number + 1}",
            case=frozen.get(one.number),
            refusal=known.refusal(one) if known else "",
        )
        for one in listed
    ]
    rows.append(
        Freezable(
            value="",
            label=_unowned(rows),
            case=frozen.get(None),
            refusal=known.refusal_of_the_rest() if known else "",
        )
    )
    unlisted = len(known.unlisted) if known else 0
    return FreezingPart(
        trace=trace,
        rows=rows,
        more=max(unlisted, len(invocations) - len(listed)),
        refusal=place.refusal(Permission.REPLAY) or of_size,
    )


def _refused_at_once(trace: Trace) -> str:
    """Why nothing of a trace can be frozen, by what its row says; "" where it can."""
    return refused_size(trace, 0) if trace.step_count else NO_STEPS


class _Known:
    """What is known of all invocations of a trace at once."""

    def __init__(
        self, trace: Trace, listed: Sequence[AgentInvocation], acts: Acts
    ) -> None:
        self._owners = acts.owners
        keys = {"", *(agent_key(one.agent) for one in listed)}
        self._keys = known_keys(trace.project_id, keys)
        self._has_listed = bool(listed)
        self._is_scored = bool(trace.scored_as)
        self.unlisted = self._owners - {None} - {one.number for one in listed}
        """The invocations that may have done something and are not listed."""

    def refusal(self, one: AgentInvocation) -> str:
        """Why nothing can be frozen of an invocation, as a sentence; or ""."""
        if one.number not in self._owners:
            return NO_ACTS
        name = one.agent or ""
        return "" if agent_key(name) in self._keys else unknown_agent(name)

    def refusal_of_the_rest(self) -> str:
        """The same of what no named agent did."""
        if "" in self._keys:
            return ""
        has_owner = self._has_listed and None not in self._owners and not self.unlisted
        return ALL_OWNED if self._is_scored and has_owner else unknown_agent("")


def _unowned(rows: list[Freezable]) -> str:
    return "Steps of no agent" if rows else "The whole system: no agent is named"
