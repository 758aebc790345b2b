"""Why a call has no answer: which recording it comes closest to, and what differs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, Final

from apps.engine.bodies.canonical import canonical, opened
from apps.engine.bodies.recorded import REDACTED
from apps.engine.replay.case import RecordedCall

MOST_COMPARED: Final = 50
_MOST_NAMED: Final = 3
_LONGEST: Final = 60
_LONGEST_NAME: Final = 120
_MOST_NAMES: Final = 200
_ABSENT: Final = object()


def why_missed(arguments: Any, same_tool: Sequence[tuple[int, RecordedCall]]) -> str:
    """A sentence on the recording that is nearest to the arguments of a call.

    `same_tool` are the recordings of the tool with their places among the calls of the
    case. The nearest has the fewest differing arguments, the first of equals; at most
    50 are compared.
    """
    known = [(at, one) for at, one in same_tool if one.arguments is not None]
    if not known:
        return "Its recordings have no arguments that can be compared."
    given = _as_object(arguments)
    # What was called may be long, and is compared with each of them.
    texts = _texts(given)
    compared = [
        (_differing(given, texts, _as_object(one.arguments)), at, one)
        for at, one in known[:MOST_COMPARED]
    ]
    differing, at, one = min(compared, key=lambda item: (len(item[0]), item[1]))
    where = f"The nearest recording is call {at + 1:,}"
    if REDACTED in canonical(one.arguments):
        return f"{where}, whose arguments are partly redacted."
    return f"{where}, which differs in {_in_words(differing)}."


def like(tool: str, names: Iterable[str]) -> str:
    """A sentence that a tool has no recording, naming one that is spelled alike."""
    # An agent may ask for a name of any length; likeness is costly for long ones.
    tool = tool[:_LONGEST_NAME]
    listed = [name[:_LONGEST_NAME] for name in dict.fromkeys(names)]
    near = get_close_matches(tool, listed[:_MOST_NAMES], n=1)
    named = f" One of `{near[0]}` is." if near else ""
    return f"No call of `{tool}` is recorded.{named}"


def _differing(
    given: Any, texts: dict[str, str], recorded: Any
) -> list[tuple[str, Any, Any]]:
    """The arguments that are not the same: name, as called, as recorded."""
    others = _texts(recorded)
    if texts == others:
        return []
    if not isinstance(given, dict) or not isinstance(recorded, dict):
        return [("", given, recorded)]
    return [
        (name, given.get(name, _ABSENT), recorded.get(name, _ABSENT))
        for name in dict.fromkeys([*recorded, *given])
        if texts.get(name) != others.get(name)
    ]


def _texts(value: Any) -> dict[str, str]:
    """Each argument as one text; of what is no object the whole, under no name."""
    if isinstance(value, dict):
        return {name: canonical(held) for name, held in value.items()}
    return {"": canonical(value)}


def _as_object(value: Any) -> Any:
    value = opened(value)
    return {} if value in (None, "") else value


def _in_words(differing: list[tuple[str, Any, Any]]) -> str:
    if not differing:
        return "nothing that can be named"
    said = [
        f"{f'`{name}`' if name else 'its arguments'} ({_shown(recorded)} there, "
        f"{_shown(given)} here)"
        for name, given, recorded in differing[:_MOST_NAMED]
    ]
    more = len(differing) - _MOST_NAMED
    return "; ".join(said) + (f"; and {more:,} more" if more > 0 else "")


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "absent"
    text = " ".join(canonical(value)[: 4 * _LONGEST].split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
