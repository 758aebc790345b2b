"""The contracts in force, with who wrote which version when, so that verdicts hold up."""

from __future__ import annotations

from typing import Final

from apps.reports.assessment import AssessmentPart, ContractPart, DefinitionPart
from apps.reports.outline import (
    Block,
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
from apps.reports.words import moment, number, plural

_COLUMNS: Final = (
    Column("Contract", 1.6),
    Column("What it asks", 4.4),
    Column("Held", 0.7, is_number=True),
    Column("Broken", 0.8, is_number=True),
    Column("Undecided", 1.0, is_number=True),
    Column("Did not apply", 1.0, is_number=True),
)
_OUTCOME_COLUMNS: Final = (Column("Tasks", 1.6), Column("What is expected", 6.0))


def contracts(found: AssessmentPart | None) -> tuple[Block, ...]:
    """The appendix of contracts and expectations; nothing in old documents."""
    if found is None:
        return ()
    blocks: list[Block] = [Heading(2, "Appendix: contracts in force")]
    if not found.definitions:
        words = (
            "No contract is asked of any agent, and nothing is expected of outcomes."
        )
        return (*blocks, Paragraph(own(words)))
    for one in found.definitions:
        blocks += _of(one)
    if found.definitions_left_out:
        more = f"And contracts of {plural(found.definitions_left_out, 'more agent')}."
        blocks.append(Paragraph(muted(more)))
    return tuple(blocks)


def _of(one: DefinitionPart) -> list[Block]:
    title = (
        (Span("Agent ", "strong"), *said(one.agent))
        if one.agent
        else strong("Outcomes of tasks")
    )
    note = (Span(" · "), *said(one.note)) if one.note else ()
    who: Cell = (
        *title,
        Span(f" · version {number(one.number)} · {moment(one.at)} · "),
        *said(one.by),
        *note,
    )
    decision = (
        Span("Agent decision: " if one.agent else "Decision of the whole: ", "muted"),
        *said(one.decision),
    )
    blocks: list[Block] = [Paragraph(who), Paragraph(decision)]
    if one.contracts:
        columns = _COLUMNS if one.agent else _OUTCOME_COLUMNS
        row = _contract_row if one.agent else _expectation_row
        blocks.append(Table(columns, tuple(row(each) for each in one.contracts)))
    else:
        blocks.append(Paragraph(muted("No contract.")))
    if one.left_out:
        more = f"And {number(one.left_out)} more, all in force."
        blocks.append(Paragraph(muted(more)))
    return blocks


def _contract_row(one: ContractPart) -> tuple[Cell, ...]:
    return (
        said(one.name),
        _sentence(one),
        *(
            muted("not scored") if count is None else own(number(count))
            for count in (one.held, one.broken, one.undecided, one.not_applying)
        ),
    )


def _expectation_row(one: ContractPart) -> tuple[Cell, ...]:
    return (said(one.name), _sentence(one))


def _sentence(one: ContractPart) -> Cell:
    if not one.own_words:
        return said(one.sentence)
    return (*said(one.own_words), Span(" · ", "muted"), *said(one.sentence))
