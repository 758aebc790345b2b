"""How a report says what agents do alone: replays beside the pipeline, memory tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from apps.engine.consistency import LABELS, Stability
from apps.replays.results import LEVELS
from apps.reports.assessment import AlonePart, AssessmentPart, RecallPart
from apps.reports.outline import (
    Block,
    Bullets,
    Cell,
    Column,
    Heading,
    Paragraph,
    Span,
    Table,
    muted,
    own,
    said,
    strong,
)
from apps.reports.words import number, plural, short_rate

_NONE: Final = (
    "No agent was run alone, so what is said of agents rests on recorded traces only."
)
_WORDS: Final = (
    "Each was run alone on frozen inputs with its tools stubbed. Runs that did not finish "
    "stay in every denominator. Replays may make a verdict red or unstable, never green, "
    "and none of them counts among the traces, tasks, signals or outcomes of this report."
)
_COLUMNS: Final = (
    Column("Agent and case", 2.0),
    Column("Runs finished", 1.4),
    Column("Agreement", 1.1),
    Column("Breaches", 0.9, is_number=True),
    Column("Isolation", 1.6),
    Column("Beside the pipeline", 3.2),
)


def alone(found: AssessmentPart | None) -> tuple[Block, ...]:
    """The replays that count, and what memory tests showed; or that there are none."""
    if found is None:
        return ()
    of, heading = found.alone, Heading(2, "Agents alone")
    if not of.batches:
        return (heading, Paragraph(own(_NONE)))
    batches = "1 batch" if of.batches == 1 else f"{number(of.batches)} batches"
    counted = f"{batches} of replays with {plural(of.runs, 'run')}."
    blocks: list[Block] = [heading, Paragraph(own(f"{counted} {_WORDS}"))]
    if of.groups:
        blocks.append(Table(_COLUMNS, tuple(_row(one) for one in of.groups)))
    if of.recalls:
        blocks.append(Heading(3, "Memory tests"))
        blocks.append(Bullets(tuple(_recall(one) for one in of.recalls)))
    if not of.groups and not of.recalls:
        blocks.append(
            Paragraph(own("No case of them was run to its end, so none counts yet."))
        )
    if of.has_more:
        blocks.append(Paragraph(muted("Older ones count too and are not listed.")))
    return tuple(blocks)


def _row(one: AlonePart) -> tuple[Cell, ...]:
    return (
        (*said(one.agent), Span(" on "), *said(one.case), *muted(f" · {one.regime}")),
        own(short_rate(one.finished, "none executed")),
        own(LABELS[Stability(one.consistency)])
        if one.consistency
        else muted("none yet"),
        strong(number(one.breaches)) if one.breaches else own("0"),
        own(_levels(one.levels)),
        said(one.sentence)
        if one.sentence
        else muted("not compared: its case was not frozen from a recorded trace"),
    )


def _levels(levels: Mapping[str, int]) -> str:
    said_of = [
        f"{LEVELS.get(level, level or 'not known')} {number(count)}"
        for level, count in levels.items()
    ]
    return "; ".join(said_of) or "not known"


def _recall(one: RecallPart) -> Cell:
    finished = short_rate(one.finished, "none executed")
    return (
        *said(one.agent),
        Span(": "),
        *(
            said(one.sentence)
            if one.sentence
            else muted("nothing is known of its facts.")
        ),
        *muted(f" {finished} of its runs finished; {_levels(one.levels)}."),
    )
