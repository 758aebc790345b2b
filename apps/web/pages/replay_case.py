"""What the page of one case needs: all that is frozen in it, and what is not.

Long values are cut for the page; the download has them whole.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from apps.accounts.permissions import Permission
from apps.engine.replay.case import Case
from apps.engine.replay.freezing import not_recorded
from apps.replays.cases import case_of
from apps.replays.models import Batch, CaseSource, ReplayCase
from apps.replays.queries import batches_of_case
from apps.web.access import Place
from apps.web.pages.bodies import as_text

LONGEST: Final = 16_000
LONGEST_CELL: Final = 4_000
MOST_MESSAGES: Final = 200
MOST_CALLS: Final = 200
MOST_TOOLS: Final = 200
_QUOTED: Final = re.compile(r"`([^`]*)`")
_UPSTREAM_WORDS: Final = {
    "upstream": "Said by others before it ran",
    "handoff": "Handed to it",
    "said_later": "Said while it ran, and not part of the input",
    "request": "The request as it was recorded",
}


class CasePart(msgspec.Struct, frozen=True):
    """One value of a case as text, cut where it is long."""

    label: str
    text: str
    is_cut: bool = False


class CallLine(msgspec.Struct, frozen=True):
    """One recorded tool call; `step` counts from 1."""

    number: int
    tool: str
    arguments: CasePart
    result: CasePart
    is_error: bool
    writes: bool
    step: int | None


class ToolLine(msgspec.Struct, frozen=True):
    """One tool that the agent may call."""

    name: str
    description: str
    parameters: str


class CasePage(msgspec.Struct, frozen=True):
    """One case."""

    place: Place
    row: ReplayCase
    agent_in_trace: str
    came_from: str
    given: CasePart | None
    messages: list[CasePart]
    messages_left: int
    tools: list[ToolLine]
    calls: list[CallLine]
    calls_left: int
    beside: list[CasePart]
    model: str
    missing: list[str]
    batches: list[Batch]
    refusal: str

    @property
    def writes(self) -> int:
        """How many of the calls that are shown change something."""
        return sum(one.writes for one in self.calls)


def case_page(place: Place, row: ReplayCase) -> CasePage:
    """One case: its content is unpacked, and two queries ask what used it."""
    case = case_of(row)
    return CasePage(
        place=place,
        row=row,
        agent_in_trace=case.agent,
        came_from=str(CaseSource(row.source).label),
        given=None if case.input is None else _part("Input", case.input),
        messages=[_message(one) for one in case.messages[:MOST_MESSAGES]],
        messages_left=max(0, len(case.messages) - MOST_MESSAGES),
        tools=[
            ToolLine(
                one.name[:200],
                one.description[:LONGEST_CELL],
                _cut(as_text(one.parameters), LONGEST_CELL)[0]
                if one.parameters
                else "",
            )
            for one in case.tools[:MOST_TOOLS]
        ],
        calls=_calls(case),
        calls_left=max(0, len(case.calls) - MOST_CALLS),
        beside=_beside(case),
        model=case.model,
        missing=[_QUOTED.sub(r"“\1”", one) for one in not_recorded(case)],
        batches=batches_of_case(row),
        refusal=place.refusal(Permission.REPLAY),
    )


def _calls(case: Case) -> list[CallLine]:
    return [
        CallLine(
            number=number,
            tool=one.tool[:200],
            arguments=_cell("Arguments", one.arguments),
            result=_cell("Error", one.error)
            if one.error
            else _cell("Result", one.result),
            is_error=bool(one.error),
            writes=one.writes,
            step=None if one.step is None else one.step + 1,
        )
        for number, one in enumerate(case.calls[:MOST_CALLS], start=1)
    ]


def _beside(case: Case) -> list[CasePart]:
    """State, parameters and context, each where there is any."""
    found = []
    if case.state is not None:
        found.append(_part("State: what it remembered from before", case.state))
    if case.parameters:
        found.append(_part("Parameters of its model calls", case.parameters))
    for name, value in case.context.items():
        if name != "messages_from":
            label = _UPSTREAM_WORDS.get(name, name.replace("_", " ").capitalize())
            found.append(_part(label[:200], value))
    return found


def _message(message: dict[str, Any]) -> CasePart:
    role = str(message.get("role") or "message")[:60]
    content = message.get("content")
    is_plain = isinstance(content, str) and not set(message) - {"role", "content"}
    return _part(role, content if is_plain else message)


def _part(label: str, value: Any) -> CasePart:
    text, is_cut = _cut(as_text(value), LONGEST)
    return CasePart(label, text, is_cut)


def _cell(label: str, value: Any) -> CasePart:
    if value is None:
        return CasePart(label, "")
    text, is_cut = _cut(as_text(value), LONGEST_CELL)
    return CasePart(label, text, is_cut)


def _cut(text: str, most: int) -> tuple[str, bool]:
    return (text[:most], True) if len(text) > most else (text, False)
