"""The type and other short texts of a JSON value of which nothing is known yet."""

from __future__ import annotations

from typing import Any


def text_in(value: Any, key: str) -> str | None:
    """Return the text at `key` of an object, or `None` where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def kind_of(value: Any) -> str | None:
    """Return the text at `type` of an object, or `None` where there is none."""
    return text_in(value, "type")
