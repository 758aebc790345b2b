"""How many of a thing there are, in words that are right for one of it too."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """`1 tool call`, `3 tool calls`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def none_has(number: int, thing: str, what: str) -> str:
    """`The only tool call has no result` or `None of the 3 tool calls has a result`.

    `what` begins with its article, where it has one.
    """
    if number == 1:
        return f"The only {thing} has no {what.removeprefix('a ')}"
    return f"None of the {number} {thing}s has {what}"


def has(number: int) -> str:
    """`has` for one, `have` for others."""
    return "has" if number == 1 else "have"


def are(number: int) -> str:
    """`is` for one, `are` for others."""
    return "is" if number == 1 else "are"
