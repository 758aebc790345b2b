"""The key that sessions and forms are signed with: every process needs the same one."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


def lasting_key(given: str, data_dir: Path) -> str:
    """Return the key that was set, else the one that `run` keeps; empty without both."""
    try:
        return given or (data_dir / "secret-key").read_text().strip()
    except OSError:
        return ""


def require_lasting_key() -> None:
    """Refuse to serve with a key that only this process knows.

    Raises:
        ImproperlyConfigured: No key is set, and the data folder holds none.
    """
    if not settings.SECRET_KEY_IS_LASTING:
        raise ImproperlyConfigured(
            "Set EVALSITE_SECRET_KEY to a long random text, the same for every process; "
            "`python3 manage.py run` makes one in the data folder by itself."
        )
