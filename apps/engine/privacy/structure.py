"""Structure only: what is left of a trace when everything people wrote is dropped.

Kept are names, ids, kinds, order, times, statuses, models, token counts, finish
reasons, the outcome's numbers, task and trial. Dropped are bodies, error messages,
metadata and labels. A name that is a piece of a body (some formats name a trace after
its first message) is replaced by a hash, and so is a task in words, because trials
must still share it. A hash of a text that one can guess can be checked against the
guess.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from apps.engine.format import Note, Rejected
from apps.engine.trace import AgentInvocation, ModelCall, Outcome, Step, ToolCall, Trace

SENTENCE: Final = "Structure only: bodies were dropped before storing."
NO_BODY: Final = "Structure only: no body was kept."
LONGEST_WORDING: Final = 60
MOST_WORDS: Final = 4
_QUOTED: Final = re.compile(
    r"“[^”]*”|\"(?:[^\"\\]|\\.)*\"?|`[^`]*`|'[^']{2,}'|(?<=[Ff]ound )[^;]+"
)


def structure_of(trace: Trace) -> Trace:
    """The trace without bodies and without what is taken from them."""
    said = frozenset(_texts_of(trace))
    names = _Names(said)
    return Trace(
        name=names.name(trace.name),
        steps=tuple(_step(step, names) for step in trace.steps),
        invocations=tuple(_invocation(one, names) for one in trace.invocations),
        native_id=trace.native_id,
        session=names.key(trace.session),
        start_ns=trace.start_ns,
        end_ns=trace.end_ns,
        order=trace.order,
        outcome=_outcome(trace.outcome),
        task=names.key(trace.task),
        trial=trace.trial,
        notes=_notes(trace.notes),
    )


def _notes(notes: tuple[str, ...]) -> tuple[str, ...]:
    said = tuple(without_quotes(note) for note in notes if note != SENTENCE)
    return (SENTENCE, *said)


def without_quotes(sentence: str) -> str:
    """A sentence of a reader without the values that it quotes from the file."""
    return _QUOTED.sub("…", sentence)


def wordless(item: Rejected) -> Rejected:
    """A rejected record without its beginning and without values in its reason."""
    return Rejected(without_quotes(item.place), without_quotes(item.reason))


def wordless_note(note: Note) -> Note:
    """A note without values from the file."""
    return Note(without_quotes(note.code), without_quotes(note.sentence), note.count)


def is_wording(text: str) -> bool:
    """Whether a text reads like a sentence of someone rather than a name."""
    return (
        len(text) > LONGEST_WORDING
        or len(text.split()) > MOST_WORDS
        or "\n" in text
        or "@" in text
    )


def mark_of(text: str) -> str:
    """What stands for a text that is not kept: equal for equal texts."""
    return f"text {hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:12]}"


class _Names:
    """Decides which names are names and which are pieces of what was said."""

    def __init__(self, said: frozenset[str]) -> None:
        self._said = said

    def name(self, name: str) -> str:
        """A name, or the mark of a text."""
        is_said = name in self._said or name.rstrip("…") in self._said
        return mark_of(name) if is_said or is_wording(name) else name

    def key(self, key: str | None) -> str | None:
        """The same for a key that may be missing."""
        return None if key is None else self.name(key)


def _texts_of(trace: Trace) -> Iterator[str]:
    """The texts of all bodies with a blank in them: words, not names."""
    for step in trace.steps:
        if step.body is not None:
            for value in (step.body.input, step.body.output, step.body.reasoning):
                yield from _leaves(value)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if " " in value:
            yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)


def _word(text: str | None) -> str | None:
    """A recorded word such as an error's type; a sentence is dropped."""
    return None if text is None or is_wording(text) else text


def _step(step: Step, names: _Names) -> Step:
    return msgspec.structs.replace(
        step,
        name=names.key(step.name),
        error_type=_word(step.error_type),
        error_message=None,
        native_kind=_word(step.native_kind),
        call=_call(step.call, names),
        body=None,
    )


def _call(
    call: ModelCall | ToolCall | None, names: _Names
) -> ModelCall | ToolCall | None:
    if isinstance(call, ModelCall):
        return msgspec.structs.replace(call, finish_raw=_word(call.finish_raw))
    if isinstance(call, ToolCall):
        return msgspec.structs.replace(call, name=names.name(call.name))
    return None


def _invocation(one: AgentInvocation, names: _Names) -> AgentInvocation:
    return msgspec.structs.replace(one, agent=names.key(one.agent))


def _outcome(outcome: Outcome) -> Outcome:
    return msgspec.structs.replace(outcome, label=_word(outcome.label))
