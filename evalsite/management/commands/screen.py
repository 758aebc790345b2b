"""Run the checks over trace files without a database, a server or their settings."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandParser

from apps.engine.check import Check, Level
from evalsite.offline.answers import Answered, Found, screen_path
from evalsite.offline.choosing import chosen_checks
from evalsite.offline.command import (
    FOUND,
    INCOMPLETE,
    WRONG_CALL,
    add_file_arguments,
    chosen_paths,
    flush,
    say,
    write,
    written,
)
from evalsite.offline.printers import Lines, Printer, Silence, Table
from evalsite.offline.reading import Complaint
from evalsite.offline.sarif import SarifLog
from evalsite.offline.sentences import complaint_line, summary_lines
from evalsite.offline.tally import Tally

NEVER: Final = "never"


class Command(BaseCommand):
    """Prints a table of signals, lines of JSON (--json) or a SARIF log (--sarif).

    What was not read, and the summary beside chance, stand on the error stream. Ends
    with 0 when there is no signal of the level that --fail-on names, 1 when there is,
    2 when it was called wrongly, and 3 when a file could not be read or a check broke,
    whatever was found in the rest.
    """

    help = (
        "Run the checks over trace files; needs no database and no server. Ends with 0 "
        "when no signal is of the level of --fail-on, 1 when one is, 2 when called "
        "wrongly, 3 when a file could not be read or a check broke (before 1). A signal "
        "is a prompt to look: alone it should not block a release."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The files, the checks, how to print, and when to fail."""
        add_file_arguments(parser)
        printed = parser.add_mutually_exclusive_group()
        printed.add_argument(
            "--json", action="store_true", help="one JSON object a line for each answer"
        )
        printed.add_argument(
            "--sarif", action="store_true", help="one SARIF 2.1.0 log of the signals"
        )
        printed.add_argument(
            "--quiet", action="store_true", help="only the summary, on standard error"
        )
        parser.add_argument(
            "--check",
            action="append",
            default=[],
            metavar="SLUG",
            help="run this check only; may be given several times",
        )
        parser.add_argument(
            "--skip",
            action="append",
            default=[],
            metavar="SLUG",
            help="run all checks but this; may be given several times",
        )
        parser.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="CHECK.PARAMETER=VALUE",
            help="change a parameter; may be given several times",
        )
        parser.add_argument(
            "--fail-on",
            choices=[Level.REVIEW_SIGNAL.value, Level.TELEMETRY.value, NEVER],
            default=Level.REVIEW_SIGNAL.value,
            help="end with 1 at a signal of this level or above (default: %(default)s); "
            "with telemetry the table shows those signals too",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Print each answer as soon as it is known; exits with the code."""
        try:
            checks = chosen_checks(
                only=options["check"], skipped=options["skip"], changes=options["set"]
            )
        except ValueError as error:
            say(str(error))
            sys.exit(WRONG_CALL)
        run = _Run(checks, _printer(options, checks), options["fail_on"])
        with written():
            run.over(chosen_paths(options), slug=options["format"] or "")
        sys.exit(run.code)


def _printer(options: dict[str, Any], checks: tuple[Check, ...]) -> Printer:
    if options["json"]:
        return Lines()
    if options["sarif"]:
        return SarifLog(checks)
    if options["quiet"]:
        return Silence()
    return Table(with_telemetry=options["fail_on"] == Level.TELEMETRY.value)


class _Run:
    """One call of the command."""

    def __init__(
        self, checks: tuple[Check, ...], printer: Printer, fail_on: str
    ) -> None:
        self.checks = checks
        self.printer = printer
        self.fail_on = fail_on
        self.tally = Tally(checks)

    @property
    def code(self) -> int:
        """With what the command ends, by all that was found so far."""
        if self.tally.incomplete:
            return INCOMPLETE
        counted = {
            Level.REVIEW_SIGNAL.value: self.tally.queued,
            Level.TELEMETRY.value: self.tally.signals,
            NEVER: 0,
        }
        return FOUND if counted[self.fail_on] else 0

    def over(self, paths: Iterable[Path], *, slug: str) -> None:
        """Screen the files and print; raises `BrokenPipeError` when nobody listens."""
        write(self.printer.begin())
        for path in paths:
            for found in screen_path(path, self.checks, slug=slug):
                self._take(found)
            flush()
        if not (self.tally.traces or self.tally.incomplete):
            self._take(Complaint("", "There is nothing to screen.", is_incomplete=True))
        write(self.printer.end(self.tally, self.code))
        flush()
        for line in summary_lines(self.tally):
            say(line)

    def _take(self, found: Found) -> None:
        if isinstance(found, Answered):
            self.tally.add(found)
            write(self.printer.answer(found))
        elif isinstance(found, Complaint):
            self.tally.incomplete += found.is_incomplete
            write(self.printer.complaint(found))
            say(complaint_line(found))
        else:
            self.tally.traces += 1
