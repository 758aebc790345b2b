"""Changes of JSON that JSON itself does not tell apart; `None` where there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from apps.engine.bodies.canonical import opened

_EXACT: Final = 10**15


def keys_turned_round(value: Any) -> Any:
    """A JSON value, or a text that holds one, with the keys of objects in reverse."""
    return _in_either(value, _turned, None)


def decimals_in_json(value: Any) -> Any:
    """A JSON value, or a text that holds one, with whole numbers as decimals."""
    return _in_either(value, _decimal, None)


def spread_out(value: Any) -> Any:
    """A text that holds JSON, written with an indent; a value has no such writing."""
    return _in_either(value, lambda held: held, 2) if isinstance(value, str) else None


def _in_either(value: Any, change: Callable[[Any], Any], indent: int | None) -> Any:
    held = opened(value)
    if not isinstance(held, dict | list):
        return None
    new = change(held)
    if not isinstance(value, str):
        return None if repr(new) == repr(held) else new
    if indent is None and repr(new) == repr(held):
        return None
    text = json.dumps(new, ensure_ascii=False, indent=indent)
    return None if text == value else text


def _turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _turned(value[key]) for key in reversed(value)}
    return [_turned(item) for item in value] if isinstance(value, list) else value


def _decimal(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _decimal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_decimal(item) for item in value]
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_whole and abs(value) < _EXACT else value
