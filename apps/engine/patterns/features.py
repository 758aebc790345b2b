"""The features of what an agent did in a trace, small enough to be stored with it.

Features are read, never guessed: a script is that of the letters (no language is
concluded from it), and what a file does not record is `None`. The fields of an input
are features only where it is a JSON object; fields beyond the limits are left out and
then are not known.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import msgspec

from apps.engine.bodies.canonical import opened
from apps.engine.bodies.texts import texts_of
from apps.engine.conduct import Conduct, temperature_of
from apps.engine.patterns.units import Value
from apps.engine.sequences import Removal, recorded_calls
from apps.engine.trace import Step, StepKind, StepStatus, Trace

MOST_BYTES: Final = 1_500
"""Of the features of one conduct as JSON."""

MOST_FIELDS: Final = 40
_DEEPEST: Final = 2
_LONGEST: Final = 60
_LONGEST_NAME: Final = 60
_MOST_MEMBERS: Final = 10
_MOST_READ: Final = 200_000
_MOST_LETTERS: Final = 2_000
_MAIN: Final = 0.7
_KANA: Final = frozenset({"Hiragana", "Katakana"})
_encode: Final = msgspec.json.Encoder().encode


def features_of(conduct: Conduct, trace: Trace) -> dict[str, Value]:
    """What is recorded of `conduct`, by name; at most 1,500 bytes as JSON.

    Its agent; number of invocations; `input.<field>` for the numbers, booleans, short
    texts and lists of short texts of a JSON input down to two levels; length and
    script of the input; user messages before its first act and in the whole trace;
    tools, models and temperature; numbers of tool calls, model calls, failed calls
    and retries. `conduct` is of `trace`. Linear in the steps. Never raises.
    """
    steps = conduct.steps
    given = conduct.invocations[0].input
    found: dict[str, Value] = {
        "agent": _clean(conduct.agent)[:_LONGEST] or None,
        "invocations": len(conduct.invocations),
        **_of_input(given),
        **_of_turns(trace, steps),
        **_of_calls(conduct, trace),
        "temperature": _finite(temperature_of(conduct)),
    }
    return _with_fields(found, given)


def stored_value(value: Any) -> Value:
    """A feature as it comes back from JSON: lists are sets of names again."""
    return tuple(map(str, value)) if isinstance(value, list) else value


def script_of(text: str) -> str | None:
    """The Unicode script of most letters of `text`: `Latin`, `Cyrillic`, `Han`.

    From the names of its first 2,000 letters. Han with kana is `Japanese script`, no
    script with 70 % of the letters is `mixed`, no letter `None`.
    """
    counts: Counter[str] = Counter()
    for char in text[: 4 * _MOST_LETTERS]:
        if char.isalpha():
            counts[_script(char)] += 1
            if counts.total() >= _MOST_LETTERS:
                break
    if not counts:
        return None
    if any(counts[kana] for kana in _KANA):
        kana = sum([counts.pop(one, 0) for one in (*_KANA, "Han")])
        counts["Japanese script"] = kana
    [(script, number)] = counts.most_common(1)
    return script if number >= _MAIN * counts.total() else "mixed"


@lru_cache(maxsize=4_096)
def _script(char: str) -> str:
    word = unicodedata.name(char, "OTHER").split(" ", 1)[0].split("-", 1)[0]
    return "Han" if word == "CJK" else word.capitalize()


def _of_input(given: Any) -> dict[str, Value]:
    if given is None:
        return {"input_length": None, "script": None}
    texts = list(texts_of(given, _MOST_READ))
    return {
        "input_length": sum(map(len, texts)),
        "script": script_of(" ".join(texts)),
    }


def _of_turns(trace: Trace, steps: tuple[Step, ...]) -> dict[str, Value]:
    users = [step.seq for step in trace.steps if step.kind is StepKind.USER_MESSAGE]
    if not users:
        return {"turn": None, "user_messages": None}
    acts = [step.seq for step in steps if step.kind is not StepKind.USER_MESSAGE]
    first = min(acts, default=None)
    turn = None if first is None else sum([seq < first for seq in users])
    return {"turn": turn, "user_messages": len(users)}


def _of_calls(conduct: Conduct, trace: Trace) -> dict[str, Value]:
    calls, numbers = conduct.calls, {step.seq for step in conduct.steps}
    models = [model for one in conduct.invocations for model in one.models]
    asked = [
        entry
        for entries in recorded_calls(trace).values()
        for entry in entries
        if entry.step.seq in numbers
    ]
    made = [one for one in asked if one.removed in {None, Removal.FAILED}]
    failed = [one for one in made if one.step.status is StepStatus.ERROR]
    return {
        "calls": len(calls),
        "errors": sum([call.failed for call in calls]) + len(failed),
        "model_calls": len(made) if asked else None,
        "models": _names(models) if models else None,
        "retries": (
            sum([one.removed is Removal.RETRIED for one in asked]) if asked else None
        ),
        "tools": _names([call.name for call in calls]),
    }


def _with_fields(found: dict[str, Value], given: Any) -> dict[str, Value]:
    """The features and those fields of the input for which there is room."""
    kept: dict[str, Value] = {
        name: value for name, value in found.items() if value is not None
    }
    room = MOST_BYTES - len(_encode(kept))
    fields = sorted(
        _fields(opened(given), "input", 1),
        key=lambda item: (item[0].count("."), item[0]),
    )
    for name, value in fields[:MOST_FIELDS]:
        taken = len(_encode({name: value}))
        if taken <= room:
            kept[name] = value
            room -= taken
    return kept


def _fields(value: Any, path: str, depth: int) -> Iterator[tuple[str, Value]]:
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        name = f"{path}.{_clean(str(key))[:_LONGEST_NAME]}"
        if isinstance(item, dict):
            if depth < _DEEPEST:
                yield from _fields(item, name, depth + 1)
        elif (field := _field(item)) is not None:
            yield name, field


def _field(item: Any) -> Value:
    """A field as a feature; `None` for long texts, objects in lists and the like."""
    if isinstance(item, bool):
        return item
    if isinstance(item, int | float):
        return _finite(item)
    if isinstance(item, str):
        return _clean(item) if len(item) <= _LONGEST and "\n" not in item else None
    if isinstance(item, list) and 0 < len(item) <= _MOST_MEMBERS:
        is_short = all(isinstance(one, str) and len(one) <= _LONGEST for one in item)
        return _names(item) if is_short else None
    return None


def _finite(number: float | None) -> float | None:
    """A number that JSON and 64 bits can hold, else `None`."""
    if number is None or not -(2**63) <= number < 2**63:
        return None
    return number if math.isfinite(number) else None


def _names(names: list[str]) -> tuple[str, ...]:
    kept = sorted({name[:_LONGEST] for name in map(_clean, names)})
    return tuple(kept[:_MOST_MEMBERS])


def _clean(text: str) -> str:
    """The text without lone surrogates, which JSON and PostgreSQL cannot hold."""
    clean = text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")
    return clean.strip()
