"""The folder that a run may write to: made for it, and gone after it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Final

_PREFIX: Final = "evalsite-run-"
_SECONDS_KEPT: Final = 3_600


def new_folder() -> Path:
    """A new empty folder that only its owner may enter."""
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))


def remove_abandoned(now: float | None = None) -> None:
    """Remove the folders of runs whose worker was killed, an hour later.

    Those of living processes stay, and those of other accounts.
    """
    before = (time.time() if now is None else now) - _SECONDS_KEPT
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            is_old = folder.stat().st_mtime < before
            if is_old and owner.isdigit() and not Path(f"/proc/{owner}").exists():
                shutil.rmtree(folder, ignore_errors=True)
