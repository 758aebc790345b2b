from __future__ import annotations

from tests.browser.chromium import NARROW
from tests.browser.rules import problems_at_another_width
from tests.browser.test_pages import assert_pages_hold


def test_no_narrow_page_breaks_a_rule_of_accessibility_or_sticks_out(
    open_page, furnished
):
    assert_pages_hold(
        open_page,
        furnished,
        viewport=NARROW,
        first="dark",
        second="light",
        problems_of=problems_at_another_width,
    )
