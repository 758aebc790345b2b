"""What a batch may cost, as pages show it before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
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

_NO_PRICE: Final = "not known: there is no price for its model"
_ELSEWHERE: Final = (
    "not known: the agent runs elsewhere, and what it asks is not seen",
    "What the agent asks elsewhere is not seen, so each time that it is asked counts as "
    "one call under a cap on calls. Of tokens those count that it tells of; where it "
    "tells of none, all that the limits of a run allow count. A cap on money cannot be "
    "held.",
)
_WITH_MODEL: Final = (
    "not known: its own code decides how often it asks its model",
    "It asks its model through Evalsite, as often as the limits of a run allow. Each of "
    "these calls is held against every cap at its worst before it is made; where its "
    "usage is not told, the worst counts. A cap on money refuses calls whose price is "
    "not known.",
)
_WITHOUT_MODEL: Final = (
    "not known: no model is set for it, so none of its calls is seen",
    "No model is set for this target, so neither calls of models nor tokens nor money "
    "are seen. Each run counts as one call under a cap on calls (in a memory test each "
    "turn of a command does). A cap on tokens is never reached, and one on money cannot "
    "be held.",
)


class EstimateRow(msgspec.Struct, frozen=True):
    """One quantity: at least, likely, at most; or in `words` why it is not known."""

    label: str
    low: str = ""
    likely: str = ""
    worst: str = ""
    words: str = ""


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
    words, on_caps = _unseen(target)
    if on_caps:
        unknown.append(on_caps)
    return EstimatePart(
        sentence=found.sentence,
        rows=_rows(found, words),
        runs=found.runs,
        groups=found.groups,
        left_out=found.left_out,
        at_most=seconds_in_words(found.seconds_at_most),
        unknown=[*unknown, *found.unknown],
        assumptions=list(found.assumptions),
        warnings=[
            *_of_target(target),
            *_of_caps(found, target, caps),
            *_of_isolation(isolation, least),
        ],
        isolation=isolation,
    )


def _unseen(row: TargetRow) -> tuple[str, str]:
    """Why its calls are not known before, and what that means for caps; or two ""."""
    kind = TargetKind(row.target.kind)
    if kind is TargetKind.HTTP:
        return _ELSEWHERE
    if kind not in IN_THE_SANDBOX:
        return "", ""
    return _WITH_MODEL if row.version.settings.get("base_url") else _WITHOUT_MODEL


def _rows(found: Estimate, words: str) -> list[EstimateRow]:
    """A row for each quantity that is known, and one for all that are not."""
    spans = (
        ("Model calls", found.calls),
        ("Tokens in", found.input_tokens),
        ("Tokens out", found.output_tokens),
    )
    rows = [_row(label, span) for label, span in spans if span is not None]
    left = [label for label, span in spans if span is None]
    if left:
        label = f"{', '.join(left)} and money".capitalize()
        return [*rows, EstimateRow(label, words=words)]
    return [*rows, _money(found)]


def _row(label: str, span: Span) -> EstimateRow:
    return EstimateRow(
        label, *(number_in_words(one) for one in (span.low, span.likely, span.worst))
    )


def _money(found: Estimate) -> EstimateRow:
    if found.micros is None:
        return EstimateRow("Money", words=_NO_PRICE)
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


def _of_caps(found: Estimate, row: TargetRow, caps: Caps) -> Iterator[str]:
    """Which caps are below what the runs are likely to use, or are never reached."""
    likely = (
        (caps.calls, _likely_calls(found, row), "calls"),
        (caps.tokens, _likely_tokens(found), "tokens"),
    )
    for cap, count, word in likely:
        if cap is not None and count is not None and count > cap:
            yield (
                f"The cap of {number_in_words(cap)} {word} is below the likely "
                f"{number_in_words(count)}: the batch may stop before all runs are made."
            )
    if caps.tokens is not None and _unseen(row) is _WITHOUT_MODEL:
        yield (
            f"The cap of {number_in_words(caps.tokens)} tokens is never reached: no "
            "token of this target is seen."
        )


def _likely_calls(found: Estimate, row: TargetRow) -> int | None:
    """How many calls are likely to count under a cap; `None` where it is not known."""
    unseen = _unseen(row)
    is_callable = row.target.kind == TargetKind.CALLABLE
    if unseen is _WITHOUT_MODEL and (is_callable or found.calls is None):
        return found.runs
    if unseen is _ELSEWHERE and found.calls is None:
        return found.runs
    return None if found.calls is None else found.calls.likely


def _likely_tokens(found: Estimate) -> int | None:
    if found.input_tokens is None or found.output_tokens is None:
        return None
    return found.input_tokens.likely + found.output_tokens.likely


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
