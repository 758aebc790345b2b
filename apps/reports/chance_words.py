"""What is said of a number of signals beside chance, the same words everywhere."""

from __future__ import annotations

from typing import Final, Protocol

from apps.reports.words import THIN, amount, number, percent, plural

NO_NULL: Final = "no null model: a fact, counted, not expected"
Q_MEANS: Final = (
    "q is the chance of a signal, corrected for the number of sequences looked at "
    "(Benjamini-Hochberg): the share of signals at least this rare that chance alone "
    "would explain."
)


class BesideChance(Protocol):
    """Signals among tested sequences, and what chance alone gives over the same."""

    @property
    def signals(self) -> int: ...
    @property
    def tested(self) -> int: ...
    @property
    def expected(self) -> float: ...
    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...
    @property
    def p(self) -> float: ...


def observed(signals: int, applicable: int) -> str:
    """`22 signals from 61 applicable sequences`."""
    return (
        f"{plural(signals, 'signal')} from {plural(applicable, 'applicable sequence')}"
    )


def expected_with_interval(count: BesideChance) -> str:
    """`about 19.3 (12 to 26)`: the expected number and its 95 % interval."""
    return f"{amount(count.expected)} ({number(count.low)} to {number(count.high)})"


def comparison(count: BesideChance) -> str:
    """Whether there are more signals than chance gives, in words."""
    if count.signals > count.high:
        return "more than chance gives"
    if count.signals < count.low:
        return "fewer than chance gives"
    return "within what chance gives"


def group_p(count: BesideChance) -> str:
    """`chance alone gives 22 or more in 27 % of cases`."""
    if not count.signals:
        return "chance alone gives 0 or more always"
    return (
        f"chance alone gives {number(count.signals)} or more in {percent(count.p)} "
        "of cases"
    )


def beside_chance(signals: int, applicable: int, count: BesideChance | None) -> str:
    """The sentence of a check, without its name and full stop.

    `22 signals from 61 applicable sequences; chance alone would give about 19.3 (12 to
    26): within what chance gives`.
    """
    said = observed(signals, applicable)
    if not applicable:
        return "applied to nothing here"
    if count is None:
        return f"{said}; {NO_NULL}"
    if count.tested < applicable:
        said += (
            f", {number(count.signals)} of them among the {number(count.tested)} "
            "that have a null probability"
        )
    return (
        f"{said}; chance alone would give {expected_with_interval(count)}: "
        f"{comparison(count)}"
    )


def q_in_words(q: float | None) -> str:
    """`q = 4 %`, or that a fact has none."""
    return "no q: a fact" if q is None else f"q = {percent(q)}"


INTERVAL_MEANS: Final = (
    f"The range holds 95{THIN}% of what chance gives if the sequences are independent "
    "of one another; those of one task are not, and then it is wider."
)
