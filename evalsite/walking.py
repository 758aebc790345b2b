"""Files that a person names on a command line, and those below their folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path


def name_in_words(path: Path) -> str:
    """The path as text, whatever bytes its name has."""
    return os.fsencode(path).decode("utf-8", "replace")


def files_below(paths: Iterable[Path]) -> Iterator[Path]:
    """The files that `paths` name, and those below the folders among them, in order.

    What is hidden below a folder is passed over; links to folders are not followed.
    """
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for folder, names, files in os.walk(path):
            names[:] = sorted(name for name in names if not name.startswith("."))
            for name in sorted(files):
                found = Path(folder) / name
                if not name.startswith(".") and found.is_file():
                    yield found
