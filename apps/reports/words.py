"""Numbers, probabilities, states and times as a report writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from apps.engine.check import percent as in_a_sentence
from apps.engine.nulls import Association
from apps.reports.document import ChancePart
from apps.reports.rates import Rate

THIN: Final = "\u202f"
NOT_RECORDED: Final = "not recorded"
GONE: Final = "someone whose account is gone"
_LONG_TERM: Final = 15
_TINIEST: Final = 1e-300


def number(value: float | None) -> str:
    """`12 345` with thin spaces, `0.347` with up to three digits."""
    if value is None:
        return NOT_RECORDED
    if float(value).is_integer():
        return f"{int(value):,}".replace(",", THIN)
    return f"{value:.3f}".rstrip("0").rstrip(".")


def percent(value: float | None) -> str:
    """A share of 1 in percent: `38 %`, `0.83 %`, `0.0014 %`."""
    if value is None:
        return NOT_RECORDED
    share = value * 100
    if share == 0 or share >= 10:
        text = f"{share:.1f}".removesuffix(".0")
    elif share >= 0.01:
        text = f"{share:.2f}".rstrip("0").rstrip(".")
    else:
        text = f"{share:.1g}" if share >= 0.0001 else "less than 0.0001"
    return f"{text}{THIN}%"


def _term(digits: str) -> str:
    if len(digits) <= _LONG_TERM:
        return number(int(digits))
    return f"{digits[0]}.{digits[1:3]}e{len(digits) - 1}"


def chance(part: ChancePart | None) -> str:
    """`1 of 720 (0.14 %)`, `1.8 % ± 0.3 % (simulated)`, or that there is none."""
    if part is None:
        return "no null model"
    # No null model gives exactly nothing: a 0 here is a number below the smallest float.
    share = percent(part.value or _TINIEST)
    if part.numerator is not None and part.denominator is not None:
        return f"{_term(part.numerator)} of {_term(part.denominator)} ({share})"
    if part.standard_error:
        return f"{share} ± {percent(part.standard_error)} (simulated)"
    return share


def rate(part: Rate) -> str:
    """`3 of 4 (75 %), 95 % interval 30 % to 95 %`, or `no decisions yet`."""
    if part.share is None or part.low is None or part.high is None:
        return "no decisions yet"
    return (
        f"{number(part.hits)} of {number(part.of)} ({percent(part.share)}), "
        f"95{THIN}% interval {percent(part.low)} to {percent(part.high)}"
    )


def short_rate(part: Rate, nothing: str) -> str:
    """`3 of 12 (25 %; 8.9 % to 53 %)`, or `nothing` for 0 of 0."""
    if part.share is None or part.low is None or part.high is None:
        return nothing
    share, low, high = (
        in_a_sentence(value).replace(" %", f"{THIN}%")
        for value in (part.share, part.low, part.high)
    )
    return f"{number(part.hits)} of {number(part.of)} ({share}; {low} to {high})"


def expected(value: float | None) -> str:
    """How many signals chance alone would give: `about 19.3`, `less than 0.01`, `none`.

    Or that nothing says.
    """
    return "no null model" if value is None else amount(value)


def amount(value: float) -> str:
    """An expected count: `about 0.35`, `about 19.3`, `less than 0.01`, `none`."""
    if value == 0:
        return "none"
    if value < 0.01:
        return "less than 0.01"
    if value >= 10:
        return f"about {number(round(value, 1) if value < 1000 else round(value))}"
    return "about " + f"{value:.2f}".rstrip("0").rstrip(".")


def utc(moment: datetime) -> str:
    """`2026-11-30T06:35:52Z`, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(stamp: str) -> str:
    """`2026-11-30 06:35 UTC` of such a stamp."""
    return f"{stamp[:10]} {stamp[11:16]} UTC"


def plural(count: int, word: str) -> str:
    """`1 trace`, `200 traces`."""
    return f"{number(count)} {word}" if count == 1 else f"{number(count)} {word}s"


def spaced(code: str) -> str:
    """`usage_missing` as `usage missing`."""
    return code.replace("_", " ").replace("-", " ")


def association(found: Association | None) -> str:
    """`Of 22 with a signal 1 passed, of 39 without 12 passed; Fisher exact p = 2.2 %`.

    With the number of distinct tasks and what it means for the p, or that there are
    not enough outcomes for one.
    """
    if found is None:
        return "not enough outcomes: no applicable trace passed or failed"
    table = (
        f"Of {number(found.fired)} with a signal {number(found.fired_passed)} passed, "
        f"of {number(found.not_fired)} without "
        f"{number(found.not_fired_passed)} passed"
    )
    if found.p is None:
        return f"{table}: not enough outcomes to compare"
    return f"{table}; Fisher exact p = {percent(found.p)}; {_independence(found)}"


def _independence(found: Association) -> str:
    if not found.tasks:
        return "no trace names its task, so nothing says that they are independent"
    tasks = plural(found.tasks, "distinct task")
    if found.without_task:
        tasks += f" and {plural(found.without_task, 'trace')} without one"
    if found.tasks + found.without_task < found.traces:
        return f"{tasks}, so the traces are not independent"
    return f"{tasks}, no task twice"
