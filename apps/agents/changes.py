"""What is different between two versions of what is asked, as short sentences.

Contracts are told apart by their names; two of one name are compared together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from apps.engine.agent_contracts import named


class Changes(msgspec.Struct, frozen=True):
    """The names that came, went, or mean something else; and the decision."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    is_moved: bool = False
    has_decision: bool = False

    @property
    def are_none(self) -> bool:
        """Whether nothing is different."""
        return self == Changes()

    @property
    def sentences(self) -> list[str]:
        """Each change in words, nothing for none."""
        said = [
            f"{word} “{name}”"
            for word, names in (
                ("added", self.added),
                ("changed", self.changed),
                ("removed", self.removed),
            )
            for name in names
        ]
        if self.is_moved:
            said.append("put in another order")
        if self.has_decision:
            said.append("the agent decision is found in another way")
        return said


def changes_between(
    before: tuple[Mapping[str, Any] | None, Sequence[Mapping[str, Any]]],
    after: tuple[Mapping[str, Any] | None, Sequence[Mapping[str, Any]]],
    *,
    name: str = "name",
) -> Changes:
    """What is different between two pairs of a decision and what is held.

    `name` is the field by which two of what is held are the same one.
    """
    old, new = _by_name(before[1], name), _by_name(after[1], name)
    is_same = old == new
    return Changes(
        added=tuple([one for one in new if one not in old]),
        changed=tuple([one for one in new if one in old and new[one] != old[one]]),
        removed=tuple([one for one in old if one not in new]),
        is_moved=is_same and list(before[1]) != list(after[1]),
        has_decision=before[0] != after[0],
    )


def _by_name(held: Sequence[Any], name: str) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for one in held:
        found[named(one, name)].append(one)
    return dict(found)
