from __future__ import annotations

import io
import re
import socket
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pypdf
import pytest

from apps.reports import pdf
from apps.reports.layout import outline_of
from apps.reports.outline import Card, Facts, Table
from tests.reports import documents
from tests.reports.hostile_documents import hostile


def pages_of(content: bytes) -> pypdf.PdfReader:
    return pypdf.PdfReader(io.BytesIO(content))


def joined(text: str) -> str:
    """Without line breaks and blanks, so that wrapped words are whole again."""
    return re.sub(r"\s+", "", text)


def text_of(document: dict[str, Any], *, pages: int | None = None) -> str:
    reader = pages_of(pdf.render(document))
    return joined("".join(page.extract_text() for page in reader.pages[:pages]))


def cells_of(blocks: Any) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, Table):
            cells = [cell for row in block.rows for cell in row]
        elif isinstance(block, Facts):
            cells = [fact.cell for fact in block.facts]
        else:
            cells = []
            if isinstance(block, Card):
                yield block.headline
                yield from cells_of(block.blocks)
        yield from ("".join(span.text for span in cell) for cell in cells)


ODD = (
    "日本語の名前",
    "한국어 이름",
    "<script>alert(1)</script><link rel=attachment href=file:///etc/passwd>",
    '#read("/etc/passwd") $x$ @ref *bold* _it_ `raw` \\ // comment /* x */',
    "a_word_without_any_break_" * 6,
    "emoji 🚀 and ∑ ≤ →",
    "Ελληνικά Кириллица Tiếng Việt",
    "ภาษาไทย",
)


@pytest.mark.parametrize("words", ODD)
def test_every_cell_is_found_in_the_text_of_the_pdf(words):
    base = hostile(words=words, long="")
    text = text_of(base)
    cells = list(cells_of(outline_of(base).blocks))
    assert len(cells) > 80
    missing = [cell for cell in cells if joined(cell) not in text]
    # A cell that runs over the end of a page has the footer in its middle.
    assert len(missing) <= 3, missing
    assert joined(words) in text


def test_every_cell_of_twenty_two_collapses_is_found():
    document = documents.with_collapses(22)
    text = text_of(document)
    cells = list(cells_of(outline_of(document).blocks))
    assert [c for c in cells if joined(c) and joined(c) not in text] == []
    assert "appliedtonothing" in text
    assert joined("about 19.3 (12 to 27)") in text
    assert joined("Tool drift: within what chance gives.") in text


def test_a_character_that_no_font_holds_is_written_as_its_number():
    text = text_of(documents.document(title="a \u1200 한 b"))
    assert "a[U+1200]한b" in text


def test_a_note_in_japanese_is_found():
    assert joined(documents.NOTE) in text_of(documents.with_decision())


def test_the_same_document_gives_the_same_bytes():
    document = documents.with_decision()
    assert pdf.render(document) == pdf.render(document)


def test_its_dates_come_from_the_document():
    reader = pages_of(pdf.render(documents.document()))
    assert "20261130071042" in str(reader.metadata["/CreationDate"])


def test_hostile_text_is_drawn_and_does_nothing(monkeypatch):
    def refuse(*_: Any) -> None:
        raise AssertionError("the PDF asked for the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    content = pdf.render(hostile())
    reader = pages_of(content)
    assert reader.attachments == {}
    assert not [page for page in reader.pages if page.get("/Annots")]
    for act in (b"/URI", b"/JavaScript", b"/EmbeddedFile", b"/Launch", b"/OpenAction"):
        assert act not in content
    text = joined("".join(page.extract_text() for page in reader.pages))
    assert "<script>alert(1)</script>" in text
    assert "root:" not in text


@pytest.fixture(scope="module")
def hostile_pdf() -> bytes:
    return pdf.render(hostile())


def test_no_line_runs_out_of_the_page(hostile_pdf):
    reader = pages_of(hostile_pdf)
    right: list[float] = []

    def keep(text: str, cm: Any, tm: Any, *_: Any) -> None:
        if text.strip():
            right.append(cm[0] * tm[4] + cm[4])

    for page in reader.pages:
        page.extract_text(visitor_text=keep)
    width = float(reader.pages[0].mediabox.width)
    assert max(right) < width - 40


def test_a_word_of_a_million_letters_is_cut_and_says_so():
    signal = documents.decay_signal(headline="x" * 1_000_000)
    start = time.monotonic()
    text = text_of(documents.document(signals=(signal,), signals_selected=1))
    assert time.monotonic() - start < 20
    assert "morecharacters]" in text


def test_three_hundred_signals_take_less_than_ten_seconds():
    document = documents.with_collapses(300)
    start = time.monotonic()
    content = pdf.render(document)
    assert time.monotonic() - start < 10
    assert len(content) < 20_000_000


def test_more_signals_than_it_draws_are_counted():
    text = text_of(documents.with_collapses(pdf.MAX_CARDS + 7), pages=3)
    assert "Cutat300signals:7moreareinthemarkdown" in text


def test_pages_are_numbered_out_of_all():
    reader = pages_of(pdf.render(documents.with_decision()))
    count = len(reader.pages)
    for number, page in enumerate(reader.pages, start=1):
        assert f"{number} of {count}" in page.extract_text()


def test_a_report_without_signals_does_not_sound_like_a_pass():
    text = text_of(documents.document())
    assert joined("it does not say that the traces are without fault") in text
    assert joined("Not checked is not passed.") in text


def test_only_our_own_fonts_are_used(hostile_pdf):
    reader = pages_of(hostile_pdf)
    names = {
        str(font.get_object()["/BaseFont"]).split("+")[-1]
        for page in reader.pages
        for font in page["/Resources"].get("/Font", {}).values()
    }
    ours = ("Inter", "JetBrainsMono", "DejaVuSans", "DroidSansFallback")
    ours += ("GothicA1", "NotoEmoji", "NotoSansThai", "NotoSansDevanagari")
    assert names
    assert [name for name in names if not name.startswith(ours)] == []


def test_the_series_with_missing_values_is_no_picture_of_zero():
    document = hostile(words="plain", long="")
    svg = outline_of(document).blocks
    cards = [block for block in svg if isinstance(block, Card)]
    assert "?" in msgspec.json.encode(cards[0]).decode()
