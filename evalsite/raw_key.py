"""The keys that raw bytes are encrypted with, out of the environment."""

from __future__ import annotations

import base64
import binascii

from django.core.exceptions import ImproperlyConfigured

_BYTES = 32
_HOW = (
    "Make one with: python -c 'import base64, secrets; "
    "print(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())'"
)


def raw_keys(text: str, *, is_needed: bool) -> list[bytes]:
    """The keys in `text`, the newest first, with commas between them.

    Raises:
        ImproperlyConfigured: A key is none, or one is needed and there is none. The
            message never repeats a key.
    """
    written = [one.strip() for one in text.split(",") if one.strip()]
    if is_needed and not written:
        raise ImproperlyConfigured(
            "EVALSITE_RAW_BYTES is encrypted and EVALSITE_RAW_KEY is empty. " + _HOW
        )
    return [_key(one, place) for place, one in enumerate(written, start=1)]


def _key(text: str, place: int) -> bytes:
    try:
        key = base64.urlsafe_b64decode(text.encode())
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _BYTES:
        raise ImproperlyConfigured(
            f"Key {place} of EVALSITE_RAW_KEY is not 32 bytes in base64. " + _HOW
        )
    return key
