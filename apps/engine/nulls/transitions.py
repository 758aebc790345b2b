"""How often a mix of tools changes as much when every habit of the agent is kept.

The stricter null model: all orders of the calls with the same first call and the same
number of each transition (tool to next tool), each equally likely. An agent that
always looks up before it acts keeps doing so in every one of them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from apps.engine.nulls.windows import TOLERANCE, entropy

MOST_VISITS: Final = 3_000
"""How much of the tree of orders is searched before it is sampled instead."""

LONGEST: Final = 2_000
"""Beyond this many calls nothing is computed."""

_FEWEST_DRAWS: Final = 50
_MOST_DRAWS: Final = 400
_CALLS_DRAWN: Final = 100_000

_NONE_LEFT: Final = -1


class TransitionTail(msgspec.Struct, frozen=True):
    """How often an order with the same transitions has a difference this large.

    Exact where `standard_error` is `None` (`hits` of `orders` distinct orders), else
    from `orders` drawn ones as (hits + 1) / (orders + 1), which counts the observed
    order and so is never 0 (Phipson and Smyth 2010).
    """

    p: float
    hits: int
    orders: int
    standard_error: float | None = None


def transition_tail(
    names: Sequence[str], width: int, *, seed: int
) -> TransitionTail | None:
    """How often the drop in entropy is at least that of `names`, transitions kept.

    Lists all orders where they are few. Otherwise draws them uniformly: a random tree
    of last exits toward the final tool, then the other exits of each tool in random
    order (Kandel, Matias, Unger and Winkler 1996; trees by Wilson 1996): 400 orders,
    fewer from 250 calls on, 50 at least. `None` beyond 2,000 calls. The same arguments
    give the same answer. Checked against enumeration.
    """
    if len(names) > LONGEST:
        return None
    codes = _coded(names)
    observed = _drop(codes, width)
    orders = _all_orders(codes)
    if orders is not None:
        hits = sum(_drop(order, width) >= observed - TOLERANCE for order in orders)
        return TransitionTail(p=hits / len(orders), hits=hits, orders=len(orders))
    draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _CALLS_DRAWN // len(codes)))
    source = random.Random(seed)  # noqa: S311 - a simulation, not a secret
    hits = sum(
        _drop(order, width) >= observed - TOLERANCE
        for order in _drawn_orders(codes, draws, source)
    )
    p = (hits + 1) / (draws + 1)
    error = math.sqrt(p * (1 - p) / draws)
    return TransitionTail(p=p, hits=hits, orders=draws, standard_error=error)


def _coded(names: Sequence[str]) -> list[int]:
    numbers: dict[str, int] = {}
    return [numbers.setdefault(name, len(numbers)) for name in names]


def _drop(order: Sequence[int], width: int) -> float:
    return entropy(order[:width]) - entropy(order[-width:])


def _all_orders(codes: list[int]) -> list[list[int]] | None:
    """Every order with the same start and transitions; `None` if they are too many."""
    exits: dict[int, dict[int, int]] = {}
    for one, following in pairwise(codes):
        ahead = exits.setdefault(one, {})
        ahead[following] = ahead.get(following, 0) + 1
    onward = {one: sorted(ahead) for one, ahead in exits.items()}
    found: list[list[int]] = []
    path = [codes[0]]
    pending: list[Iterator[int]] = [iter(onward.get(codes[0], ()))]
    visits = 0
    while pending:
        following = next(pending[-1], _NONE_LEFT)
        if following == _NONE_LEFT:
            pending.pop()
            taken = path.pop()
            if path:
                exits[path[-1]][taken] += 1
            continue
        if exits[path[-1]][following] == 0:
            continue
        visits += 1
        if visits > MOST_VISITS:
            return None
        exits[path[-1]][following] -= 1
        path.append(following)
        pending.append(iter(onward.get(following, ())))
        if len(path) == len(codes):
            found.append(path.copy())
    return found


def _drawn_orders(
    codes: list[int], draws: int, source: random.Random
) -> Iterator[list[int]]:
    """`draws` orders, uniform over all with the same start and transitions."""
    exits: dict[int, list[int]] = {code: [] for code in codes}
    for one, following in pairwise(codes):
        exits[one].append(following)
    # A tree holds no loop from a tool to itself; leaving them out changes no odds.
    onward = {code: [to for to in every if to != code] for code, every in exits.items()}
    for _ in range(draws):
        last_exit = _random_tree(onward, codes[-1], source)
        ahead = {}
        for code, every in exits.items():
            rest = every.copy()
            final = last_exit.get(code)
            if final is not None:
                rest.remove(final)
            source.shuffle(rest)
            # Exits are taken from the end of the list, so the last one goes first.
            ahead[code] = rest if final is None else [final, *rest]
        yield _walk(codes[0], ahead, len(codes))


def _random_tree(
    exits: dict[int, list[int]], root: int, source: random.Random
) -> dict[int, int]:
    """A random tree of exits toward `root`, weighted by how often each exit occurs."""
    exit_of: dict[int, int] = {}
    reached = {root}
    for code in exits:
        current = code
        while current not in reached:
            exit_of[current] = source.choice(exits[current])
            current = exit_of[current]
        current = code
        while current not in reached:
            reached.add(current)
            current = exit_of[current]
    return exit_of


def _walk(start: int, ahead: dict[int, list[int]], length: int) -> list[int]:
    order = [start]
    while len(order) < length:
        order.append(ahead[order[-1]].pop())
    return order
