"""Keeping the cases of a file of JSON lines, each with the agent that it names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec
from django.db import transaction

from apps.agents.models import Agent
from apps.agents.queries import definitions_of
from apps.engine.agent_names import agent_key
from apps.engine.replay.case import Case
from apps.engine.replay.cases_file import (
    RefusedLine,
    cases_as_jsonl,
    cases_from_jsonl,
)
from apps.engine.trials.project import UNNAMED
from apps.replays.cases import (
    Kept,
    Origin,
    UnreadCase,
    case_of,
    keep_cases,
    stored_text,
)
from apps.replays.models import CaseSource, ReplayCase


class TakenFile(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a file: the cases that are kept, and the lines that are not."""

    kept: tuple[Kept, ...]
    refused: tuple[RefusedLine, ...]
    refused_count: int
    notes: tuple[str, ...]

    @property
    def new(self) -> int:
        """How many of the cases were not kept before."""
        return len({one.case.pk for one in self.kept if one.is_new})


def take_case_lines(
    *,
    project_id: int,
    content: bytes,
    usual: Agent | None,
    user_id: int | None,
    now: datetime,
) -> TakenFile:
    """Keep the cases of JSON lines; `usual` is the agent of lines that name none.

    Lines with a name that no agent of the project has are refused; "" is the one
    without a name, and so is "unnamed agent" where none is called that. Raises
    `WrongCase` where there are too many cases or one is too large; none is kept then.
    """
    names = definitions_of(project_id).names
    name = None if usual is None else usual.key
    read = cases_from_jsonl(content.splitlines(), agent=name)
    by_agent: dict[int, list[Case]] = defaultdict(list)
    strange: dict[str, int] = defaultdict(int)
    for written in read.cases:
        case = _as_named(written, names)
        agent_id = names.get(agent_key(case.agent))
        if agent_id is None and usual is not None and case.agent == name:
            agent_id = usual.pk
        if agent_id is None:
            strange[case.agent] += 1
        else:
            by_agent[agent_id].append(case)
    agents = Agent.objects.filter(project_id=project_id).in_bulk(list(by_agent))
    with transaction.atomic():
        kept = [
            one
            for agent_id, cases in by_agent.items()
            for one in keep_cases(
                agent=agents[agent_id],
                cases=cases,
                origin=Origin(CaseSource.FILE),
                user_id=user_id,
                now=now,
            )
        ]
    return TakenFile(
        kept=tuple(kept),
        refused=(*_strangers(strange), *read.refused),
        refused_count=read.refused_count + sum(strange.values()),
        notes=read.notes,
    )


def _as_named(case: Case, names: Mapping[str, int]) -> Case:
    """The case under a name that is recorded: "unnamed agent" is what pages say."""
    key = agent_key(case.agent)
    is_nameless = key == UNNAMED and key not in names and "" in names
    return msgspec.structs.replace(case, agent="") if is_nameless else case


def _strangers(strange: dict[str, int]) -> list[RefusedLine]:
    return [
        RefusedLine(
            line=0,
            reason=_why_strange(name, f"{count:,} {'line' if count == 1 else 'lines'}"),
        )
        for name, count in strange.items()
    ]


def _why_strange(name: str, lines: str) -> str:
    if not agent_key(name):
        return (
            f"This project knows no agent without a name ({lines}): there is one once "
            "a trace is scored in which no named agent acts. Or name in “agent” "
            "which one is run."
        )
    return (
        f"No agent of this project is called “{name[:80]}” ({lines}). Add it on the "
        "page of agents first."
    )


def lines_of(row: ReplayCase) -> Iterator[str]:
    """A kept case as a line of JSON, under the name that people gave it.

    What this version cannot read leaves as it is stored, so that nothing is lost.
    """
    try:
        case = msgspec.structs.replace(case_of(row), name=row.name)
    except UnreadCase:
        yield f"{stored_text(row).decode(errors='replace')}\n"
    else:
        yield from cases_as_jsonl([case])
