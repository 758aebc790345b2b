"""Takes the secrets of a target out of everything that came back from it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote

MARK: Final = "[the target's key]"
_SHORTEST: Final = 6


class Mask:
    """Replaces some secrets in texts and JSON values.

    A secret is also found where it is written for JSON, for an address or in base64.
    Shorter ones than six characters are no secrets: they would be found in any text.
    """

    def __init__(self, secrets: Iterable[str], mark: str = MARK) -> None:
        self._mark = mark
        forms = {
            form
            for secret in secrets
            # "Basic abc..." is a secret, and so is what stands behind the blank.
            for part in (secret.strip(), *secret.split())
            if len(part) >= _SHORTEST
            for form in _forms(part)
        }
        # The longest first: one form may be a part of another.
        self._forms = sorted(forms, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text with a mark in the place of each secret."""
        for form in self._forms:
            text = text.replace(form, self._mark)
        return text

    def value(self, value: Any) -> Any:
        """A JSON value with all its texts and keys masked."""
        if not self._forms:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.value(item) for key, item in value.items()}
        return value

    def hidden(self, value: Any) -> tuple[Any, bool]:
        """The masked JSON value, and whether there was a secret in it."""
        found = self.value(value)
        return found, found != value


def _forms(secret: str) -> set[str]:
    encoded = base64.b64encode(secret.encode()).decode()
    return {
        secret,
        json.dumps(secret)[1:-1],
        quote(secret, safe=""),
        encoded,
        encoded.rstrip("="),
    }
