"""Watches a browser context: nothing may break, execute or leave this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request

LOCAL = {"localhost", "127.0.0.1", "::1"}
# Chromium reports an answered refusal (409, 422 …) as a console error of its own.
_REFUSED = "Failed to load resource: the server responded with a status of "
# Runs before any script of a page: hostile texts would call it, and so would the policy.
_HOOK = """
window.__pwned = [];
window.pwn = (what) => { window.__pwned.push(String(what)); console.error('PWNED ' + what); };
document.addEventListener('securitypolicyviolation', (event) => {
  console.error(`CSP ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
});
"""


@dataclass
class Watch:
    """What went wrong in one context, and every request that it made."""

    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def over(self, context: BrowserContext) -> Watch:
        """Watch every page of a context from now on."""
        context.add_init_script(_HOOK)
        context.on("request", self._on_request)
        context.on("page", self._on_page)
        return self

    def _on_page(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type not in {"error", "warning"}:
            return
        is_answer = message.text.startswith(_REFUSED + "4")
        if not is_answer:
            self.problems.append(f"{message.type}: {message.text}")

    def _on_request(self, request: Request) -> None:
        self.requests.append(request.url)
        parts = urlsplit(request.url)
        if (
            parts.scheme in {"http", "https", "ws", "wss"}
            and parts.hostname not in LOCAL
        ):
            self.problems.append(f"request to another machine: {request.url}")

    def check(self) -> None:
        """Fail with everything that went wrong."""
        assert self.problems == []
