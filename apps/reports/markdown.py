"""A report as markdown: complete, and readable without the product.

Text from traces and people cannot form structure: it stands in code spans and fences
that are longer than any run of backticks inside, unless it is made of harmless
characters only. What we wrote ourselves is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from apps.reports.inert import one_line, visible
from apps.reports.layout import outline_of
from apps.reports.outline import (
    Block,
    Bullets,
    Callout,
    Card,
    Cell,
    Chart,
    Facts,
    Heading,
    Outline,
    Paragraph,
    Quote,
    Span,
    Table,
    Tiles,
)

# Letters first, no markup; a point only ends a sentence or stands between digits, so
# that no list and no address can come out of it.
_HARMLESS: Final = re.compile(
    r"[^\W\d_](?:[\w ,;:%()'\u2019\u201c\u201d\u2026\u202f\u2013-]"
    r"|\.(?= |$)|(?<=\d)\.(?=\d))*"
)
_UNDERSCORE_OR_ADDRESS: Final = re.compile(r"_|www|https?:|ftp:", re.IGNORECASE)
_PUNCTUATION: Final = re.compile(r"([\\`*_\[\]<>|#~&!])")
_BACKTICKS: Final = re.compile("`+")


def render(document: dict[str, Any]) -> str:
    """The markdown of a document's JSON values; raises `UnreadableReport`.

    The same document gives the same text. Times are UTC.
    """
    outline = outline_of(document)
    parts = [_head(outline), *(_draw(block) for block in outline.blocks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(outline: Outline) -> str:
    title = f"# {_inline((Span(outline.title, 'said'),))}"
    return f"{title}\n\n{_facts(Facts(outline.facts))}"


def _draw(block: Block) -> str:
    draw: Callable[[Any], str] = _DRAWERS[type(block)]
    return draw(block)


def escaped(text: str) -> str:
    """Our own words with every character that could act as markdown escaped."""
    return _PUNCTUATION.sub(r"\\\1", text)


def code_span(text: str, *, in_table: bool = False) -> str:
    """`text` as one inert code span.

    Inside a table a `|` is escaped, since tables are split before code is read.
    """
    text = one_line(text)
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    if in_table:
        text = text.replace("|", "\\|")
    pad = " " if text[:1] in {"`", " "} or text[-1:] in {"`", " "} else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def fenced(text: str) -> str:
    """`text` as one inert fenced block; line breaks are kept."""
    text = visible(text)
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _said(text: str, *, in_table: bool) -> str:
    harmless = _HARMLESS.fullmatch(text) and not _UNDERSCORE_OR_ADDRESS.search(text)
    return text if harmless else code_span(text, in_table=in_table)


def _span(span: Span, *, in_table: bool) -> str:
    if not span.text.strip():
        return span.text
    if span.kind == "code":
        return code_span(span.text, in_table=in_table)
    lead = span.text[: len(span.text) - len(span.text.lstrip(" "))]
    tail = span.text[len(span.text.rstrip(" ")) :]
    text = span.text.strip(" ")
    if span.kind == "said":
        return f"{lead}{_said(text, in_table=in_table)}{tail}"
    words = escaped(text)
    return (
        f"{lead}**{words}**{tail}" if span.kind == "strong" else f"{lead}{words}{tail}"
    )


def _inline(cell: Cell, *, in_table: bool = False) -> str:
    return "".join(_span(span, in_table=in_table) for span in cell).strip()


def _heading(block: Heading) -> str:
    return f"{'#' * block.level} {escaped(block.text)}"


def _paragraph(block: Paragraph) -> str:
    return _inline(block.cell)


def _callout(block: Callout) -> str:
    return f"> **{escaped(block.title)}**\n>\n> {_inline(block.cell)}"


def _tiles(block: Tiles) -> str:
    return "\n".join(
        f"- {escaped(tile.label)}: **{escaped(tile.value)}** {escaped(tile.note)}".rstrip()
        for tile in block.tiles
    )


def _facts(block: Facts) -> str:
    return "\n".join(
        f"- **{escaped(one_line(fact.label))}:** {_inline(fact.cell)}"
        for fact in block.facts
    )


def _bullets(block: Bullets) -> str:
    return "\n".join(f"- {_inline(item)}" for item in block.items)


def _quote(block: Quote) -> str:
    return fenced(block.text)


def _table(block: Table) -> str:
    def lines() -> Iterator[str]:
        yield f"| {' | '.join(escaped(c.label) for c in block.columns)} |"
        yield f"|{'|'.join('---:' if c.is_number else '---' for c in block.columns)}|"
        for row in block.rows:
            yield f"| {' | '.join(_inline(cell, in_table=True) for cell in row)} |"

    return "\n".join(lines())


def _card(block: Card) -> str:
    parts = [
        f"### {escaped(block.title)}",
        f"**{escaped(block.state)}** · {_inline((Span(block.headline, 'said'),))}",
        *(_draw(inner) for inner in block.blocks),
    ]
    return "\n\n".join(part for part in parts if part)


def _chart(_: Chart) -> str:
    return ""


_DRAWERS: Final[dict[type, Callable[[Any], str]]] = {
    Heading: _heading,
    Paragraph: _paragraph,
    Callout: _callout,
    Tiles: _tiles,
    Facts: _facts,
    Bullets: _bullets,
    Quote: _quote,
    Table: _table,
    Card: _card,
    Chart: _chart,
}
