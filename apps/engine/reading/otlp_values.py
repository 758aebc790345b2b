"""Attributes in OTLP's JSON spelling: lists of key and typed value, made plain.

Field names may be in camel case or in snake case, integers numbers or texts.
Encoding: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.spans import double_of


def attributes_of(holder: Any) -> dict[str, Any]:
    """Return the attributes of a span, event or resource as one plain object.

    A plain object in place of the list of pairs is taken as it is.
    """
    pairs = holder.get("attributes") if isinstance(holder, dict) else None
    if isinstance(pairs, dict):
        return pairs
    return pairs_of(pairs)


def pairs_of(pairs: Any) -> dict[str, Any]:
    """Return a list of {key, value} as one plain object; what is no pair is left out."""
    if not isinstance(pairs, list):
        return {}
    return {
        str(pair["key"]): _value(pair.get("value"))
        for pair in pairs
        if isinstance(pair, dict) and "key" in pair
    }


def _value(value: Any) -> Any:
    if not isinstance(value, dict) or len(value) != 1:
        return None if isinstance(value, dict) and not value else value
    [(kind, content)] = value.items()
    read = _VALUES.get(kind)
    return read(content) if read else value


def _whole(content: Any) -> Any:
    if isinstance(content, str):
        try:
            return int(content)
        except ValueError:
            return content
    return content


def _values(content: Any) -> list[Any]:
    found = content.get("values") if isinstance(content, dict) else None
    return found if isinstance(found, list) else []


def _array(content: Any) -> list[Any]:
    return [_value(item) for item in _values(content)]


def _pairs(content: Any) -> dict[str, Any]:
    return pairs_of(_values(content))


def _same(content: Any) -> Any:
    return content


_VALUES: Final = {
    "stringValue": _same, "string_value": _same,
    "intValue": _whole, "int_value": _whole,
    "doubleValue": double_of, "double_value": double_of,
    "boolValue": _same, "bool_value": _same,
    "bytesValue": _same, "bytes_value": _same,
    "arrayValue": _array, "array_value": _array,
    "kvlistValue": _pairs, "kvlist_value": _pairs,
}  # fmt: skip
