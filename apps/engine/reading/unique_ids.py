"""Which ids are unique in the world: random ones of 122 bits and more."""

from __future__ import annotations

import re
from typing import Any, Final

_UUID: Final = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE
)
_SHORT_UUID: Final = re.compile(r"[2-9A-HJ-NP-Za-km-z]{22}")


def unique_id(value: Any) -> str | None:
    """Return a UUID, or a short UUID of 22 characters; `None` for every other id."""
    if not isinstance(value, str):
        return None
    is_unique = _UUID.fullmatch(value) or _SHORT_UUID.fullmatch(value)
    return value if is_unique else None
