"""The keys of this site's raw bytes, and sealing with them.

`EVALSITE_RAW_KEY` lists keys, the newest first: new bytes are sealed with the first,
bytes on the disk are opened with whichever sealed them. Keys are never written down.
"""

from __future__ import annotations

import base64
import binascii
import io
from collections.abc import Sequence
from typing import BinaryIO

from django.conf import settings

from apps.engine.privacy.sealed import (
    KEY_BYTES,
    CannotOpen,
    Damaged,
    SealedWriter,
    WrongKey,
    is_sealed,
    new_key,
    open_sealed,
)

__all__ = [
    "CannotOpen",
    "Damaged",
    "WrongKey",
    "key_of",
    "new_key_text",
    "open_bytes",
    "open_with",
    "seal_bytes",
    "site_key",
]


def new_key_text() -> str:
    """A fresh key as it is written into settings and headers."""
    return base64.urlsafe_b64encode(new_key()).decode()


def key_of(text: str) -> bytes:
    """The 32 bytes of a key in base64; raises `ValueError` with a sentence."""
    try:
        key = base64.urlsafe_b64decode(text.strip().encode())
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ValueError("A key is 32 bytes in base64: 44 letters with one = behind.")
    return key


def _site_keys() -> Sequence[bytes]:
    keys: Sequence[bytes] = settings.RAW_KEYS
    return keys


def site_key() -> bytes | None:
    """The key that new bytes are sealed with; None when the site has none."""
    keys = _site_keys()
    return keys[0] if keys else None


def open_with(file: BinaryIO, keys: Sequence[bytes] | None = None) -> BinaryIO:
    """The plain bytes of a sealed file, by `keys` or else the site's.

    Raises `CannotOpen` with a sentence that says what to do.
    """
    try:
        return open_sealed(file, _site_keys() if keys is None else keys)
    except WrongKey:
        file.close()
        raise WrongKey(
            "The bytes of this upload are encrypted with a key that EVALSITE_RAW_KEY "
            "does not list. Put the old key behind the newest one there, restart, and "
            "read it again."
            if keys is None
            else "These bytes were sealed with another key; send the file again."
        ) from None
    except Damaged:
        file.close()
        raise


def seal_bytes(data: bytes) -> bytes:
    """The bytes sealed with the site's key; unchanged when the site has none."""
    key = site_key()
    if key is None:
        return data
    whole = io.BytesIO()
    writer = SealedWriter(whole, key)
    writer.write(data)
    writer.finish()
    return whole.getvalue()


def open_bytes(stored: bytes) -> bytes:
    """What `seal_bytes` was given; raises `CannotOpen` with a sentence."""
    if not is_sealed(stored[:8]):
        return stored
    with open_with(io.BytesIO(stored)) as plain:
        return plain.read()
