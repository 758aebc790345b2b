"""What is said on the error stream: what was not read, and how many signals chance gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from apps.engine.check import Basis
from apps.engine.nulls.counts import CountNull
from evalsite.offline.reading import Complaint
from evalsite.offline.tally import CheckTally, Tally

_SMALLEST_SHOWN: Final = 0.0001
INDEPENDENT: Final = (
    "Chance takes sequences for independent of each other. Trials of one task and copies "
    "of one run are not: there these probabilities are too small."
)


def complaint_line(complaint: Complaint) -> str:
    """One complaint on one line."""
    where = ", ".join(part for part in (complaint.file, complaint.place) if part)
    return plain(f"{where}: {complaint.sentence}" if where else complaint.sentence)


def summary_lines(tally: Tally) -> Iterator[str]:
    """Yield a line for each check with a null model, and one for all of them."""
    is_counted = False
    for one in tally.of_checks.values():
        if (null := one.by_chance) is not None:
            is_counted = is_counted or bool(one.signals)
            yield beside_chance(one, null)
        elif one.check.basis is Basis.STATISTIC:
            yield (
                f"{one.check.slug}: not applicable, {one.not_applicable:,} of "
                f"{one.not_applicable:,} times. Nothing was checked."
            )
    if is_counted:
        yield INDEPENDENT
    yield (
        f"{count(tally.signals, 'signal')} in {count(tally.traces, 'trace')}, "
        f"{tally.queued:,} of them for review: prompts to look, not findings."
    )


def beside_chance(one: CheckTally, null: CountNull) -> str:
    """How many signals there are of how many, beside what chance alone gives."""
    rare = f" ({one.queued:,} of them for review)" if one.queued != one.signals else ""
    return (
        f"{one.check.slug}: {count(one.signals, 'signal')}{rare} from "
        f"{count(one.applicable, 'applicable sequence')}; chance alone would give about "
        f"{rounded(null.expected)} (95 %: {null.low:,} to {null.high:,})"
        f"{_tail(one, null)}."
    )


def _tail(one: CheckTally, null: CountNull) -> str:
    if not one.signals:
        return ""
    p = null.at_least(one.signals)
    within = "; that is within what chance gives" if one.signals <= null.high else ""
    return f", and {one.signals:,} or more with probability {_probability(p)}{within}"


def _probability(p: float) -> str:
    return f"{p:.2g}" if p >= _SMALLEST_SHOWN else f"below {_SMALLEST_SHOWN:.4f}"


def count(number: int, word: str) -> str:
    """A number with its noun: "1 signal", "1,200 signals"."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def rounded(number: float) -> str:
    """A number with two digits that count: "19", "0.42", "0"."""
    if number >= 10 or number == 0:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 1 else f"{number:.2g}"


def plain(text: str) -> str:
    """The text on one line, without characters that would steer a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)
