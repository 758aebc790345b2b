"""Say what trace files hold, without a database, a server or their settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandParser

from apps.engine.formats import FORMATS
from evalsite.describing import FileDescription, FoundTrace, describe_path
from evalsite.walking import files_below

UNREADABLE = 1
WIDEST_NAME = 40


class Command(BaseCommand):
    """Prints a table, or one JSON object a line and file with --json.

    A folder is read as a zip of it would be, and is one object. Ends with 1 when any file could not be read, and with 2 when it was called wrongly.
    """

    help = "Say what trace files hold; needs no database and no server."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """The files, how to print them, and which format they are in."""
        parser.add_argument("files", nargs="+", type=Path, metavar="FILES")
        parser.add_argument(
            "--each",
            action="store_true",
            help="read the files of folders one by one, instead of together as a zip",
        )
        parser.add_argument(
            "--json", action="store_true", help="one JSON object a line for each file"
        )
        parser.add_argument(
            "--format",
            choices=[one.slug for one in FORMATS],
            help="read the files as this format instead of recognising it",
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002
        """Describe each file as soon as it is read; exits with the code."""
        code = 0
        try:
            for found in _descriptions(options):
                code = UNREADABLE if found.error else code
                _print(found, as_json=options["json"])
        except BrokenPipeError:
            # Whoever read this has seen enough; Python would complain at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(code)


def _descriptions(options: dict[str, Any]) -> Iterator[FileDescription]:
    paths: Iterable[Path] = options["files"]
    for path in files_below(paths) if options["each"] else paths:
        yield describe_path(path, slug=options["format"] or "")


def _print(found: FileDescription, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
    else:
        sys.stdout.buffer.write("".join(_table(found)).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def _table(found: FileDescription) -> Iterator[str]:
    yield f"{_plain(found.file)}: {found.format or 'not read'}\n"
    if found.error:
        yield f"  {_plain(found.error)}\n"
    if found.traces:
        yield _row(HEADINGS)
    for encoded in found.traces:
        yield _row(_cells(msgspec.json.decode(encoded, type=FoundTrace)))
    for item in found.rejected:
        yield f"  not read, {_plain(item.place)}: {_plain(item.reason)}\n"
    if found.rejected_count > len(found.rejected):
        yield f"  and {found.rejected_count - len(found.rejected):,} more\n"
    for note in found.warnings:
        times = f" ({note.count:,} times)" if note.count > 1 else ""
        yield f"  note: {_plain(note.sentence)}{times}\n"
    yield "\n"


HEADINGS = (
    *("trace", "task", "trial", "outcome", "steps", "model calls", "tool calls"),
    *("usage reported", "errors", "agents"),
)
_WIDTHS = (WIDEST_NAME, 16, 5, 8, 6, 11, 10, 14, 6, 0)


def _row(cells: tuple[str, ...]) -> str:
    fitted = (
        cell.rjust(width) if 4 <= place <= 8 else _fitted(cell, width)
        for place, (cell, width) in enumerate(zip(cells, _WIDTHS, strict=True))
    )
    return f"  {'  '.join(fitted).rstrip()}\n"


def _fitted(text: str, width: int) -> str:
    if width and len(text) > width:
        return text[: width - 1] + "…"
    return text.ljust(width)


def _cells(trace: FoundTrace) -> tuple[str, ...]:
    outcome: str = trace.outcome
    if trace.score is not None and trace.outcome == "score":
        outcome = f"{trace.score:g}" + (f"/{trace.out_of:g}" if trace.out_of else "")
    return (
        _plain(trace.id or trace.name),
        _plain(trace.task or "-"),
        "-" if trace.trial is None else str(trace.trial),
        outcome,
        f"{trace.steps:,}",
        f"{trace.model_calls:,}",
        f"{trace.tool_calls:,}",
        f"{trace.usage.reported} of {trace.model_calls}",
        f"{trace.errors:,}",
        ", ".join(map(_plain, trace.agents)) or "-",
    )


def _plain(text: str) -> str:
    """The text on one line, without characters that would steer a terminal."""
    return "".join(c if c.isprintable() else " " for c in text)
