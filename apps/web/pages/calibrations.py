"""The worth of every check of a project on one page, those that need a look first."""

from __future__ import annotations

import msgspec

from apps.engine.calibration import Rate, rate
from apps.engine.check import Check, Level
from apps.review.blind_sample import undecided_count
from apps.review.calibration import Said, blind_counts, open_numbers, said_of
from apps.review.misses import Misses, misses_of
from apps.screening.calibration import GroupKind
from apps.screening.lineup import Entry
from apps.screening.queries import CheckCounts, counts_per_check
from apps.web.access import Place
from apps.web.pages.calibration_words import (
    RangeMark,
    range_mark,
    rate_in_words,
    verdict_on_precision,
)


class CheckWorth(msgspec.Struct, frozen=True):
    """One check under its current key; `need` says why it stands where it stands."""

    check: Check
    is_paused: bool
    counts: CheckCounts
    fired: str
    precision: Rate
    precision_words: str
    mark: RangeMark | None
    said: Said
    waiting: int
    misses: Misses
    misses_words: str
    sentence: str
    need: str


class CalibrationsPage(msgspec.Struct, frozen=True):
    """All checks of a project."""

    place: Place
    checks: list[CheckWorth]
    blind_percent: int
    blind_waiting: int
    has_decisions: bool


def calibrations_page(place: Place) -> CalibrationsPage:
    """Every check of the line-up; the number of queries does not grow."""
    project, lineup = place.project, place.lineup
    keys = [entry.key for entry in lineup.entries]
    counts = {one.slug: one for one in counts_per_check(project, lineup=lineup)}
    said = said_of(project=project, keys=keys)
    looks = blind_counts(project=project, keys=keys, only_looks=True)
    waiting = open_numbers(project=project)
    worth = [
        _worth(
            entry,
            counts[entry.check.slug],
            said[entry.key].get((GroupKind.ALL, ""), Said()),
            misses_of(looks[entry.key]),
            waiting.get(entry.check.slug, 0),
        )
        for entry in lineup.entries
    ]
    places = {id(one): number for number, one in enumerate(worth)}
    return CalibrationsPage(
        place=place,
        checks=sorted(worth, key=lambda one: (*_need(one), places[id(one)])),
        blind_percent=project.blind_percent,
        blind_waiting=undecided_count(project=project),
        has_decisions=any(one.said.looked_at for one in worth),
    )


def _worth(
    entry: Entry, counts: CheckCounts, said: Said, misses: Misses, waiting: int
) -> CheckWorth:
    precision = rate(said.confirmed, said.decided)
    level = entry.check.level.value
    worth = CheckWorth(
        check=entry.check,
        is_paused=entry.is_paused,
        counts=counts,
        fired=rate_in_words(
            rate(counts.signals, counts.applicable, nothing="applicable nowhere")
        ),
        precision=precision,
        precision_words=(
            "not reviewed one by one"
            if level == Level.TELEMETRY
            else rate_in_words(precision)
        ),
        mark=range_mark(precision),
        said=said,
        waiting=waiting,
        misses=misses,
        misses_words=("—" if level == Level.TELEMETRY else rate_in_words(misses.quiet)),
        sentence=verdict_on_precision(said, precision, counts.queued, level),
        need="",
    )
    return msgspec.structs.replace(worth, need=_NEEDS[_need(worth)[0]])


_NEEDS = (
    "most of what it queues is dismissed",
    "signals wait and nobody has decided one",
    "too few decisions to tell",
    "",
)


def _need(worth: CheckWorth) -> tuple[int, int]:
    """How much a check needs a look: first what costs reviewers most for nothing."""
    interval = worth.precision.interval
    if worth.is_paused or worth.check.level is Level.TELEMETRY:
        return 3, 0
    if interval is not None and interval.high < 0.5:
        return 0, -worth.said.dismissed
    if worth.waiting and interval is None:
        return 1, -worth.waiting
    if worth.waiting and interval is not None and interval.low <= 0.5:
        return 2, -worth.waiting
    return 3, 0
