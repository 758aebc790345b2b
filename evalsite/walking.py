"""Files that a person names on a command line, and those below their folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

# What tools and systems make; hidden names (.git, .DS_Store) are left out as well.
JUNK = frozenset(
    {"node_modules", "__pycache__", "__MACOSX", "Thumbs.db", "desktop.ini"}
)
_NAMED = 5


def name_in_words(path: Path) -> str:
    """The path as text, whatever bytes its name has."""
    return os.fsencode(path).decode("utf-8", "replace")


@dataclass(frozen=True)
class FolderFiles:
    """The files of a folder as they are put into a zip: by name, in order of names.

    `left_out` names what is hidden, what tools make, and what is no regular file;
    folders among them end with a slash.
    """

    files: tuple[tuple[str, Path], ...]
    left_out: tuple[str, ...]

    def left_out_in_words(self) -> str:
        """What was left out, in one sentence; empty when nothing was."""
        if not self.left_out:
            return ""
        named = ", ".join(self.left_out[:_NAMED])
        rest = len(self.left_out) - _NAMED
        more = f" and {rest:,} more" if rest > 0 else ""
        return f"Left out as hidden, made by tools or no files: {named}{more}."


def folder_files(folder: Path) -> FolderFiles:
    """Find the files below a folder; raises `OSError` for one that cannot be listed.

    Links to files are followed, links to folders are not.
    """
    files: list[tuple[str, Path]] = []
    left_out: list[str] = []
    for here, folders, names in os.walk(folder, onerror=_give_up):
        start = Path(here)
        left_out.extend(
            f"{_name_below(folder, start / name)}/"
            for name in folders
            if _is_left_out(name) or (start / name).is_symlink()
        )
        folders[:] = [name for name in folders if not _is_left_out(name)]
        for name in names:
            found = start / name
            if _is_left_out(name) or not found.is_file():
                left_out.append(_name_below(folder, found))
            else:
                files.append((_name_below(folder, found), found))
    return FolderFiles(tuple(sorted(files)), tuple(sorted(left_out)))


def files_below(paths: Iterable[Path]) -> Iterator[Path]:
    """The files that `paths` name, and those below the folders among them, in order.

    What `folder_files` leaves out is passed over here too.
    """
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for folder, names, files in os.walk(path):
            names[:] = sorted(name for name in names if not _is_left_out(name))
            for name in sorted(files):
                found = Path(folder) / name
                if not _is_left_out(name) and found.is_file():
                    yield found


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name in JUNK


def _name_below(folder: Path, path: Path) -> str:
    return name_in_words(path.relative_to(folder)).replace(os.sep, "/")


def _give_up(error: OSError) -> None:
    raise error
