"""Take screenshots of the main pages into `.shots`, on servers of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalsite.chromium import ensure_chromium
from evalsite.embedded import start_embedded
from evalsite.places import PROJECT_DIR, embedded_urls
from evalsite.processes import CannotStart


class Command(BaseCommand):
    """Starts throw-away servers and runs `tests.browser.shots` on them."""

    help = "Take screenshots of all main pages, light and dark, wide and narrow."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which pages; all when none is named."""
        parser.add_argument("pages", nargs="*", help="names of pages, e.g. queue")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Take them in a process of its own; exits with its code.

        Raises:
            CommandError: There is no Chromium.
        """
        try:
            chromium = ensure_chromium()
        except CannotStart as error:
            raise CommandError(str(error)) from error
        with tempfile.TemporaryDirectory(prefix="evalsite-shots-") as folder:
            # The servers' account must pass through a folder that was made for us.
            Path(folder).chmod(0o711)
            data_dir = Path(folder) / "data"
            servers = start_embedded(data_dir, throw_away=True)
            try:
                code = _take(data_dir, chromium=chromium, pages=options["pages"])
            finally:
                servers.stop()
        sys.exit(code)


def _take(data_dir: Path, *, chromium: str, pages: list[str]) -> int:
    database_url, redis_url = embedded_urls(data_dir)
    environment = {
        **os.environ,
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "EVALSITE_DATA_DIR": str(data_dir),
        "EVALSITE_SECRET_KEY": "only-for-screenshots-0123456789-0123456789-012345678",
        "EVALSITE_DEBUG": "1",
        "EVALSITE_CHROMIUM": chromium,
        "DJANGO_SETTINGS_MODULE": "evalsite.settings",
        # Playwright runs an event loop in this thread; nothing here is asynchronous.
        "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
    }
    words = [sys.executable, "-W", "ignore", "-m", "tests.browser.shots", *pages]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        words, cwd=PROJECT_DIR, env=environment, check=False
    )
    return done.returncode
