"""Refusals of the JSON door: a status and a sentence, `detail` and `sentence` alike."""

from __future__ import annotations

from typing import Any

from rest_framework.exceptions import APIException


class BadRequest(APIException):
    """400: the request cannot be understood; the detail says what would do."""

    status_code = 400


class FileTooLarge(APIException):
    """413: the file is over the limit; the detail says which limit and what to do."""

    status_code = 413


def in_a_sentence(data: Any) -> dict[str, str]:
    """The body of a refusal: what the framework has to say, as one sentence."""
    sentence = str(data.get("detail", data) if isinstance(data, dict) else data)
    return {"state": "failed", "sentence": sentence, "detail": sentence}
