"""Reading the fields of a JSON object strictly, with a sentence for what is wrong.

Every refusal names the JSON path and the value that was found.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, TypeVar

from apps.engine.reading.clock import LARGEST, any_time_ns
from apps.engine.reading.json_gate import RefusedRecord
from apps.engine.reading.text_limits import Remarks, clip
from apps.engine.reading.token_counts import as_whole

Choice = TypeVar("Choice", bound=StrEnum)


def _found(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


class Fields:
    """The fields of one object at `path`; null and absent are the same: `None`."""

    def __init__(self, value: Any, path: str, remarks: Remarks) -> None:
        if not isinstance(value, dict):
            raise RefusedRecord(f"An object was expected, found {_found(value)}.", path)
        self._value = value
        self._remarks = remarks
        self.path = path

    def refusal(self, key: str, expected: str) -> RefusedRecord:
        """Return the refusal of the value at `key`; `expected` is what it should be."""
        found = _found(self._value.get(key))
        return RefusedRecord(f"Found {found}; {expected}.", f"{self.path}.{key}")

    def any(self, key: str) -> Any:
        """Return the value as it is."""
        return self._value.get(key)

    def text(self, key: str, limit: int) -> str | None:
        """Return a text, cut at `limit`; a number becomes its digits."""
        value = self._value.get(key)
        if value is not None and not isinstance(value, str | int | float):
            raise self.refusal(key, "a text or null was expected")
        if isinstance(value, bool):
            raise self.refusal(key, "a text or null was expected")
        return clip(value, limit, self._remarks)

    def count(self, key: str) -> int | None:
        """Return a whole number from 0 to 2^63-1; digits in a text are accepted."""
        value = self._value.get(key)
        if value is None:
            return None
        count = as_whole(value)
        if count is None or not 0 <= count <= LARGEST:
            raise self.refusal(
                key, f"a whole number from 0 to {LARGEST} or null was expected"
            )
        return count

    def number(self, key: str) -> float | None:
        """Return a number."""
        value = self._value.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refusal(key, "a number or null was expected")
        if abs(value) > 1e300:
            raise self.refusal(key, "a number below 1e300 was expected")
        return float(value)

    def flag(self, key: str) -> bool:
        """Return true or false; absent is false."""
        value = self._value.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.refusal(key, "true, false or null was expected")
        return value is True

    def choice(self, key: str, kind: type[Choice]) -> Choice | None:
        """Return one of the words of `kind`; the refusal lists them all."""
        value = self._value.get(key)
        if value is None:
            return None
        if isinstance(value, str):
            for one in kind:
                if one.value == value:
                    return one
        allowed = ", ".join(one.value for one in kind)
        raise self.refusal(key, f"one of these was expected: {allowed}")

    def time(self, key: str) -> int | None:
        """Return nanoseconds: from `<key>_ns` as they are, else from `key` guessed."""
        exact = self._value.get(f"{key}_ns")
        if exact is not None:
            if isinstance(exact, bool) or not isinstance(exact, int):
                raise self.refusal(f"{key}_ns", "whole nanoseconds were expected")
            if abs(exact) > LARGEST:
                raise self.refusal(f"{key}_ns", "nanoseconds below 2^63 were expected")
            return exact
        value = self._value.get(key)
        if value is None:
            return None
        moment = any_time_ns(value)
        if moment is None:
            raise self.refusal(
                key,
                "an ISO 8601 time or seconds, ms, us or ns since 1970 were expected",
            )
        return moment

    def mapping(self, key: str) -> dict[str, Any]:
        """Return an object of anything; absent is empty."""
        value = self._value.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.refusal(key, "an object or null was expected")
        return value

    def list(self, key: str) -> list[Any]:
        """Return a list; absent is empty."""
        value = self._value.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.refusal(key, "a list or null was expected")
        return value

    def texts(self, key: str, limit: int) -> tuple[str, ...]:
        """Return a list of texts, each cut at `limit`."""
        made = []
        for index, item in enumerate(self.list(key)):
            if not isinstance(item, str):
                raise self.refusal(key, f"element {index} must be a text")
            made.append(clip(item, limit, self._remarks) or item[:limit])
        return tuple(made)

    def within(self, key: str) -> Fields:
        """Return the fields of the object at `key`; absent has no fields."""
        value = self._value.get(key)
        path = f"{self.path}.{key}"
        return Fields({} if value is None else value, path, self._remarks)
