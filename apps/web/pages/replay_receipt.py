"""Keeping the cases of a file, and saying what became of each line."""

from __future__ import annotations

from collections import defaultdict

from django.db import transaction
from django.utils import timezone

from apps.agents.models import Agent
from apps.agents.queries import definitions_of
from apps.engine.agent_names import agent_key
from apps.engine.replay.case import Case
from apps.engine.replay.cases_file import RefusedLine, cases_from_jsonl
from apps.replays.cases import Kept, Origin, WrongCase, keep_cases
from apps.replays.models import CaseSource
from apps.web.access import Place
from apps.web.pages.replay_cases import MOST_REFUSED_SHOWN, Receipt


def problem_receipt(problem: str) -> Receipt:
    """The receipt of something that was no file of cases at all."""
    return Receipt(
        read=0, new=0, refused=[], refused_count=0, notes=[], problem=problem
    )


def taken_file(place: Place, content: bytes, usual: Agent | None) -> Receipt:
    """Keep the cases of JSON lines; `usual` is the agent of lines that name none.

    Lines with a name that no agent of the project has are refused.
    """
    known = definitions_of(place.project.pk)
    name = "" if usual is None else usual.key or str(usual)
    read = cases_from_jsonl(content.splitlines(), agent=name)
    found: dict[int, list[Case]] = defaultdict(list)
    strange: dict[str, int] = defaultdict(int)
    for case in read.cases:
        agent_id = known.names.get(agent_key(case.agent))
        if agent_id is None and usual is not None and case.agent == name:
            agent_id = usual.pk
        if agent_id is None:
            strange[case.agent] += 1
        else:
            found[agent_id].append(case)
    try:
        kept = _kept(place, found)
    except WrongCase as error:
        return problem_receipt(f"{error} Nothing of the file was kept.")
    refused = [*_strangers(strange), *read.refused]
    return Receipt(
        read=len(kept),
        new=len({one.case.pk for one in kept if one.is_new}),
        refused=refused[:MOST_REFUSED_SHOWN],
        refused_count=read.refused_count + sum(strange.values()),
        notes=list(read.notes),
        problem="" if kept else "The file holds no case that could be kept.",
    )


def _strangers(strange: dict[str, int]) -> list[RefusedLine]:
    return [
        RefusedLine(
            line=0,
            reason=f"No agent of this project is called “{name[:80]}” "
            f"({count:,} {'line' if count == 1 else 'lines'}). Add it on the page of "
            "agents first.",
        )
        for name, count in strange.items()
    ]


def _kept(place: Place, found: dict[int, list[Case]]) -> list[Kept]:
    agents = Agent.objects.filter(project=place.project).in_bulk(list(found))
    with transaction.atomic():
        return [
            one
            for agent_id, cases in found.items()
            for one in keep_cases(
                agent=agents[agent_id],
                cases=cases,
                origin=Origin(CaseSource.FILE),
                user_id=place.user.pk,
                now=timezone.now(),
            )
        ]
