"""The files that a call names, each content once and in an order of its own."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from evalsite.offline.reading import STANDARD_INPUT, Complaint
from evalsite.walking import name_in_words


def once_each(paths: Iterable[Path]) -> tuple[list[Path], list[Complaint]]:
    """The paths by name, without those that are named or held twice; and which those are.

    Two files of the same bytes are one, as they are one upload of a project, and so is
    a file inside a folder that is named too. What cannot be opened stays.
    """
    ordered = sorted(set(paths), key=name_in_words)
    folders = {os.path.realpath(path): path for path in ordered if _is_folder(path)}
    known: dict[str, Path] = {}
    same = _same_sizes(ordered)
    kept: list[Path] = []
    said = []
    for path in ordered:
        inside = _folder_above(path, folders)
        earlier = inside or known.setdefault(_identity(path, same), path)
        if earlier is path:
            kept.append(path)
        else:
            words = "lies in" if inside else "is the same as"
            sentence = f"It {words} {name_in_words(earlier)} and is read once."
            said.append(Complaint(name_in_words(path), sentence))
    return kept, said


def _folder_above(path: Path, folders: dict[str, Path]) -> Path | None:
    if path == STANDARD_INPUT:
        return None
    above = Path(os.path.realpath(path)).parents
    return next((folders[str(one)] for one in above if str(one) in folders), None)


def _size(path: Path) -> int | None:
    """The bytes of a file; `None` for a folder, standard input and what is not there."""
    if path != STANDARD_INPUT:
        with suppress(OSError):
            return path.stat().st_size if path.is_file() else None
    return None


def _is_folder(path: Path) -> bool:
    with suppress(OSError):
        return path.is_dir()
    return False


def _same_sizes(paths: Sequence[Path]) -> set[int]:
    """The sizes that more than one of the files have: only those are read for it."""
    counts = Counter([size for path in paths if (size := _size(path)) is not None])
    return {size for size, count in counts.items() if count > 1}


def _identity(path: Path, same: set[int]) -> str:
    if path == STANDARD_INPUT:
        return str(path)
    if _size(path) in same:
        with suppress(OSError), path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    return os.path.realpath(path)
