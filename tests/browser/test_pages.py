from __future__ import annotations

import json

import pytest

from tests.browser.chromium import WIDE
from tests.browser.rules import (
    make_ready,
    problems_at_another_width,
    problems_in_another_theme,
    problems_of,
)
from tests.browser.scenes import scenes_of


def assert_pages_hold(
    open_page, furnished, *, viewport, first: str, second: str, problems_of=problems_of
):
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
        make_ready(page)
        problems = problems_of(page)
        if answer.status != scene.status:
            problems.append(f"answered with {answer.status}")
        # The other theme differs in its colours alone.
        page.emulate_media(color_scheme=second)
        problems += problems_in_another_theme(page)
        if problems:
            wrong[scene.name] = problems
    assert wrong == {}, json.dumps(wrong, indent=1, ensure_ascii=False)


# The narrow ones are a file of their own, so that two processes share the walk.
def test_no_page_breaks_a_rule_of_accessibility_or_sticks_out(open_page, furnished):
    assert_pages_hold(open_page, furnished, viewport=WIDE, first="light", second="dark")


@pytest.mark.parametrize(
    "odd",
    [
        '<p class="row"><b style="color: #ccc">one</b></p>',
        '<p class="row" style="background: #333"><b>one</b></p>',
        '<div style="opacity: 0.3"><p class="row"><b>one</b></p></div>',
        '<p class="row"><b style="font-size: 12px; color: #808080">one</b></p>',
        '<p class="row"><i style="color: #ccc">one</i></p>',
    ],
    ids=["colour", "behind", "faint", "small", "other"],
)
@pytest.mark.parametrize(
    "look", [problems_of, problems_at_another_width, problems_in_another_theme]
)
def test_a_text_that_is_hard_to_read_is_found_among_many_that_are_not(page, odd, look):
    alike = '<p class="row"><b>many</b></p>' * 50
    page.set_content(
        f'<html lang="en"><title>t</title><main>{alike}{odd}{alike}</main>'
    )
    make_ready(page)
    assert "color-contrast" in " ".join(look(page))
