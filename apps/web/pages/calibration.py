"""The calibration of one key of a check: is it worth what reviewers spend on it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from apps.accounts.permissions import Permission
from apps.engine.calibration import Rate, Rule, compare_rates, rate
from apps.engine.check import Check, Level
from apps.engine.nulls import Association
from apps.reports.words import association as association_in_words
from apps.review.calibration import (
    Groups,
    Said,
    Truth,
    blind_counts,
    named_steps,
    said_of,
    truths_of,
)
from apps.review.misses import Misses, misses_of
from apps.review.transitions import DismissalReason
from apps.screening.calibration import (
    GroupKind,
    outcomes_of,
    parameters_of,
    rates_of,
)
from apps.web.access import Place
from apps.web.pages.calibration_groups import GroupsPart, groups_part
from apps.web.pages.calibration_keys import KeyChoice, asked_for, key_choices
from apps.web.pages.calibration_rules import RuleTable, rule_table
from apps.web.pages.calibration_trend import TrendPart, trend_part
from apps.web.pages.calibration_words import (
    FEWEST,
    RangeMark,
    interval_in_words,
    points_in_words,
    range_mark,
    rate_in_words,
    verdict_on_misses,
    verdict_on_precision,
    whole_percent,
)
from apps.web.pages.uploads import FORMAT_LABELS


class Line(msgspec.Struct, frozen=True):
    """One rate with its mark, in words."""

    label: str
    words: str
    mark: RangeMark | None
    note: str = ""


class OutcomeRow(msgspec.Struct, frozen=True):
    """How firing goes with the outcome in one group, in words."""

    label: str
    table: Association
    sentence: str
    is_few: bool


class CalibrationPage(msgspec.Struct, frozen=True):
    """Everything that is known about the worth of one key of a check."""

    place: Place
    slug: str
    label: str
    check: Check | None
    is_paused: bool
    defined_slug: str
    pause_refusal: str
    level: str
    chosen: KeyChoice
    beside: KeyChoice | None
    choices: list[KeyChoice]
    parameters: list[tuple[str, str]]
    verdicts: list[str]
    precision: Line
    said: Said
    undecided: int
    reasons: list[Line]
    misses: Misses
    miss_lines: list[Line]
    rules: list[RuleTable]
    steps: list[tuple[str, str]]
    named: int
    outcomes: list[OutcomeRow]
    groups: GroupsPart
    trend: TrendPart
    compared: list[tuple[str, str, str, str]]


def calibration_page(
    place: Place, slug: str, query: Mapping[str, str]
) -> CalibrationPage:
    """The calibration of the key that the address asks for, else of the current one.

    Raises `Http404` for a check that is neither in the line-up nor has ever answered
    here. The number of queries does not grow with what is stored.
    """
    choices = key_choices(place, slug)
    chosen = asked_for(choices, query.get("key", "")) or choices[0]
    others = [one for one in choices if one.key != chosen.key]
    beside = asked_for(others, query.get("beside", ""))
    if beside is None and "beside" not in query:
        beside = next((one for one in others if one.answers.applicable), None)
    return _Page(place, slug, choices, chosen, beside).page()


class _Page:
    """Asks for what one page shows and puts it into words."""

    def __init__(
        self,
        place: Place,
        slug: str,
        choices: list[KeyChoice],
        chosen: KeyChoice,
        beside: KeyChoice | None,
    ) -> None:
        self.place = place
        self.slug = slug
        self.choices = choices
        self.chosen = chosen
        self.beside = beside
        keys = [chosen.key, *([beside.key] if beside else [])]
        self.rates = rates_of(project=place.project, keys=keys)
        self.groups_said = said_of(
            project=place.project, keys=keys, kinds=list(GroupKind)
        )
        self.said = _all(self.groups_said[chosen.key])
        self.entry = place.lineup.by_slug.get(slug)

    def page(self) -> CalibrationPage:
        """The whole page."""
        project, key = self.place.project, self.chosen.key
        misses = misses_of(blind_counts(project=project, keys=[key])[key])
        check = self.entry.check if self.entry else None
        level = check.level.value if check else Level.REVIEW_SIGNAL.value
        precision = rate(self.said.confirmed, self.said.decided)
        queued = self.chosen.answers.queued
        named = named_steps(project=project, key=key)
        truths = truths_of(project=project, key=key)
        groups = groups_part(project, self.rates[key], self.groups_said[key])
        return CalibrationPage(
            place=self.place,
            slug=self.slug,
            label=check.label if check else self.slug,
            check=check,
            is_paused=self.entry is not None and self.entry.is_paused,
            defined_slug=self.entry.defined_slug if self.entry else "",
            pause_refusal=self.place.refusal(Permission.MANAGE_CHECKS),
            level=level,
            chosen=self.chosen,
            beside=self.beside,
            choices=self.choices,
            parameters=[
                (name, str(value))
                for name, value in sorted(
                    parameters_of(project=project, key=key).items()
                )
            ],
            verdicts=[
                verdict_on_precision(self.said, precision, queued, level),
                verdict_on_misses(misses),
            ],
            precision=Line(
                "Confirmed", rate_in_words(precision), range_mark(precision)
            ),
            said=self.said,
            undecided=max(0, queued - self.said.looked_at),
            reasons=_reasons(self.said),
            misses=misses,
            miss_lines=_miss_lines(misses),
            rules=[rule_table(truths[one]) for one in Truth if one in truths],
            steps=[
                (str(Rule.CHECK), f"{named.in_evidence} of {named.named}"),
                (str(Rule.LAST_STEP), f"{named.last} of {named.named}"),
                (str(Rule.RANDOM_STEP), f"{named.by_chance:.1f} of {named.named}"),
            ],
            named=named.named,
            outcomes=_outcomes(outcomes_of(project=project, key=key)),
            groups=groups,
            trend=trend_part(
                [
                    (one.label, self.rates[one.key], self.groups_said[one.key])
                    for one in (self.chosen, self.beside)
                    if one is not None
                ],
                uploads=groups.upload_names,
            ),
            compared=self._compared(),
        )

    def _compared(self) -> list[tuple[str, str, str, str]]:
        """The chosen key beside the other one: what, this, that, the difference."""
        if self.beside is None:
            return []
        this, that = self.chosen.answers, self.beside.answers
        other = _all(self.groups_said[self.beside.key])
        pairs = [
            ("Signals of applicable answers", (this.signals, this.applicable),
             (that.signals, that.applicable)),
            ("Review signals of applicable answers", (this.queued, this.applicable),
             (that.queued, that.applicable)),
            ("Confirmed of decided", (self.said.confirmed, self.said.decided),
             (other.confirmed, other.decided)),
        ]  # fmt: skip
        return [
            (
                label,
                rate_in_words(rate(*one)),
                rate_in_words(rate(*two)),
                _apart(one, two),
            )
            for label, one, two in pairs
        ]


def _apart(one: tuple[int, int], two: tuple[int, int]) -> str:
    compared = compare_rates(rate(*one), rate(*two))
    if compared.difference is None:
        return "—"
    return points_in_words(compared.difference, None)


def _all(groups: Groups) -> Said:
    return groups.get((GroupKind.ALL, ""), Said())


def _reasons(said: Said) -> list[Line]:
    """Each reason of dismissal as a share of what was decided, the largest first."""
    labels = dict(DismissalReason.choices)
    found = []
    for reason, number in sorted(
        said.reasons.items(), key=lambda one: (-one[1], one[0])
    ):
        share = rate(number, said.decided)
        found.append(
            Line(labels.get(reason, reason), rate_in_words(share), range_mark(share))
        )
    return found


def _miss_lines(misses: Misses) -> list[Line]:
    lines = [
        Line(
            "Where it stayed quiet", _failures(misses.quiet), range_mark(misses.quiet)
        ),
        Line("Where it fired", _failures(misses.fired), range_mark(misses.fired)),
    ]
    if misses.weighted is not None and misses.interval is not None:
        share = whole_percent(misses.weighted)
        lines.append(
            Line(
                "Weighted back to all traces where it is quiet",
                f"{share}\u202f%, {interval_in_words(misses.interval)}",
                None,
                f"{misses.quiet_traces} traces",
            )
        )
    return lines


def _failures(of: Rate) -> str:
    if of.value is None:
        return of.nothing
    return f"a failure in {rate_in_words(of)}"


def _outcomes(
    found: Sequence[tuple[GroupKind, str, Association]],
) -> list[OutcomeRow]:
    """Over all traces first, then each group that is not all of them again."""
    whole = [table.traces for kind, _, table in found if kind is GroupKind.ALL]
    return [
        OutcomeRow(
            label=_group_label(kind, name),
            table=table,
            sentence=association_in_words(table),
            is_few=table.traces < FEWEST,
        )
        for kind, name, table in found
        if kind is GroupKind.ALL or table.traces < whole[0]
    ]


def _group_label(kind: GroupKind, name: str) -> str:
    if kind is GroupKind.ALL:
        return "All traces with a recorded pass or fail"
    if kind is GroupKind.FORMAT:
        return f"format: {FORMAT_LABELS.get(name, name)}"
    return name if kind is GroupKind.DOMAIN else f"model: {name}"
