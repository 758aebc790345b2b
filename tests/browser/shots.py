"""Takes the pictures of `manage.py shot`; runs with the addresses that it sets."""

from __future__ import annotations

import sys
from pathlib import Path

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402 - after the set-up
from playwright.sync_api import Browser, Page  # noqa: E402
from pytest_django.live_server_helper import LiveServer  # noqa: E402

from apps.accounts.models import User  # noqa: E402
from tests.browser.chromium import (  # noqa: E402
    NARROW,
    WIDE,
    browsing,
    context_of,
)
from tests.browser.scenes import Scene, furnish, scenes_of  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".shots"
SHARED = ROOT.parent / "shared" / "data"
TALLEST = 4_000


def _settle(page: Page) -> None:
    """Wait for fonts and for charts, which draw themselves once they come near."""
    page.evaluate("document.fonts.ready")
    for chart in page.locator("[data-chart]").all():
        chart.scroll_into_view_if_needed()
        page.wait_for_function(
            "e => e.classList.contains('is-drawn')", arg=chart.element_handle()
        )
    page.evaluate("scrollTo(0, 0)")


def _take(page: Page, scene: Scene, name: str) -> None:
    page.goto(scene.path)
    # What is far below is not drawn before someone scrolls; a picture shows all of it.
    page.add_style_tag(content="* { content-visibility: visible !important }")
    _settle(page)
    height = page.evaluate("document.documentElement.scrollHeight")
    width = page.evaluate("document.documentElement.scrollWidth")
    page.screenshot(
        path=FOLDER / f"{name}.png",
        full_page=True,
        clip={"x": 0, "y": 0, "width": width, "height": min(height, TALLEST)},
    )


def take_all(
    browser: Browser, *, address: str, owner: User, scenes: list[Scene]
) -> int:
    """Take every scene in both themes and widths; returns how many pictures."""
    taken = 0
    for theme in ("light", "dark"):
        for viewport in (WIDE, NARROW):
            look = {"color_scheme": theme, "viewport": viewport, "bypass_csp": True}
            inside = context_of(browser, address=address, user=owner, **look)
            outside = context_of(browser, address=address, **look)
            pages = {False: inside.new_page(), True: outside.new_page()}
            for scene in scenes:
                name = f"{scene.name}-{theme}-{viewport['width']}"
                _take(pages[scene.is_public], scene, name)
                taken += 1
            inside.close()
            outside.close()
    return taken


def main(wanted: list[str]) -> int:
    """Furnish a project and take the pictures; returns the exit code."""
    call_command("migrate", interactive=False, verbosity=0)
    owner = User.objects.create_user(
        username="owner", first_name="Olga", last_name="Nowak"
    )
    reviewer = User.objects.create_user(
        username="ana", first_name="Ana", last_name="Reyes"
    )
    shared = SHARED if SHARED.is_dir() else None
    scenes = scenes_of(furnish(owner=owner, reviewer=reviewer, shared=shared))
    if unknown := set(wanted) - {scene.name for scene in scenes}:
        known = ", ".join(scene.name for scene in scenes)
        print(f"No page is called {', '.join(sorted(unknown))}. There are: {known}.")
        return 2
    chosen = [scene for scene in scenes if not wanted or scene.name in wanted]
    FOLDER.mkdir(exist_ok=True)
    # Errors as people see them, not as developers do.
    settings.DEBUG = False
    server = LiveServer("localhost")
    try:
        with browsing() as browser:
            count = take_all(browser, address=server.url, owner=owner, scenes=chosen)
    finally:
        server.stop()
    print(f"{count} pictures are in {FOLDER.name}/.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
