"""A report as PDF, typeset by typst from the outline as data.

The template is ours and fixed; text from traces reaches it only as strings of a JSON
file, so it cannot be code there. Nothing is fetched: the compiler sees one private
folder, no packages and only the fonts beside this module.
"""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import typst

from apps.reports.coverage import characters_of
from apps.reports.layout import outline_of

MAX_CARDS: Final = 300

_ASCII_END: Final = 0x7E
# They shape or join what stands beside them and need no glyph.
_INVISIBLE: Final = frozenset({0x200C, 0x200D, 0xFE0E, 0xFE0F})
_HERE: Final = Path(__file__).parent
_TEMPLATE: Final = _HERE / "typst" / "report.typ"


def render(document: dict[str, Any]) -> bytes:
    """The PDF of a document's JSON values; raises `UnreadableReport`.

    The same document gives the same bytes. At most `MAX_CARDS` signals get a card;
    the PDF says how many more the markdown holds.
    """
    outline = outline_of(document, max_cards=MAX_CARDS)
    stamp = datetime.fromisoformat(document["generated_at"]).astimezone(UTC)
    with tempfile.TemporaryDirectory(prefix="evalsite-report-") as folder:
        root = Path(folder)
        shutil.copyfile(_TEMPLATE, root / "report.typ")
        drawable = written_out(msgspec.json.encode(outline).decode())
        (root / "report.json").write_text(drawable, encoding="utf-8")
        (root / "packages").mkdir()
        compiled: bytes = typst.compile(
            root / "report.typ",
            root=root,
            font_paths=_fonts(),
            ignore_system_fonts=True,
            package_path=root / "packages",
            package_cache_path=root / "packages",
            timestamp=stamp,
            format="pdf",
        )
    return compiled


def written_out(text: str) -> str:
    """`text` with each character that no font here holds as its number, `[U+1200]`."""
    strange = {c for c in set(text) if ord(c) > _ASCII_END and ord(c) not in _held()}
    if not strange:
        return text
    return text.translate({ord(c): f"[U+{ord(c):04X}]" for c in strange})


@cache
def _held() -> frozenset[int]:
    fonts = (_HERE / "fonts").glob("*.ttf")
    held = [characters_of(font.read_bytes()) for font in sorted(fonts)]
    return frozenset().union(_INVISIBLE, *held)


@cache
def _fonts() -> typst.Fonts:
    return typst.Fonts(
        include_system_fonts=False,
        include_embedded_fonts=False,
        font_paths=[_HERE / "fonts"],
    )
