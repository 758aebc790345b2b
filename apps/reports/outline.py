"""A report as blocks that every format draws: headings, facts, tables, cards.

Markdown and PDF are made from the same blocks, so neither says what the other does
not. A span keeps apart what we wrote (`own`, `strong`, `muted`) from what came out of
a trace or from a person (`said`, `code`): a format may style the first and must keep
the second inert.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from apps.reports.inert import MAX_TEXT, one_line

_CUT_MARK = 60

Kind = Literal["own", "strong", "muted", "said", "code"]


class Span(msgspec.Struct, frozen=True):
    """A piece of text of one origin."""

    text: str
    kind: Kind = "own"


Cell = tuple[Span, ...]


class Heading(msgspec.Struct, frozen=True, tag="heading", tag_field="block"):
    """A heading in our own words."""

    level: int
    text: str


class Paragraph(msgspec.Struct, frozen=True, tag="paragraph", tag_field="block"):
    """One paragraph."""

    cell: Cell


class Callout(msgspec.Struct, frozen=True, tag="callout", tag_field="block"):
    """A box that wants to be read: `tone` is `red`, `unknown` or `notice`."""

    tone: str
    title: str
    cell: Cell


class Tile(msgspec.Struct, frozen=True):
    """One number with its label and what it is out of."""

    label: str
    value: str
    note: str = ""


class Tiles(msgspec.Struct, frozen=True, tag="tiles", tag_field="block"):
    """Numbers side by side."""

    tiles: tuple[Tile, ...]


class Column(msgspec.Struct, frozen=True):
    """A column; `share` is its part of the width."""

    label: str
    share: float = 1.0
    is_number: bool = False


class Table(msgspec.Struct, frozen=True, tag="table", tag_field="block"):
    """A table; each row has a cell for each column."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Fact(msgspec.Struct, frozen=True):
    """A label and what it says."""

    label: str
    cell: Cell


class Facts(msgspec.Struct, frozen=True, tag="facts", tag_field="block"):
    """Labelled facts, in one or two columns."""

    facts: tuple[Fact, ...]
    columns: int = 1


class Bullets(msgspec.Struct, frozen=True, tag="bullets", tag_field="block"):
    """A list."""

    items: tuple[Cell, ...]


class Quote(msgspec.Struct, frozen=True, tag="quote", tag_field="block"):
    """Text of a person or a trace that may have several lines."""

    text: str


class Chart(msgspec.Struct, frozen=True, tag="chart", tag_field="block"):
    """A picture of a series; formats without pictures show the facts beside it."""

    svg: str


class Card(msgspec.Struct, frozen=True, tag="card", tag_field="block"):
    """One signal: a title in our words, its state, a headline, and blocks."""

    title: str
    state: str
    tone: str
    headline: str
    blocks: tuple[Facts | Quote | Chart | Paragraph | Table | Bullets | Heading, ...]


Block = (
    Heading
    | Paragraph
    | Callout
    | Tiles
    | Table
    | Facts
    | Bullets
    | Quote
    | Chart
    | Card
)


class Outline(msgspec.Struct, frozen=True):
    """A report ready to be drawn."""

    title: str
    project: str
    generated_at: str
    facts: tuple[Fact, ...]
    blocks: tuple[Block, ...]


def _inert(text: str) -> str:
    # The document holds visible texts already; a document that someone wrote by hand
    # must not act either.
    return one_line(text, limit=MAX_TEXT + _CUT_MARK)


def outside(text: str, kind: Kind = "said") -> Span:
    """A span of words from a trace or a person."""
    return Span(_inert(text), kind)


def own(text: str) -> Cell:
    """Our own words."""
    return (Span(text),)


def said(text: str | None) -> Cell:
    """Words from a trace or a person; nothing recorded is said so."""
    return (Span(_inert(text), "said"),) if text else (Span("not recorded", "muted"),)


def code(text: str | None) -> Cell:
    """A name, an id or a hash that came from outside."""
    return (Span(_inert(text), "code"),) if text else (Span("not recorded", "muted"),)


def muted(text: str) -> Cell:
    """Our own words, in the background."""
    return (Span(text, "muted"),)


def strong(text: str) -> Cell:
    """Our own words, stressed."""
    return (Span(text, "strong"),)
