"""What a batch may cost, as pages show it before anything starts."""

from __future__ import annotations

from typing import Final

import msgspec
from django.conf import settings
from django.utils import timezone

from apps.engine.replay.estimates import Estimate, Span
from apps.engine.replay.prices import in_words
from apps.engine.replay.run import TargetKind
from apps.isolation.sandbox.levels import LEVEL_WORDS, Level
from apps.replays.planning import Caps
from apps.replays.queries import TargetRow
from apps.web.pages.replay_isolation import Isolation, isolation_here
from apps.web.pages.replay_targets import IN_THE_SANDBOX
from apps.web.words import number_in_words

NOT_KNOWN: Final = "not known"


class EstimateRow(msgspec.Struct, frozen=True):
    """One quantity: at least, likely, at most."""

    label: str
    low: str
    likely: str
    worst: str


class EstimatePart(msgspec.Struct, frozen=True):
    """The estimate of a plan. Without `rows` something of the plan is still wrong."""

    sentence: str = ""
    rows: list[EstimateRow] = []
    runs: int = 0
    groups: int = 0
    left_out: int = 0
    at_most: str = ""
    unknown: list[str] = []
    assumptions: list[str] = []
    warnings: list[str] = []
    isolation: Isolation | None = None
    wrong: list[tuple[str, str]] = []


def estimate_part(
    found: Estimate,
    *,
    target: TargetRow,
    least: str,
    caps: Caps,
    price_problem: str = "",
) -> EstimatePart:
    """An estimate in words, with what a person should know before it starts."""
    kind = TargetKind(target.target.kind)
    isolation = isolation_here() if kind in IN_THE_SANDBOX else None
    unknown = [price_problem] if price_problem and found.micros is None else []
    return EstimatePart(
        sentence=found.sentence,
        rows=[
            _row("Model calls", found.calls),
            _row("Tokens in", found.input_tokens),
            _row("Tokens out", found.output_tokens),
            _money(found),
        ],
        runs=found.runs,
        groups=found.groups,
        left_out=found.left_out,
        at_most=seconds_in_words(found.seconds_at_most),
        unknown=[*unknown, *found.unknown],
        assumptions=list(found.assumptions),
        warnings=[
            *_of_target(target),
            *_of_caps(found, caps),
            *_of_isolation(isolation, least),
        ],
        isolation=isolation,
    )


def _row(label: str, span: Span | None) -> EstimateRow:
    if span is None:
        return EstimateRow(label, NOT_KNOWN, NOT_KNOWN, NOT_KNOWN)
    return EstimateRow(
        label, *(number_in_words(one) for one in (span.low, span.likely, span.worst))
    )


def _money(found: Estimate) -> EstimateRow:
    if found.micros is None:
        return EstimateRow("Money", NOT_KNOWN, NOT_KNOWN, NOT_KNOWN)
    spans = (found.micros.low, found.micros.likely, found.micros.worst)
    return EstimateRow("Money", *(in_words(one, found.currency) for one in spans))


def _of_target(row: TargetRow) -> list[str]:
    target, said = row.target, []
    if target.needs_key:
        said.append("The key of this target was refused; its runs would fail.")
    if target.paused_until is not None and target.paused_until > timezone.now():
        said.append("The target has asked all to wait; runs begin after that.")
    if target.kind == TargetKind.OPENAI and row.key is None:
        said.append("The target has no key: it is called without one.")
    if target.kind == TargetKind.HTTP and not settings.REPLAY_STUB_URL:
        said.append(
            "The tools of an HTTP agent cannot be answered: the operator has not set "
            "EVALSITE_REPLAY_STUB_URL."
        )
    return said


def _of_caps(found: Estimate, caps: Caps) -> list[str]:
    """Which caps are below what the runs are likely to use."""
    tokens = None
    if found.input_tokens is not None and found.output_tokens is not None:
        tokens = found.input_tokens.likely + found.output_tokens.likely
    calls = None if found.calls is None else found.calls.likely
    return [
        f"The cap of {number_in_words(cap)} {word} is below the likely "
        f"{number_in_words(likely)}: the batch may stop before all runs are made."
        for cap, likely, word in (
            (caps.calls, calls, "model calls"),
            (caps.tokens, tokens, "tokens"),
        )
        if cap is not None and likely is not None and likely > cap
    ]


def _of_isolation(isolation: Isolation | None, least: str) -> list[str]:
    if isolation is None:
        return []
    if not Level(isolation.level).is_at_least(Level(least)):
        return [
            f"The isolation reached here is {isolation.words}; {LEVEL_WORDS[Level(least)]} is "
            "the least that is asked for, so the runs would be refused."
        ]
    return []


def seconds_in_words(seconds: float) -> str:
    """`40 seconds`, `12 minutes`, `3.5 hours`."""
    if seconds < 120:
        return f"{seconds:,.0f} seconds"
    if seconds < 2 * 3_600:
        return f"{seconds / 60:,.0f} minutes"
    return f"{seconds / 3_600:,.1f} hours"
