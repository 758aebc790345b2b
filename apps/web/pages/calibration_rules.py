"""A check beside rules that anybody could follow without it."""

from __future__ import annotations

from typing import Final

import msgspec

from apps.engine.calibration import Rate, Rule, compare_rates, rate
from apps.review.calibration import Truth, TruthCount
from apps.web.pages.calibration_words import (
    RangeMark,
    points_in_words,
    range_mark,
    rate_in_words,
    whole_percent,
)

_TRUTH_WORDS: Final = {
    Truth.OUTCOME: (
        "The recorded outcome",
        "It judges the end of the whole run, not what the check looks at, and trials of "
        "one task are not independent.",
    ),
    Truth.BLIND: (
        "Blind looks",
        "A person judged the run without knowing what the checks said. Flagged traces "
        "are drawn more often than others, so shares here are not those of all traces.",
    ),
    Truth.DECISION: (
        "Decisions on signals",
        "People decided only where some check fired, and saw its evidence first: what "
        "no check fired at is not in it.",
    ),
}


class RuleTable(msgspec.Struct, frozen=True):
    """The check beside constant rules, against one kind of truth."""

    label: str
    weakness: str
    traces: int
    failures: int
    rows: list[tuple[str, str, str, RangeMark | None]]
    sentence: str


def rule_table(count: TruthCount) -> RuleTable:
    """The check and the constant rules, against one kind of truth."""
    label, weakness = _TRUTH_WORDS[count.truth]
    base = rate(count.failures, count.traces)
    found = {
        Rule.CHECK: rate(count.hits, count.flagged, nothing="fired at none of them"),
        Rule.ALWAYS: base,
        Rule.LONGEST: rate(
            count.longest_hits, count.flagged, nothing="flags none of them"
        ),
    }
    recall = {
        Rule.CHECK: rate(count.hits, count.failures, nothing="nothing failed"),
        Rule.ALWAYS: rate(count.failures, count.failures, nothing="nothing failed"),
        Rule.LONGEST: rate(
            count.longest_hits, count.failures, nothing="nothing failed"
        ),
    }
    rows = [
        (
            str(rule),
            rate_in_words(found[rule]),
            rate_in_words(recall[rule]),
            range_mark(found[rule]),
        )
        for rule in found
    ]
    rows.append((str(Rule.RANDOM), *_at_random(count), None))
    return RuleTable(
        label=label,
        weakness=weakness,
        traces=count.traces,
        failures=count.failures,
        rows=rows,
        sentence=_beside_rules(found[Rule.CHECK], count),
    )


def _at_random(count: TruthCount) -> tuple[str, str]:
    """What firing at random as often as the check would be expected to find."""
    expected = count.flagged * count.failures / count.traces
    share = whole_percent(count.failures / count.traces)
    found = f"{expected:.1f} of {count.flagged} ({share}\u202f%)"
    if not count.failures:
        return found, "nothing failed"
    recall = whole_percent(count.flagged / count.traces)
    return found, f"{expected:.1f} of {count.failures} ({recall}\u202f%)"


def _beside_rules(check: Rate, count: TruthCount) -> str:
    """Whether the check finds failures more often than firing at all traces would."""
    rest = rate(count.failures - count.hits, count.traces - count.flagged)
    compared = compare_rates(check, rest)
    if compared.difference is None or compared.interval is None:
        return "There is nothing to compare: it fired at all of them or at none."
    apart = points_in_words(compared.difference, compared.interval)
    if compared.interval.low > 0:
        word = "More of the traces at which it fired failed than of the others"
    elif compared.interval.high < 0:
        word = "Fewer of the traces at which it fired failed than of the others"
    else:
        word = "No difference can be told between where it fired and the other traces"
    return f"{word}: {apart}."
