"""Reads typed settings from the environment and says in a sentence what is wrong."""

from __future__ import annotations

from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured
from pydantic import ValidationError
from pydantic_settings import BaseSettings

Settings = TypeVar("Settings", bound=BaseSettings)


def from_environment(kind: type[Settings], **chosen: Any) -> Settings:
    """Return the settings of `kind`; what was chosen on the command line wins.

    Raises:
        ImproperlyConfigured: A value does not fit; the message names the variable.
    """
    try:
        return kind(**chosen)
    except ValidationError as error:
        prefix = kind.model_config.get("env_prefix", "")
        wrong = [
            f"{prefix}{'.'.join(map(str, item['loc']))}".upper()
            + f" is {item['input']!r}: {item['msg'].lower()}"
            for item in error.errors()
        ]
        raise ImproperlyConfigured("; ".join(wrong) + ".") from None


def listed(text: str) -> list[str]:
    """The entries of a setting that is a list with commas between them."""
    return [one.strip() for one in text.split(",") if one.strip()]
