"""The files that a call names, each content once and in an order of its own."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from evalsite.offline.reading import STANDARD_INPUT, Complaint
from evalsite.walking import name_in_words


def once_each(paths: Iterable[Path]) -> tuple[list[Path], list[Complaint]]:
    """The paths by name, without those that are named or held twice; and which those are.

    Two files of the same bytes are one, as they are one upload of a project, and so is
    a file inside a folder that is named too. What cannot be opened stays.
    """
    ordered = sorted(set(paths), key=name_in_words)
    folders = {path.resolve(): path for path in ordered if path.is_dir()}
    known: dict[object, Path] = {}
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


def _folder_above(path: Path, folders: dict[Path, Path]) -> Path | None:
    if path == STANDARD_INPUT:
        return None
    return next(
        (folders[one] for one in path.resolve().parents if one in folders), None
    )


def _same_sizes(paths: Sequence[Path]) -> set[int]:
    """The sizes that more than one of the files have: only those are read for it."""
    counts: dict[int, int] = defaultdict(int)
    for path in paths:
        if path.is_file():
            counts[path.stat().st_size] += 1
    return {size for size, count in counts.items() if count > 1}


def _identity(path: Path, same: set[int]) -> object:
    if path == STANDARD_INPUT or not path.is_file():
        return path.resolve() if path.exists() else path
    if path.stat().st_size not in same:
        return path.resolve()
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").digest()
    except OSError:
        return path
