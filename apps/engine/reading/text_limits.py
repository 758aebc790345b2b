"""Short texts of a step or trace: kept within bounds, safe to store, with remarks.

The full text stays in the raw upload; a text that was cut is counted in a note of
its trace.
"""

from __future__ import annotations

import re
from typing import Any, Final

NAME: Final = 300
IDENTIFIER: Final = 200
MESSAGE: Final = 500
LABEL: Final = 200

_UNSAFE: Final = re.compile("[\0\ud800-\udfff]")


class Remarks:
    """What the reader of one trace had to decide, each kind counted once."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, words: str, count: int = 1) -> None:
        """Count a remark; `words` may hold `{n}` for the count."""
        self._counts[words] = self._counts.get(words, 0) + count

    def sentences(self) -> tuple[str, ...]:
        """Return one sentence for each kind of remark, in order of appearance."""
        return tuple(
            words.replace("{n}", str(count)) for words, count in self._counts.items()
        )


_CUT: Final = "Names, ids or error messages that were cut to their limit: {n}."


def clip(value: Any, limit: int, remarks: Remarks) -> str | None:
    """Return `value` as a text of at most `limit` characters; `None` stays `None`.

    Whole numbers become their digits; lists, objects and blank texts are not names
    and give `None`.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        value = _digits(value)
    if not value.strip():
        return None
    if len(value) > limit:
        remarks.add(_CUT)
        value = value[: limit - 1] + "\u2026"
    # Most are plain, which is seen faster than the few unsafe characters are sought.
    return value if value.isprintable() else _UNSAFE.sub("\ufffd", value)


def _digits(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return str(value)
