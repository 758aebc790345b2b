"""What a line of a run is: a JSON object of bounded size, or nothing of ours."""

from __future__ import annotations

from typing import Any

import msgspec


def object_in(line: bytes, most_values: int) -> dict[str, Any] | None:
    """The JSON object of a line; `None` where it is none, or of too many values."""
    is_other = not line.lstrip().startswith(b"{")
    if is_other or values_in(line) > most_values:
        return None
    try:
        told = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return told if isinstance(told, dict) else None


def values_in(line: bytes) -> int:
    """How many values a line may hold: a short text can unfold into much memory."""
    return line.count(b",") + line.count(b"[") + line.count(b"{")


def id_of(told: dict[str, Any]) -> dict[str, Any]:
    """What of a question its answer says again, so that it finds its way."""
    return {"id": told["id"]} if "id" in told else {}
