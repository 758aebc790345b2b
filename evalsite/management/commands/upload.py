"""Send trace files and whole folders to an Evalsite that runs somewhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from evalsite.api_client import ApiClient, Refused
from evalsite.sending import Sender, parcels_of

FAILED, WRONG_CALL = 1, 2


class Command(BaseCommand):
    """Sends folders as zips, and files as they are.

    Sends only what is not there yet, so it may be called again at any time.

    Ends with 0 when everything is there, 1 when something could not be sent (or read,
    with --wait), and 2 when it was called wrongly.
    """

    help = "Send files and folders to an Evalsite; needs no database and no settings."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """What to send, and where."""
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATHS")
        parser.add_argument("--to", required=True, help="the site, http://host:port")
        parser.add_argument(
            "--token",
            default=os.environ.get("EVALSITE_TOKEN", ""),
            help="an API token that may upload; better given as EVALSITE_TOKEN, "
            "because other users of this machine see command lines",
        )
        parser.add_argument(
            "--format",
            default="",
            metavar="SLUG",
            help="read the files as this format instead of recognising it",
        )
        parser.add_argument(
            "--each",
            action="store_true",
            help="send the files of folders one by one, instead of each folder as one "
            "zip; files that belong together are then not read together",
        )
        parser.add_argument(
            "--wait", action="store_true", help="wait until all was read; print counts"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="only say what would be sent"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Send, maybe wait, and end with a summary; exits with the code."""
        try:
            sys.exit(_run(options))
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(FAILED)


def _run(options: dict[str, Any]) -> int:
    if not options["token"]:
        return _stop(
            "Give an API token: --token, or better EVALSITE_TOKEN.", WRONG_CALL
        )
    try:
        client = ApiClient(options["to"], options["token"], say=_complain)
    except ValueError as error:
        return _stop(str(error), WRONG_CALL)
    sender = Sender(client, _say, slug=options["format"], dry_run=options["dry_run"])
    parcels = parcels_of(options["paths"], each=options["each"])
    try:
        outcome = sender.send_all(parcels)
        if options["wait"] and not options["dry_run"]:
            sender.wait()
    except Refused as refusal:
        if sender.outcome.total:
            _say(sender.outcome.summary())
        return _stop(str(refusal), FAILED)
    _say(outcome.summary())
    return 0 if outcome.is_good else FAILED


def _say(line: str) -> None:
    sys.stdout.write(line.encode("utf-8", "replace").decode() + "\n")
    sys.stdout.flush()


def _complain(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _stop(sentence: str, code: int) -> int:
    _complain(sentence)
    return code
