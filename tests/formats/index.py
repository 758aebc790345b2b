"""The rows of the shared collection's index, for tests that read real files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
COUNTED = (
    "n_traces",
    "model_calls",
    "tool_calls",
    "usage_known",
    "usage_missing",
    "usage_zero",
    "errors",
)


def rows(*folders: str) -> list[Any]:
    """One pytest parameter for each file in `folders`, or for each path given whole.

    A single skipped one when the collection is absent.
    """
    found = []
    if DATA.is_dir():
        with (DATA / "INDEX.tsv").open(encoding="utf-8", newline="") as file:
            found = [
                pytest.param(row, id=row["path"])
                for row in csv.DictReader(file, delimiter="\t")
                if {row["path"].split("/")[0], row["path"]} & set(folders)
            ]
    return found or [
        pytest.param({}, marks=pytest.mark.skip("The shared trace files are absent."))
    ]


def expected(row: dict[str, str]) -> dict[str, int]:
    """What the index says that `tests.formats.reading.counts_of` must find."""
    return {key: int(row[key]) for key in COUNTED}
