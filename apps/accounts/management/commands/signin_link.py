"""Print the path of a one-time sign-in link for a user."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.operations import create_sign_in_link


class Command(BaseCommand):
    """Prints `/sign-in/<secret>/`; it works once, for twelve hours."""

    help = "Print a one-time sign-in link for a user."

    def add_arguments(self, parser: CommandParser) -> None:
        """The user's name."""
        parser.add_argument("username", nargs="?", default="owner")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Create the link and print its path."""
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"There is no user called “{options['username']}”.")
        secret = create_sign_in_link(user=user, now=timezone.now())
        self.stdout.write(reverse("sign-in-link", args=[secret]))
