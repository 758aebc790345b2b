"""Bring database, files and pages up to date, and make a sign-in link.

`run` calls it.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import django
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, connection

from apps.traces.parts import remove_abandoned_parts
from apps.traces.storage import remove_abandoned


class Command(BaseCommand):
    """Safe to run twice: each part does only what is left to do."""

    help = "Migrate, collect static files, create the demo once, write a sign-in link."

    def add_arguments(self, parser: CommandParser) -> None:
        """Where the path of the link goes."""
        parser.add_argument("answer", type=Path, help="file for the sign-in path")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Do each part, then write the path of the link into the file."""
        try:
            connection.ensure_connection()
        except OperationalError as error:
            where = connection.settings_dict
            raise CommandError(
                f"The database {where['NAME']} at {where['HOST'] or 'this machine'} does "
                f"not answer: {str(error).strip().splitlines()[0]}. Check DATABASE_URL."
            ) from None
        call_command("migrate", interactive=False, verbosity=0)
        collect_static_files(Path(settings.DATA_DIR) / "static-stamp")
        remove_abandoned()
        remove_abandoned_parts()
        call_command("demo", stdout=self.stdout)
        options["answer"].touch(mode=0o600)
        options["answer"].write_text(sign_in_path())


def collect_static_files(stamp: Path) -> bool:
    """Collect static files if any has changed since; return whether that was done."""
    root = Path(settings.STATIC_ROOT)
    state = static_state()
    if root.is_dir() and stamp.exists() and stamp.read_text() == state:
        return False
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    stamp.write_text(state)
    return True


def static_state() -> str:
    """Return a hash over name, size and time of every static file, and their place."""
    digest = hashlib.sha256(f"{django.__version__} {settings.STATIC_ROOT}".encode())
    for finder in get_finders():
        for name, storage in finder.list([]):
            status = Path(storage.path(name)).stat()
            digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def sign_in_path() -> str:
    """Return a one-time sign-in path for the first superuser or the demo's owner.

    Empty when nobody could use it: a team whose users all have passwords signs in at
    the address itself.
    """
    if not get_user_model().objects.filter(username="owner", is_active=True).exists():
        return ""
    said = io.StringIO()
    call_command("signin_link", "owner", stdout=said)
    return said.getvalue().strip()
