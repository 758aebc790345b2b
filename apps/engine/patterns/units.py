"""What the search reads: one run with its features and whether the target holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import msgspec

Value: TypeAlias = float | str | bool | tuple[str, ...] | None
"""A number, a category, a boolean, a set of names; `None` is not recorded."""


class Unit(msgspec.Struct, frozen=True):
    """One run, or what one agent did in it.

    `id` is unique among the units. `task` is what its trials share: units of one task
    are taken to depend on each other, so a run of no known task gets a task of its
    own, not an empty one. `together` names the units of one task that share a target
    beyond it, so that chance deals it to them together: what one agent did in its
    trials, where the target is that they do not agree. "" is a unit that stands alone.
    """

    id: str
    task: str
    features: Mapping[str, Value]
    target: bool
    together: str = ""


def in_order(units: Iterable[Unit]) -> list[Unit]:
    """The units by task, together and id, whatever order they came in.

    Raises `ValueError` where two have the same id.
    """
    found = sorted(units, key=lambda unit: (unit.task, unit.together, unit.id))
    if len({unit.id for unit in found}) < len(found):
        raise ValueError("Two units have the same id.")
    return found
