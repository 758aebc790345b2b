"""Keys that bytes are sealed with, out of the environment: raw uploads, replay secrets.

They lie neither in the database nor in EVALSITE_SECRET_KEY, so that a copy of either
opens nothing.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from evalsite.environment import listed

REPLAY_KEY_FILE = "replay-key"
_BYTES = 32
_HOW = (
    "Make one with: python -c 'import base64, secrets; "
    "print(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())'"
)


def raw_keys(text: str, *, is_needed: bool) -> list[bytes]:
    """The keys of raw bytes in `text`, the newest first, with commas between them.

    Raises:
        ImproperlyConfigured: A key is none, or one is needed and there is none. The
            message never repeats a key.
    """
    keys = _keys(text, setting="EVALSITE_RAW_KEY")
    if is_needed and not keys:
        raise ImproperlyConfigured(
            "EVALSITE_RAW_BYTES is encrypted and EVALSITE_RAW_KEY is empty. " + _HOW
        )
    return keys


def replay_keys(text: str, data_dir: Path) -> list[bytes]:
    """The keys of replay secrets that were set, else the one that `run` keeps; or none.

    Raises:
        ImproperlyConfigured: A key is none. The message never repeats it.
    """
    try:
        written = text or (data_dir / REPLAY_KEY_FILE).read_text()
    except OSError:
        return []
    return _keys(written, setting="EVALSITE_REPLAY_KEY")


def _keys(text: str, *, setting: str) -> list[bytes]:
    return [
        _key(one, f"Key {place} of {setting}")
        for place, one in enumerate(listed(text), start=1)
    ]


def _key(text: str, which: str) -> bytes:
    try:
        key = base64.urlsafe_b64decode(text.encode())
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _BYTES:
        raise ImproperlyConfigured(f"{which} is not 32 bytes in base64. " + _HOW)
    return key
