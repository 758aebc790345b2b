"""What axe and the eye would find on a page, and what of it depends on theme and width.

Contrast takes most of the time of axe. It follows from the colours of a text, its size
and weight and what its ancestors paint behind it, so where a page was already looked at
as a whole, two texts stand for all that are alike in all of these.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import axe_playwright_python
from playwright.sync_api import Page

AXE: Final = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
# Everything is drawn, and a change of theme is over at once.
STILL: Final = (
    "*, ::before, ::after {"
    " content-visibility: visible !important; transition: none !important }"
)
_TAGS: Final = (
    *("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"),
)
_RUN: Final = """async ([tags, rules]) => {
  const options = { runOnly: tags, rules, resultTypes: ['violations'] };
  return (await axe.run(document, options)).violations;
}"""
_CONTRAST_OF_ALIKE: Final = """async (most) => {
  const plain = 'rgba(0, 0, 0, 0)|none|1|none|normal';
  const behind = new Map([[null, '']]);
  const painted = (element) => {
    if (!behind.has(element)) {
      const style = getComputedStyle(element);
      const own = [
        style.backgroundColor, style.backgroundImage, style.opacity,
        style.filter, style.mixBlendMode,
      ].join('|');
      const above = painted(element.parentElement);
      behind.set(element, own === plain ? above : `${above};${own}`);
    }
    return behind.get(element);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const owners = new Set();
  while (texts.nextNode()) {
    if (texts.currentNode.nodeValue.trim()) owners.add(texts.currentNode.parentElement);
  }
  const counts = new Map(), include = [];
  for (const owner of owners) {
    const style = getComputedStyle(owner);
    const look = [
      owner.tagName, owner.className, style.color, style.fontSize, style.fontWeight,
      style.textShadow, style.webkitTextStroke, style.position, painted(owner),
    ].join(';');
    const count = (counts.get(look) ?? 0) + 1;
    counts.set(look, count);
    if (count <= most) include.push(owner);
  }
  if (!include.length) return [];
  const options = { runOnly: ['color-contrast'], resultTypes: ['violations'] };
  return (await axe.run({ include }, options)).violations;
}"""
_ALIKE: Final = 2


def make_ready(page: Page) -> None:
    """Let a page stand still and know axe; its context must bypass the page's policy."""
    page.add_style_tag(content=STILL)
    page.evaluate(AXE)


def problems_of(page: Page) -> list[str]:
    """Every rule on every element, and what sticks out or is cut off."""
    found = page.evaluate(_RUN, [_TAGS, {}])
    return [*map(_said, found), *_out_of_place(page)]


def problems_at_another_width(page: Page) -> list[str]:
    """The same of a page that holds at one width: contrast only once for texts alike."""
    found = page.evaluate(_RUN, [_TAGS, {"color-contrast": {"enabled": False}}])
    return [*map(_said, found), *problems_in_another_theme(page)]


def problems_in_another_theme(page: Page) -> list[str]:
    """What can be wrong in one theme alone, once for texts alike, and what sticks out."""
    found = page.evaluate(_CONTRAST_OF_ALIKE, _ALIKE)
    return [*map(_said, found), *_out_of_place(page)]


def too_wide(page: Page) -> list[str]:
    """What sticks out to the right of the window, unless its parent scrolls."""
    return page.evaluate(
        """() => {
          const edge = document.documentElement.clientWidth;
          if (document.documentElement.scrollWidth <= edge) return [];
          return [...document.body.querySelectorAll('*')]
            .filter((e) => e.getBoundingClientRect().right > edge + 1)
            .map((e) => `${e.tagName}.${e.className}`).slice(0, 8);
        }"""
    )


def cut_off(page: Page) -> list[str]:
    """Texts that a box without a scroll bar hides."""
    return page.evaluate(
        """() => [...document.querySelectorAll('main .row > *, main td, main dd, main .stat')]
          .filter((e) => {
            const style = getComputedStyle(e);
            const box = e.closest('.list, .card, .table-wrap');
            if (!box || style.textOverflow === 'ellipsis') return false;
            if (getComputedStyle(box).overflowX === 'auto') return false;
            return e.getBoundingClientRect().left + e.scrollWidth > box.getBoundingClientRect().right + 1;
          })
          .map((e) => `${e.className}: ${e.textContent.trim().slice(0, 60)}`).slice(0, 8)"""
    )


def _said(violation: dict) -> str:
    where = "; ".join(
        f"{' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for node in violation["nodes"][:3]
    )
    return f"{violation['id']}: {where}"


def _out_of_place(page: Page) -> list[str]:
    found = [f"too wide: {e}" for e in too_wide(page)]
    return found + [f"cut off: {e}" for e in cut_off(page)]
