"""Which texts are running prose or long, and which are one short label.

A rule of thumb by shape, and it does not read. What it takes for prose is not compared
unless somebody asks, and neither are whole files and scripts among the arguments of a
tool.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.bodies.canonical import opened
from apps.engine.bodies.scripts import is_unspaced

LONGEST_LABEL: Final = 60
MOST_WORDS: Final = 4
_ENDS: Final = ".!?\u2026\u3002\uff01\uff1f"
_QUOTES: Final = "\"'`*_\u201c\u201d\u2018\u2019"
_PUNCTUATION: Final = _ENDS + _QUOTES + ",;:()[]\u3001\uff0c"
_FEWEST_WORDS: Final = 6
_LONGEST_UNSPACED: Final = 20
_SHARE: Final = 0.7
_LONGEST_LINES: Final = 200
_LONGEST_TEXT: Final = 1_000
_DEEPEST: Final = 40
_NO_DECISIONS: Final = frozenset(
    {
        "done", "ok", "okay", "all done", "finished", "finish", "terminate", "terminated",
        "completed", "complete", "task completed", "task complete", "task done", "stop",
        "end", "exit", "thanks", "thank you", "hi", "hi there", "hello", "bye",
        "goodbye", "sure", "none", "null", "n/a", "you're welcome", "welcome",
    }
)  # fmt: skip
"""Short texts that end a run or greet, whatever was decided."""


class _Nothing:
    """What is left of a value that is prose altogether."""


NOTHING: Final = _Nothing()


def label_in(text: str) -> str | None:
    """The one short label that a text is, else `None`.

    At most 60 characters and 4 words on one line that do not end like a sentence.
    Marks around it and the full stop after a single word go. Words that only end a
    run ("Done") or greet are no label.
    """
    bare = text.strip().strip(_QUOTES).strip()
    words = bare.split()
    if len(words) == 1:
        bare = bare.rstrip(_ENDS).strip(_QUOTES)
    if not bare or len(bare) > LONGEST_LABEL or len(words) > MOST_WORDS:
        return None
    if "\n" in bare or bare[-1] in _ENDS or bare.casefold() in _NO_DECISIONS:
        return None
    return bare if any(map(str.isalnum, bare)) and not is_prose(bare) else None


def is_prose(text: str) -> bool:
    """Whether a text is running words: 6 or more, most of them letters only.

    In scripts without spaces: more than 20 characters of such a script.
    """
    if sum(map(is_unspaced, text[:2_000])) > _LONGEST_UNSPACED:
        return True
    words = text[:2_000].split()
    if len(words) < _FEWEST_WORDS:
        return False
    plain = sum([_is_plain_word(word) for word in words])
    return plain >= _SHARE * len(words)


def _is_long(text: str) -> bool:
    return len(text) > (_LONGEST_LINES if "\n" in text else _LONGEST_TEXT)


def _is_plain_word(word: str) -> bool:
    bare = (
        word.strip(_PUNCTUATION).replace("'", "").replace("\u2019", "").replace("-", "")
    )
    return not bare or bare.isalpha()


def without_prose(value: Any) -> tuple[Any, list[str]]:
    """A JSON value without prose and long texts, and the fields where one was left out.

    A text is long beyond 1,000 characters, or 200 on several lines. `NOTHING` where all
    of it is left out.
    """
    left_out: list[str] = []
    return _kept(value, "", left_out, 0), left_out


def _kept(value: Any, place: str, left_out: list[str], depth: int) -> Any:
    value = opened(value)
    if isinstance(value, str):
        if not (is_prose(value) or _is_long(value)):
            return value
        left_out.append(place)
        return NOTHING
    if depth > _DEEPEST or not value:
        return value
    if isinstance(value, dict):
        return _kept_fields(value, place, left_out, depth)
    if isinstance(value, list | tuple):
        items = [_kept(item, place, left_out, depth + 1) for item in value]
        items = [item for item in items if item is not NOTHING]
        return items or NOTHING
    return value


def _kept_fields(
    value: dict[str, Any], place: str, left_out: list[str], depth: int
) -> Any:
    kept = {}
    for name, item in value.items():
        inner = f"{place}.{name}" if place else str(name)
        found = _kept(item, inner, left_out, depth + 1)
        if found is not NOTHING:
            kept[name] = found
    return kept or NOTHING


def left_out_words(left_out: list[str]) -> str:
    """A half sentence that names what was left out, else nothing."""
    named = list(dict.fromkeys(one for one in left_out if one))
    if not named:
        return ", without its long text" if left_out else ""
    shown = ", ".join(f"“{one[:40]}”" for one in named[:4])
    more = f" and {len(named) - 4} more" if len(named) > 4 else ""
    return f", without the long text in {shown}{more}"
