"""What the page of a trace needs to freeze its agent invocations as cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from apps.accounts.permissions import Permission
from apps.engine.trace import AgentInvocation
from apps.replays.freezing import refused_size
from apps.replays.models import ReplayCase
from apps.replays.queries import frozen_of
from apps.traces.models import Trace
from apps.web.access import Place

MOST_SHOWN: Final = 50
UNNAMED: Final = "an agent without a name"


class Freezable(msgspec.Struct, frozen=True):
    """One agent invocation, and the case that was frozen from it, if any.

    `value` is what its button sends: its number, "" for what no named agent did.
    """

    value: str
    label: str
    case: ReplayCase | None


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
    """The invocations of a trace and their cases: one query."""
    frozen = frozen_of(trace.pk)
    rows = [
        Freezable(
            value=str(one.number),
            label=f"{one.agent or UNNAMED}, invocation {one.number + 1}",
            case=frozen.get(one.number),
        )
        for one in invocations[:MOST_SHOWN]
    ]
    rows.append(Freezable(value="", label=_unowned(rows), case=frozen.get(None)))
    return FreezingPart(
        trace=trace,
        rows=rows,
        more=max(0, len(invocations) - MOST_SHOWN),
        refusal=place.refusal(Permission.REPLAY) or refused_size(trace, 0),
    )


def _unowned(rows: list[Freezable]) -> str:
    return "Steps of no agent" if rows else "The whole system: no agent is named"
