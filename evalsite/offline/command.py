"""What the commands over files share: their arguments, how they end, how they speak."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandParser

from apps.engine.formats import FORMATS
from evalsite.walking import files_below

FOUND: Final = 1
WRONG_CALL: Final = 2
INCOMPLETE: Final = 3
"""With what they end: something was found, called wrongly, or a part was not read."""


def add_file_arguments(parser: CommandParser) -> None:
    """The files and how they are read."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILES",
        help="files, folders and archives of traces; - is standard input",
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


def chosen_paths(options: dict[str, Any]) -> Iterable[Path]:
    """The files that were named; with --each those below folders, one by one."""
    paths: Iterable[Path] = options["files"]
    return files_below(paths) if options["each"] else paths


@contextlib.contextmanager
def written() -> Iterator[None]:
    """Write inside of this: what cannot be written ends the command as incomplete.

    Where nobody reads any more, it ends as if all had been read.
    """
    try:
        yield
    except BrokenPipeError:
        # Python would complain at its end.
        _forget_output()
    except OSError as error:
        _forget_output()
        say(f"The answer could not be written: {error.strerror}.")
        sys.exit(INCOMPLETE)


def _forget_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write(text: str) -> None:
    """Write to standard output; raises `OSError` where that cannot be done."""
    if text:
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))


def flush() -> None:
    """Have everything written; raises as `write`."""
    sys.stdout.buffer.flush()


def say(line: str) -> None:
    """Say a line on the error stream."""
    # What cannot be said must not end the command with the code of a finding.
    with contextlib.suppress(OSError):
        sys.stderr.write(line.encode("utf-8", "replace").decode() + "\n")
