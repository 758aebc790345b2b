"""Starts the system's Chromium, and signs people in without a form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Error, sync_playwright

from apps.accounts.models import User
from evalsite.chromium import ensure_chromium

WIDE = {"width": 1440, "height": 900}
NARROW = {"width": 390, "height": 844}
FLAGS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-first-run",
    "--no-proxy-server",
    # Whatever is not loopback has no address, so nothing can leave this machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
]


@contextmanager
def browsing() -> Iterator[Browser]:
    """One Chromium; ends with the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=ensure_chromium(), args=FLAGS
        )
        try:
            yield browser
        finally:
            browser.close()


def sign_in(context: BrowserContext, *, user: User, address: str) -> None:
    """Give the context a session of `user`."""
    client = Client()
    client.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    context.add_cookies(
        [{"name": name, "value": client.cookies[name].value, "url": address}]
    )


def context_of(
    browser: Browser, *, address: str, user: User | None = None, **more: Any
) -> BrowserContext:
    """A browser window of its own, signed in when `user` is given."""
    options: dict[str, Any] = {
        "base_url": address,
        "viewport": WIDE,
        "locale": "en-GB",
        "timezone_id": "Europe/Berlin",
        "reduced_motion": "reduce",
        **more,
    }
    context = browser.new_context(**options)
    context.set_default_timeout(10_000)
    if user is not None:
        sign_in(context, user=user, address=address)
    return context


__all__ = ["NARROW", "WIDE", "Error", "browsing", "context_of", "sign_in"]
