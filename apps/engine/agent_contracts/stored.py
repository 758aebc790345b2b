"""What is asked, out of the rows that store it: also what this version cannot read.

A release may stop taking what an earlier one took. Such a part stays as it is stored,
says why it cannot be read, and is never counted as held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from apps.engine.agent_contracts.decoding import decoded_agent_contract
from apps.engine.agent_contracts.outcomes import OutcomeExpectation, decoded_expectation
from apps.engine.agent_contracts.spec import AgentContractSpec
from apps.engine.agent_contracts.unread import Unread
from apps.engine.extraction import AUTOMATIC, DecisionSpec, decoded_decision

_LONGEST: Final = 80
_WRONG: Final = (ValueError, TypeError, AttributeError, LookupError, RecursionError)

Spec = TypeVar("Spec", AgentContractSpec, DecisionSpec, OutcomeExpectation)


def listed(stored: Any) -> list[Any]:
    """What a column of several holds; what is no list is one part of its own."""
    return stored if isinstance(stored, list) else [stored]


def named(stored: Any, field: str = "name") -> str:
    """The name in a stored part, "" where it has none that is a text."""
    name = stored.get(field) if isinstance(stored, dict) else None
    return name if isinstance(name, str) else ""


def stored_contract(
    stored: Any, *, at: int, version: int
) -> AgentContractSpec | Unread:
    """The contract at the place `at`, from 1, of this version."""
    said = [f"“{named(stored)[:_LONGEST]}”" if named(stored) else ""]
    kind = named(stored, "kind")
    said.append(f"kind “{kind[:_LONGEST]}”" if kind else "")
    told = ", ".join(filter(None, said))
    what = f"Contract {at}{f' ({told})' if told else ''} of version {version}"
    return _read(decoded_agent_contract, stored, what)


def stored_contracts(stored: Any, *, version: int) -> list[AgentContractSpec | Unread]:
    """The contracts of this version, in their order."""
    return [
        stored_contract(one, at=at, version=version)
        for at, one in enumerate(listed(stored), start=1)
    ]


def stored_decision(stored: Any, *, version: int) -> DecisionSpec | Unread:
    """How the decision is found by this version; nothing stored is the automatic way."""
    if stored is None:
        return AUTOMATIC
    kind = named(stored, "kind")
    told = f" (kind “{kind[:_LONGEST]}”)" if kind else ""
    what = f"How the decision is found{told} in version {version}"
    return _read(decoded_decision, stored, what)


def stored_expectations(
    stored: Any, *, version: int
) -> dict[str, OutcomeExpectation | Unread]:
    """What is expected of outcomes by the name or pattern of the tasks.

    What does not say of which tasks it is stands under "*", so that no outcome of them
    is green by default.
    """
    found: dict[str, OutcomeExpectation | Unread] = {}
    for at, row in enumerate(listed(stored), start=1):
        task = task_of(row)
        what = f"Expectation {at} (tasks “{task[:_LONGEST]}”) of version {version}"
        one = _read(_expectation, row, what)
        if not isinstance(found.get(task), Unread):
            found[task] = one
    return found


def task_of(stored: Any) -> str:
    """The name or pattern of the tasks that a stored expectation is about."""
    return named(stored, "task") or "*"


def unread_in(parts: Iterable[Any]) -> Iterator[Unread]:
    """Those of the parts that could not be read."""
    for one in parts:
        if isinstance(one, Unread):
            yield one


def _expectation(stored: Any) -> OutcomeExpectation:
    said = dict(stored)
    said.pop("task", None)
    return decoded_expectation(said)


def _read(decode: Callable[[Any], Spec], stored: Any, what: str) -> Spec | Unread:
    try:
        return decode(stored)
    except _WRONG as error:
        return Unread(
            what=what,
            field=str(getattr(error, "field", "")),
            why=str(error).strip() or type(error).__name__,
            stored=stored,
        )
