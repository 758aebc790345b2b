"""Run the checks over trace files without a database, a server or their settings."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandParser

from apps.engine.check import Check, Level
from apps.engine.formats import FORMATS
from evalsite.offline.answers import Answered, Found, screen_path
from evalsite.offline.choosing import chosen_checks
from evalsite.offline.printers import Lines, Printer, Silence, Table
from evalsite.offline.reading import Complaint
from evalsite.offline.sarif import SarifLog
from evalsite.offline.sentences import complaint_line, summary_lines
from evalsite.offline.tally import Tally
from evalsite.walking import files_below

SIGNALS, WRONG_CALL, INCOMPLETE = 1, 2, 3
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
        parser.add_argument(
            "files",
            nargs="+",
            type=Path,
            metavar="FILES",
            help="files, folders and archives of traces; - is standard input",
        )
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
            "--format",
            choices=[one.slug for one in FORMATS],
            help="read the files as this format instead of recognising it",
        )
        parser.add_argument(
            "--each",
            action="store_true",
            help="read the files of folders one by one, instead of together as a zip",
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
            _say(str(error))
            sys.exit(WRONG_CALL)
        run = _Run(checks, _printer(options, checks), options["fail_on"])
        try:
            run.over(_paths(options), slug=options["format"] or "")
        except BrokenPipeError:
            # Whoever read this has seen enough; Python would complain at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            _say(f"The answers could not be written: {error.strerror}.")
            sys.exit(INCOMPLETE)
        sys.exit(run.code)


def _paths(options: dict[str, Any]) -> Iterable[Path]:
    paths: Iterable[Path] = options["files"]
    return files_below(paths) if options["each"] else paths


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
        return SIGNALS if counted[self.fail_on] else 0

    def over(self, paths: Iterable[Path], *, slug: str) -> None:
        """Screen the files and print; raises `BrokenPipeError` when nobody listens."""
        _write(self.printer.begin())
        for path in paths:
            for found in screen_path(path, self.checks, slug=slug):
                self._take(found)
            sys.stdout.buffer.flush()
        if not (self.tally.traces or self.tally.incomplete):
            self._take(Complaint("", "There is nothing to screen.", is_incomplete=True))
        _write(self.printer.end(self.tally, self.code))
        sys.stdout.buffer.flush()
        _say_all(summary_lines(self.tally))

    def _take(self, found: Found) -> None:
        if isinstance(found, Answered):
            self.tally.add(found)
            _write(self.printer.answer(found))
        elif isinstance(found, Complaint):
            self.tally.incomplete += found.is_incomplete
            _write(self.printer.complaint(found))
            _say(complaint_line(found))
        else:
            self.tally.traces += 1


def _write(text: str) -> None:
    if text:
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def _say_all(lines: Iterator[str]) -> None:
    for line in lines:
        _say(line)


def _say(line: str) -> None:
    # What cannot be said must not end the command with the code of a finding.
    with contextlib.suppress(OSError):
        sys.stderr.write(line.encode("utf-8", "replace").decode() + "\n")
