"""Which tables each page reads, to ask again for those alone that may have changed."""

from __future__ import annotations

from collections.abc import Iterable

from django.test import Client

from apps.accounts.models import Membership, Project, User
from tests.web.table_rows import rows_of_all_tables, tables_read

AROUND = "around every page"
"""Stands for all that every whole page reads: who asks, in which project, what waits."""

Reads = dict[str, set[str]]
"""The labels of the tables that a page reads by itself, and `AROUND`, by its address."""


def ask_and_note(client: Client, addresses: Iterable[str]) -> Reads:
    """Ask for every page, which answers 200, and return what each has read."""
    found = {}
    whole = []
    for address in addresses:
        with tables_read() as found[address]:
            answer = client.get(address)
        assert answer.status_code == 200, (address, answer.status_code)
        if not answer.streaming and b"<html" in answer.content:
            whole.append(found[address])
    around = set.intersection(*whole)
    return {
        address: {AROUND if one in around else one[0] for one in read}
        for address, read in found.items()
    }


def state_for(user: User, project: Project) -> dict[str, object]:
    """What stands in each table, and `AROUND`: the rows that are handed to every page.

    How much waits, which is read around a page too, is shown and otherwise not used:
    one page of all shows it.
    """
    rows = (
        Project.objects.filter(pk=project.pk),
        User.objects.filter(pk=user.pk),
        Membership.objects.filter(project=project, user=user),
    )
    return {**rows_of_all_tables(), AROUND: [one.values().get() for one in rows]}


def changes(before: dict[str, object], after: dict[str, object]) -> set[str]:
    """The names of what is not as it was."""
    return {name for name, rows in after.items() if rows != before[name]}


def concerned(addresses: list[str], reads: Reads, changed: set[str]) -> list[str]:
    """The first page, those that were not asked for yet, and those that read a change.

    A page that reads nothing in which something was written is as it was.
    """
    first, *others = addresses
    return [first, *(one for one in others if reads.get(one, changed) & changed)]
