"""The engine is plain Python: its tests keep no uploads and read no settings."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def uploads_dir():
    """Nothing here needs a folder of raw uploads."""
