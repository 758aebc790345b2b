"""The further figures of a check, in words: each beside the evidence, none of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from apps.engine.nulls import Association
from apps.reports.words import association, number, percent

Line = tuple[str, str]


def _trend(value: dict[str, Any]) -> Iterator[Line]:
    yield (
        "Mann-Kendall trend",
        f"S = {value['s']}, one-sided p = {percent(value['p'])} "
        f"({value['method']}); it allows an exception to the fall",
    )


def _any_run(value: float) -> Iterator[Line]:
    yield (
        "If any part had been searched",
        f"some falling run of 5 would turn up in {percent(value)} of orders; "
        "only the whole sequence was judged",
    )


def _dependence(value: dict[str, float]) -> Iterator[Line]:
    parts = [f"{percent(p)} at φ = {phi}" for phi, p in value.items()]
    yield ("If neighbouring calls depend (AR(1))", "; ".join(parts))


def _transitions(value: dict[str, Any]) -> Iterator[Line]:
    p, error = value.get("p"), value.get("standard_error")
    if p is None:
        yield ("With its transitions kept", str(value.get("method", "not computed")))
        return
    spread = f" ± {percent(error)}" if error else ""
    yield (
        "With its transitions kept",
        f"{percent(p)}{spread} ({value['method']})",
    )


def _inputs(value: dict[str, Any]) -> Iterator[Line]:
    yield (
        "Input length",
        f"from {number(value['first'])} to {number(value['last'])} "
        f"tokens, known on {value['known']} calls; context piles up in a serial loop, "
        "so this is no second piece of evidence",
    )


def _finishes(value: dict[str, int]) -> Iterator[Line]:
    parts = [f"{name.replace('_', ' ')} {count}" for name, count in value.items()]
    yield ("Why the calls stopped", ", ".join(parts))


def _lattice(value: list[float]) -> Iterator[Line]:
    yield (
        "Attainable sizes of the drop",
        ", ".join(number(size) for size in value) + "; nothing can lie in between",
    )


def _delta(value: float) -> Iterator[Line]:
    yield ("Drop, as a share of its maximum", percent(value))


def _window(label: str) -> Callable[[list[str]], Iterator[Line]]:
    def lines(value: list[str]) -> Iterator[Line]:
        yield (label, ", ".join(value))

    return lines


def _removed(label: str) -> Callable[[list[int]], Iterator[Line]]:
    def lines(value: list[int]) -> Iterator[Line]:
        steps = ", ".join(str(step + 1) for step in value[:20])
        more = "…" if len(value) > 20 else ""
        yield (label, f"{len(value)}: step {steps}{more}")

    return lines


_KNOWN: dict[str, Callable[[Any], Iterator[Line]]] = {
    "mann_kendall": _trend,
    "chance_under_autoregression": _dependence,
    "chance_of_any_falling_run_of_5": _any_run,
    "transitions_kept": _transitions,
    "finish_reasons": _finishes,
    "inputs": _inputs,
    "early_window": _window("First window"),
    "late_window": _window("Last window"),
    "delta_of_log_window": _delta,
    "possible_sizes_of_delta": _lattice,
    "retries_removed": _removed("Retried attempts left out"),
    "failed_removed": _removed("Failed attempts left out"),
    "placeholders_removed": _removed("Placeholders left out"),
    "duplicates_removed": _removed("Repeated records of one call left out"),
    "wrappers_removed": _removed("Wrappers of other calls left out"),
}


def lines_of(name: str, value: Any) -> list[Line]:
    """One fact as labelled sentences; none for a fact of no known name or shape."""
    try:
        return list(_KNOWN[name](value))
    except (KeyError, TypeError, AttributeError):
        # A document of another version may hold the fact in another shape.
        return []


def second_looks(facts: dict[str, Any]) -> list[Line]:
    """The facts of a screening as labelled sentences, in a fixed order."""
    return [
        line
        for name in _KNOWN
        if facts.get(name) is not None
        for line in lines_of(name, facts[name])
    ]


def outcome_line(found: Association | None) -> Line:
    """How the check goes with the outcome in the signal's own group, its upload."""
    return ("Outcome of traces of the same upload", association(found))
