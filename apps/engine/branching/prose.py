"""Which arguments of a tool call are prose: words about a decision, not the decision.

The rule goes by the name of an argument and by the form of its text. It can leave out
a message that was the decision; comparing text brings it back.
"""

from __future__ import annotations

from typing import Any, Final

EXPLAINS: Final = frozenset(
    {
        "thought", "thoughts", "thinking", "reasoning", "rationale", "explanation",
        "justification",
    }
)  # fmt: skip
FEWEST_WORDS: Final = 8
_SHARE_OF_WORDS: Final = 0.8
_OF_CODE: Final = frozenset("{}<>=|\\*`")
_MARKS: Final = ".,;:!?'\"()-\u2013\u2014\u2018\u2019\u201c\u201d"
_DEEPEST: Final = 6


def without_prose(value: Any, depth: int = 0) -> Any:
    """The arguments without those that are prose; prose in a list becomes `None`.

    Prose is what stands under a name that announces an explanation (thought,
    reasoning, rationale, ...), or a text of 8 words or more of which 80 % are
    made of letters only and that holds no character of code.
    """
    if depth > _DEEPEST:
        return value
    if isinstance(value, dict):
        return {
            name: without_prose(item, depth + 1)
            for name, item in value.items()
            if not _is_left_out(name, item)
        }
    if isinstance(value, list):
        return [
            None if is_prose(item) else without_prose(item, depth + 1) for item in value
        ]
    return value


def only_explains(value: Any) -> bool:
    """Whether arguments hold a thought and nothing else, as those of `think` do."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            _bare(name) in EXPLAINS and isinstance(item, str)
            for name, item in value.items()
        )
    )


def is_prose(value: Any) -> bool:
    """Whether a value is a text of sentences, as far as its form tells."""
    if not isinstance(value, str) or not _OF_CODE.isdisjoint(value):
        return False
    words = value.split()
    if len(words) < FEWEST_WORDS:
        return False
    spoken = sum(_is_word(word) for word in words)
    return spoken >= _SHARE_OF_WORDS * len(words)


def _is_left_out(name: Any, item: Any) -> bool:
    if isinstance(item, str) and _bare(name) in EXPLAINS:
        return True
    return is_prose(item)


def _bare(name: Any) -> str:
    return str(name).replace("_", "").replace("-", "").casefold()


def _is_word(word: str) -> bool:
    bare = word.strip(_MARKS)
    for mark in "'\u2019-":
        bare = bare.replace(mark, "")
    return bare.isalpha()
