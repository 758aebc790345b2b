"""Seal the secrets of targets with the newest key."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.replays.sealing import CannotSeal, seal_again


class Command(BaseCommand):
    """To be run after a new key was put in front of EVALSITE_REPLAY_KEY."""

    help = "Seal every secret of a replay target with the newest key."

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Say how many were sealed; nothing changes when one cannot be read."""
        try:
            count = seal_again()
        except CannotSeal as error:
            raise CommandError(str(error)) from error
        secrets = "1 secret is" if count == 1 else f"{count:,} secrets are"
        self.stdout.write(f"{secrets} sealed with the newest key now.")
