"""Run everything in the foreground: servers, web, worker and beat."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandParser

from evalsite.environment import from_environment
from evalsite.running import Serving, Site, run_site
from evalsite.settings import env
from evalsite.supervisor import say


class Command(BaseCommand):
    """Stops cleanly on Ctrl-C or SIGTERM, with the data kept."""

    help = "Start Evalsite and print an address with a one-time sign-in link."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The port, which EVALSITE_PORT sets as well."""
        parser.add_argument("--port", type=int, help="first port to try")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Run until asked to stop; exits 1 with a sentence when that fails."""
        chosen = {"port": options["port"]} if options["port"] else {}
        try:
            serving = from_environment(Serving, **chosen)
        except ImproperlyConfigured as error:
            say(f"A setting cannot be used. {error}")
            sys.exit(1)
        site = Site(
            data_dir=Path(settings.DATA_DIR),
            database_url=env.database_url,
            redis_url=env.redis_url,
            serving=serving,
        )
        sys.exit(run_site(site, say=say))
