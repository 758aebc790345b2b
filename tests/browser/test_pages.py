from __future__ import annotations

import json
from pathlib import Path

import axe_playwright_python

from tests.browser.chromium import WIDE
from tests.browser.scenes import scenes_of

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
# Everything is drawn, and a change of theme is over at once.
STILL = (
    "*, ::before, ::after {"
    " content-visibility: visible !important; transition: none !important }"
)
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
RUN = """async (rules) => {
  const options = { runOnly: rules, resultTypes: ['violations'] };
  return (await axe.run(document, options)).violations;
}"""


def said(violation: dict) -> str:
    where = "; ".join(
        f"{' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for node in violation["nodes"][:3]
    )
    return f"{violation['id']}: {where}"


def too_wide(page) -> list[str]:
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


def cut_off(page) -> list[str]:
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


def problems_of(page, *, rules: list[str]) -> list[str]:
    found = [said(violation) for violation in page.evaluate(RUN, rules)]
    found += [f"too wide: {e}" for e in too_wide(page)]
    return found + [f"cut off: {e}" for e in cut_off(page)]


def assert_pages_hold(open_page, furnished, *, viewport, first: str, second: str):
    """No page has anything that axe or the eye would find, in either theme."""
    owner = furnished.members.get(username="furnisher")
    # Axe is put into the page, which the page's own policy forbids.
    look = {"color_scheme": first, "viewport": viewport, "bypass_csp": True}
    inside, outside = open_page(owner, **look), open_page(None, **look)
    wrong = {}
    for scene in scenes_of(furnished):
        page = outside if scene.is_public else inside
        page.emulate_media(color_scheme=first)
        answer = page.goto(scene.path)
        page.add_style_tag(content=STILL)
        page.evaluate(AXE)
        problems = problems_of(page, rules=TAGS)
        if answer.status != scene.status:
            problems.append(f"answered with {answer.status}")
        # The other theme differs in its colours alone.
        page.emulate_media(color_scheme=second)
        problems += problems_of(page, rules=["color-contrast"])
        if problems:
            wrong[scene.name] = problems
    assert wrong == {}, json.dumps(wrong, indent=1, ensure_ascii=False)


# The narrow ones are a file of their own, so that two processes share the walk.
def test_no_page_breaks_a_rule_of_accessibility_or_sticks_out(open_page, furnished):
    assert_pages_hold(open_page, furnished, viewport=WIDE, first="light", second="dark")
