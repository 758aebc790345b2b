"""What an address asks for: whole numbers, one of several words, a page of a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rest_framework.request import Request
from rest_framework.utils.urls import replace_query_param

from apps.api.refusals import BadRequest

PAGE_SIZE = 100


def whole(request: Request, name: str) -> int | None:
    """The whole number of that name, None without one; raises `BadRequest`."""
    value = request.query_params.get(name, "")
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 18):
        raise BadRequest(f"“{name}” is a whole number.")
    return int(value)


def one_of(request: Request, name: str, allowed: Mapping[str, Any]) -> str:
    """The word of that name, "" without one; raises `BadRequest` for another."""
    value = request.query_params.get(name, "")
    if value and value not in allowed:
        raise BadRequest(f"“{name}” is one of: {', '.join(allowed)}.")
    return value


def is_yes(request: Request, name: str) -> bool:
    """Whether `?name=yes` (or 1) is said; raises `BadRequest` for anything else."""
    return one_of(request, name, {"yes": True, "1": True, "no": False, "0": False}) in {
        "yes",
        "1",
    }


def following(
    request: Request, name: str, rows: Sequence[Any], shown: Sequence[Any]
) -> str | None:
    """The address of the page after `shown`; None where `rows` has none beyond them."""
    if len(rows) <= len(shown):
        return None
    here = request.build_absolute_uri()
    return str(replace_query_param(here, name, str(shown[-1].pk)))
