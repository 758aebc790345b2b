"""Traces of the files and folders that a person names, and why one was not read."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from apps.engine.format import Item, Note, Rejected, UnreadableTrace
from apps.engine.formats import TooLarge, read_file, read_folder
from evalsite.walking import folder_files, name_in_words


def items_of(path: Path, *, slug: str = "") -> Generator[Item, None, None]:
    """Read a file, or the files of a folder together as a zip of them would be read.

    `slug` names the format to read it as, instead of the one that is recognised. What
    is raised, `why_not_read` puts into words.
    """
    if path.is_dir():
        yield from _of_folder(path, slug=slug)
        return
    with path.open("rb") as stream:
        yield from read_file(stream, name=path.name, format_override=slug)


def _of_folder(path: Path, *, slug: str) -> Generator[Item, None, None]:
    found = folder_files(path)
    if found.left_out:
        yield Note("left_out", found.left_out_in_words())
    if not found.files:
        raise UnreadableTrace("The folder holds no files.")
    yield from read_folder(found.files, format_override=slug)


def why_not_read(path: Path, error: Exception) -> str:
    """Why reading ended with `error`, as a sentence for a person."""
    if isinstance(error, TooLarge) and path.is_dir():
        return f"{error} With --each the files are read one by one."
    if isinstance(error, UnreadableTrace):
        return str(error)
    if isinstance(error, OSError):
        return _why_not_opened(path, error)
    return (
        f"Evalsite's reader broke on this file ({type(error).__name__}). That is our "
        "fault, and a bug worth reporting."
    )


def _why_not_opened(path: Path, error: OSError) -> str:
    reason = error.strerror or str(error)
    if error.filename and Path(error.filename) != path:
        return f"{name_in_words(Path(error.filename))} cannot be opened: {reason}."
    return f"This file cannot be opened: {reason}."


def nothing_found(first: Rejected | None, rejected: int) -> str:
    """That a file without a crash gave no trace, where `rejected` records were not read."""
    if first is None:
        return "There is no trace in this file."
    if rejected == 1:
        return f"The only record could not be read. {first.place}: {first.reason}"
    return (
        f"None of the {rejected:,} records could be read. The first, "
        f"{first.place}: {first.reason}"
    )
