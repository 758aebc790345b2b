"""Other wordings of one input, which must not change what an agent decides.

Each transformation is deterministic, says what it keeps and where it does not apply.
That the meaning is kept is a claim of ours about each of them, or of the person who
declared a wording; whether an agent follows it is what a replay shows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from apps.engine.bodies.canonical import opened
from apps.engine.replay.case import Case
from apps.engine.replay.json_rewordings import (
    decimals_in_json,
    keys_turned_round,
    spread_out,
)
from apps.engine.replay.rewordings import (
    blank_lines_around,
    decomposed,
    first_letter_turned,
    in_quotes,
    lines_per_sentence,
    politely,
    two_spaces,
    without_full_stop,
)

DECLARED: Final = "declared-"
"""How the slug of a wording begins that a person declared; its number follows, from 1."""

LONGEST_WORDING: Final = 65_536
MOST_WORDINGS: Final = 50


class DoesNotApply(ValueError):
    """Why a paraphrase leaves a case as it is, as a sentence."""


class Paraphrase(msgspec.Struct, frozen=True):
    """A transformation: what it does, and why the answer must stay the same.

    `change` gives the new text or value; `None` where there is nothing to change.
    `is_of_json` ones change JSON values and texts that hold one.
    """

    slug: str
    label: str
    keeps: str
    change: Callable[[Any], Any]
    is_of_json: bool = False


PARAPHRASES: Final = (
    Paraphrase(
        "polite",
        "Asks politely",
        "“Please help with the following.” (in English) stands before the same text; "
        "politeness asks for nothing else.",
        politely,
    ),
    Paraphrase(
        "first-letter",
        "Turns the case of the first letter",
        "One letter at the beginning of an ordinary word is written large or small; it "
        "is the same word.",
        first_letter_turned,
    ),
    Paraphrase(
        "two-spaces",
        "Doubles the spaces between words",
        "Running text means the same with wider gaps. Texts with code, tables or "
        "indented lines are left alone.",
        two_spaces,
    ),
    Paraphrase(
        "sentence-lines",
        "Puts each sentence on its own line",
        "A line break between sentences says nothing. Texts that have lines already "
        "are left alone.",
        lines_per_sentence,
    ),
    Paraphrase(
        "blank-lines",
        "Adds blank lines before and after",
        "Blank lines at the ends of a text say nothing.",
        blank_lines_around,
    ),
    Paraphrase(
        "no-full-stop",
        "Drops the full stop at the end",
        "The last sentence ends with the text. Question marks, ellipses and "
        "abbreviations are left alone.",
        without_full_stop,
    ),
    Paraphrase(
        "quoted",
        "Puts the whole text in quotation marks",
        "“The request is:” (in English) stands before the same text in quotation marks.",
        in_quotes,
    ),
    Paraphrase(
        "decomposed",
        "Writes accents as characters of their own",
        "Unicode calls both spellings of é canonically equivalent (NFC and NFD).",
        decomposed,
    ),
    Paraphrase(
        "json-keys",
        "Turns the order of the keys of JSON objects round",
        "A JSON object is an unordered set of names and values (RFC 8259, section 1).",
        keys_turned_round,
        is_of_json=True,
    ),
    Paraphrase(
        "json-spread",
        "Writes JSON over several lines",
        "Blanks between the parts of JSON say nothing (RFC 8259, section 2).",
        spread_out,
        is_of_json=True,
    ),
    Paraphrase(
        "json-decimals",
        "Writes whole numbers of JSON as 3.0 instead of 3",
        "JSON has one kind of number; 3 and 3.0 are the same one. Numbers of more than "
        "15 digits are left alone.",
        decimals_in_json,
        is_of_json=True,
    ),
)
"""Our own transformations, in the order in which they are offered."""

_BY_SLUG: Final = {one.slug: one for one in PARAPHRASES}


def reworded(case: Case, slug: str, *, declared: Sequence[str] = ()) -> Case:
    """The case with its input, and the last message of a user, worded anew.

    `slug` is one of `PARAPHRASES`, or `declared-1` for the first of the `declared`
    texts, which stand in the place of the input. Where the message holds the input as
    a part, the part alone is changed. Raises `DoesNotApply` where nothing would change
    and `LookupError` for an unknown slug. Same arguments, same case.
    """
    change = _change_of(slug, declared)
    given, last = case.input, _last_user(case.messages)
    content = None if last is None else case.messages[last].get("content")
    new = None if given is None else _changed(given, change)
    reply = None if content is None else _new_content(content, (given, new), change)
    # A run must not be given the old words in one place and the new ones in another.
    is_left = (given is not None and new is None) or (
        content is not None and reply is None
    )
    if is_left or (new is None and reply is None):
        raise DoesNotApply(_why(slug))
    messages = list(case.messages)
    if last is not None and reply is not None:
        messages[last] = {**messages[last], "content": reply}
    return msgspec.structs.replace(
        case,
        input=given if new is None else new,
        messages=tuple(messages),
        name=f"{case.name} · {slug}" if case.name else slug,
    )


def why_not(case: Case, slug: str, *, declared: Sequence[str] = ()) -> str:
    """The sentence that says why a paraphrase does not apply; empty where it does."""
    try:
        reworded(case, slug, declared=declared)
    except DoesNotApply as why:
        return str(why)
    return ""


def refuse_wordings(declared: Iterable[str]) -> None:
    """Raise `ValueError` with a sentence for declared wordings that cannot be used."""
    listed = list(declared)
    if len(listed) > MOST_WORDINGS:
        raise ValueError(f"Declare at most {MOST_WORDINGS} wordings.")
    for number, text in enumerate(listed, start=1):
        if not text.strip():
            raise ValueError(f"Wording {number} is empty.")
        if len(text) > LONGEST_WORDING:
            raise ValueError(
                f"Wording {number} has more than {LONGEST_WORDING:,} characters."
            )
    if len({" ".join(text.split()) for text in listed}) < len(listed):
        raise ValueError("Two declared wordings are the same text.")


def label_of(slug: str) -> str:
    """What a paraphrase is called for people."""
    if slug.startswith(DECLARED):
        return f"Declared wording {slug.removeprefix(DECLARED)}"
    found = _BY_SLUG.get(slug)
    return slug if found is None else found.label


def _change_of(slug: str, declared: Sequence[str]) -> Callable[[Any], Any]:
    """What gives the new text or value for an old one, `None` where nothing changes."""
    if slug.startswith(DECLARED):
        number = slug.removeprefix(DECLARED)
        if not number.isdecimal() or not 1 <= int(number) <= len(declared):
            raise LookupError(f"There is no declared wording “{slug}”.")
        text = declared[int(number) - 1]
        return lambda old: text if isinstance(old, str) and old != text else None
    found = _BY_SLUG.get(slug)
    if found is None:
        raise LookupError(f"There is no paraphrase “{slug}”.")
    return found.change if found.is_of_json else _of_text(found.change)


def _of_text(change: Callable[[str], str | None]) -> Callable[[Any], Any]:
    """A change of running text: JSON in a text is none."""
    return lambda old: (
        change(old)
        if isinstance(old, str) and old.strip() and opened(old) is old
        else None
    )


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """A text or value changed; of an object with one text, that text."""
    new = change(value)
    if new is not None and not _is_same(new, value):
        return new
    place = _only_text(value, ())
    if not place:
        return None
    whole = copy.deepcopy(value)
    *path, last = place
    holder = whole
    for key in path:
        holder = holder[key]
    new = change(holder[last])
    if new is None or new == holder[last]:
        return None
    holder[last] = new
    return whole


def _is_same(new: Any, old: Any) -> bool:
    """Whether two values are written alike, the order of keys included."""
    return type(new) is type(old) and repr(new) == repr(old)


def _only_text(value: Any, path: tuple[Any, ...]) -> tuple[Any, ...]:
    """The way to the one text of several words in a value; empty where it has not one."""
    places = list(_texts(value, path))
    return places[0] if len(places) == 1 else ()


def _texts(value: Any, path: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
    if len(path) > 8:
        return
    if isinstance(value, str):
        if path and len(value.split()) > 1:
            yield path
    elif isinstance(value, dict | list):
        held = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in held:
            yield from _texts(item, (*path, key))


def _last_user(messages: tuple[dict[str, Any], ...]) -> int | None:
    places = range(len(messages) - 1, -1, -1)
    return next((p for p in places if messages[p].get("role") == "user"), None)


def _new_content(
    content: Any, pair: tuple[Any, Any], change: Callable[[Any], Any]
) -> Any:
    """The content of a message with the input in it exchanged, else changed itself."""
    old, new = pair
    is_text = isinstance(content, str) and isinstance(old, str)
    if is_text and isinstance(new, str) and old.strip() and old in content:
        before, _, after = content.rpartition(old)
        return f"{before}{new}{after}"
    if isinstance(content, list):
        return _new_parts(content, pair, change)
    return None if content is None else _changed(content, change)


def _new_parts(
    parts: list[Any], pair: tuple[Any, Any], change: Callable[[Any], Any]
) -> Any:
    for place in range(len(parts) - 1, -1, -1):
        part = parts[place]
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            text = _new_content(part["text"], pair, change)
            if text is None:
                return None
            return [*parts[:place], {**part, "text": text}, *parts[place + 1 :]]
    return None


def _why(slug: str) -> str:
    found = _BY_SLUG.get(slug)
    if found is None:
        return "The input is no text, or the declared wording is the input itself."
    what = "JSON" if found.is_of_json else "a text"
    return (
        f"“{found.label}” does not apply: the input is not {what} that it can change."
    )
