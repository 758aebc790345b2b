"""Compare the trials in trace files without a database, a server or their settings."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from apps.engine.contracts.patterns import BadPattern, wildcards
from apps.engine.trials import Asked
from evalsite.offline.asking import CannotAsk, asked_in_file
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
from evalsite.offline.compare_table import table_of
from evalsite.offline.comparing import Wanted, compared
from evalsite.offline.document import Compared, document_of
from evalsite.offline.reading import Complaint
from evalsite.offline.sentences import complaint_line
from evalsite.offline.trials import HowToScore


class Command(BaseCommand):
    """Prints who is masked, the agents, the tasks and their forks, gaps and patterns.

    What was not read stands on the error stream. Ends with 0 when nothing is masked and
    no agent is red, 1 when one is, 2 when it was called wrongly, and 3 when a file could
    not be read or a trace not be scored, whatever was found in the rest.
    """

    help = (
        "Compare repeated runs in trace files: agreement per agent, forks, masking, "
        "patterns; needs no database and no server. Steps count from 1. Ends with 0 "
        "when no agent is masked or red, 1 when one is, 2 when called wrongly, 3 when a "
        "file could not be read or a trace not be scored (before 1)."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The files, what is asked of agents, which tasks, and how to print."""
        add_file_arguments(parser)
        parser.add_argument(
            "--json", action="store_true", help="one JSON document instead of a table"
        )
        parser.add_argument(
            "--agents",
            type=Path,
            metavar="FILE",
            help="YAML with decisions and contracts of agents and outcomes of tasks",
        )
        parser.add_argument(
            "--task",
            metavar="PATTERN",
            help="only tasks of such a name (* and ?, several are cut by |)",
        )
        parser.add_argument(
            "--compare",
            choices=["decisions", "text"],
            default="decisions",
            help="what forks are found by (default: %(default)s)",
        )
        parser.add_argument(
            "--exit-zero",
            action="store_true",
            help="end with 0 also when an agent is masked or red",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Print what was found; exits with the code."""
        try:
            wanted = _wanted(options)
        except (CannotAsk, BadPattern) as error:
            for sentence in getattr(error, "problems", (str(error),)):
                say(sentence)
            sys.exit(WRONG_CALL)
        found = compared(list(chosen_paths(options)), wanted, hear=_hear)
        document = document_of(found)
        with written():
            _print(document, as_json=options["json"])
        sys.exit(_code(found, exit_zero=options["exit_zero"]))


def _wanted(options: dict[str, Any]) -> Wanted:
    asked = Asked()
    names: dict[str, str] = {}
    if options["agents"] is not None:
        asked, names = asked_in_file(options["agents"])
    how = HowToScore(asked, options["compare"], _takes(options["task"]))
    return Wanted(how, names, options["format"] or "")


def _takes(pattern: str | None) -> Callable[[str], bool] | None:
    if pattern is None:
        return None
    names = wildcards(pattern)
    return lambda name: names.fullmatch(name) is not None


def _code(found: Compared, *, exit_zero: bool) -> int:
    if any(one.is_incomplete for one in found.said):
        return INCOMPLETE
    is_bad = any(
        one.is_masked or one.verdict.colour == "red" for one in found.project.agents
    )
    return FOUND if is_bad and not exit_zero else 0


def _print(document: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
        write(f"{text}\n")
    elif document["traces"]:
        for line in table_of(document):
            write(f"{line}\n")
    flush()


def _hear(complaint: Complaint) -> None:
    say(complaint_line(complaint))
