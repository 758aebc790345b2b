"""What the page needs on which definitions leave as a file and come back as one."""

from __future__ import annotations

import msgspec

from apps.accounts.permissions import Permission
from apps.agents.exchange import Plan, planned, yaml_of
from apps.engine.agent_contracts import (
    BadContractsFile,
    ContractsFile,
    contracts_from_yaml,
)
from apps.web.access import Place


class PlannedLine(msgspec.Struct, frozen=True):
    """What a file would change of one agent, or of the outcomes."""

    name: str
    is_new: bool
    changes: list[str]


class FilePage(msgspec.Struct, frozen=True):
    """What leaves as a file, what a file that was sent would change, what is wrong."""

    place: Place
    yaml: str
    left_out: list[str]
    refusal: str
    sent: str = ""
    plan: Plan | None = None
    problems: list[str] = []

    @property
    def lines(self) -> list[PlannedLine]:
        """What would change, agent by agent, then the outcomes."""
        plan = self.plan
        if plan is None:
            return []
        found = [
            PlannedLine(one.name, one.pk is None, one.changes.sentences)
            for one in plan.agents
        ]
        outcome = plan.outcome_changes.sentences
        return (
            [*found, PlannedLine("Outcomes", is_new=False, changes=outcome)]
            if outcome
            else found
        )


def file_page(place: Place) -> FilePage:
    """What leaves as a file."""
    text, left_out = yaml_of(place.project.pk)
    return FilePage(
        place=place,
        yaml=text,
        left_out=left_out,
        refusal=place.refusal(Permission.MANAGE_AGENTS),
    )


def read_file(text: str) -> tuple[ContractsFile | None, list[str]]:
    """The file in a text, or everything that is wrong with it."""
    if not text.strip():
        return None, ["Choose a file, or paste one."]
    try:
        return contracts_from_yaml(text), []
    except BadContractsFile as error:
        return None, list(error.problems)


def planned_page(place: Place, text: str) -> FilePage:
    """What a file that was sent would change, or what is wrong with it."""
    found, problems = read_file(text)
    plan = None
    if found is not None:
        try:
            plan = planned(place.project.pk, found)
        except BadContractsFile as error:
            problems = list(error.problems)
    page = file_page(place)
    return msgspec.structs.replace(page, sent=text, plan=plan, problems=problems)
