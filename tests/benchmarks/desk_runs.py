"""Many small runs of a support desk with three agents: tasks of ten trials, mixed ends.

A tenth of the tasks has a route that is not settled, in a fifth the memory agent loses
what it looked up, and trials pass more or less often from task to task. The same seed
gives the same runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from apps.engine.trace import Outcome, OutcomeKind, Trace
from tests.desks import Act, desk_trace

TRIALS = 10
_ROUTES = ("billing", "refunds", "delivery", "returns", "sales")
_PASS_RATES = (0.0, 0.5, 0.9, 1.0, 1.0)


def desk_runs(*, tasks: int, seed: int = 0) -> Iterator[Trace]:
    """Ten trials of each task, in order of the tasks: ten to twelve steps each."""
    source = Random(seed)
    for number in range(tasks):
        yield from _trials(source, number)


def _trials(source: Random, number: int) -> Iterator[Trace]:
    route = source.choice(_ROUTES)
    wavers = source.random() < 0.1
    forgets = source.random() < 0.2
    passes = source.choice(_PASS_RATES)
    amount = round(source.uniform(5, 900), 2)
    for trial in range(1, TRIALS + 1):
        yield desk_trace(
            _triage(source.choice(_ROUTES) if wavers else route, number),
            _memory(number, loses=forgets and source.random() < 0.5),
            _writer(source, number, amount),
            task=f"ticket {number}",
            trial=trial,
            outcome=Outcome(
                kind=OutcomeKind.PASS if source.random() < passes else OutcomeKind.FAIL
            ),
            asked=f"Please refund {amount} of order A-{number}, it was charged twice.",
        )


def _triage(route: str, number: int) -> tuple[str, list[Act]]:
    return (
        "triage",
        [
            ("calls", ("read_ticket", {"ticket": number}, {"state": "open"})),
            ("says", {"route": route, "why": f"The customer of A-{number} wants it."}),
        ],
    )


def _memory(number: int, *, loses: bool) -> tuple[str, list[Act]]:
    note = [] if loses else [f"The card of A-{number} ends in 27."]
    said = "There are no notes." if loses else f"The card of A-{number} ends in 27."
    return (
        "memory",
        [
            ("calls", ("search_notes", {"order": f"A-{number}"}, note)),
            ("says", said),
        ],
    )


def _writer(source: Random, number: int, amount: float) -> tuple[str, list[Act]]:
    order = {"order": f"A-{number}"}
    lookups: list[Act] = [("calls", ("get_order", order, {"total": amount}))]
    if source.random() < 0.3:
        lookups.append(("calls", ("get_policy", {"topic": "refunds"}, "30 days")))
    return (
        "writer",
        [
            ("says", f"I look at order A-{number} first."),
            *lookups,
            ("calls", ("refund", {**order, "amount": amount}, "ok")),
            ("calls", ("send_mail", {"to": f"A-{number}"}, "sent")),
            ("says", f"Order A-{number} is refunded: {amount}."),
        ],
    )
