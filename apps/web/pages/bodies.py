"""The texts of a step as pages show them: what was said first, the JSON never far.

A preview says what it leaves out. The download is the recorded value, unread.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from apps.engine.trace import Body, ModelCall, Step, StepKind, UsageState
from apps.traces.codec import StoredBody
from apps.web.pages.spoken import Saying, conversation, new_from, saying
from apps.web.pages.spoken_parts import EMPTY, one_line
from apps.web.pages.usage import usage_facts
from apps.web.words import number_in_words

ATTRIBUTES: Final = "Attributes"
PREVIEW: Final = 600
SHOWN: Final = 64 * 1024
_ASKED: Final = 200
_SHORT: Final = 120
_MOST_ASKED: Final = 3
_MOST_SAYINGS: Final = 400
_MOST_NAMES: Final = 12
# Some messages of one answer are shown together; of a whole history only the last.
_TOGETHER: Final = 3


class Preview(msgspec.Struct, frozen=True):
    """What a line of a transcript shows of a step, and in words what it does not.

    `asked` is what the model was newly given before it said `text`.
    """

    text: str = ""
    is_cut: bool = False
    asked: str = ""
    more: str = ""


class Part(msgspec.Struct, frozen=True):
    """One value of a step: what was said in it, and the text of the value itself.

    For a value that is a plain text `sayings` is empty. `earlier` are the messages
    that the model had seen before; `unheard` counts those that were too many to show.
    """

    label: str
    text: str
    is_cut: bool
    size: int
    sayings: list[Saying] = []
    earlier: list[Saying] = []
    unheard: int = 0
    beside: str = ""


class BodyText(msgspec.Struct, frozen=True):
    """The texts of a step in reading order, its usage, and all values as one text.

    `attributes` has one part where attributes were recorded, and else none.
    """

    parts: list[Part]
    whole: str
    usage: list[tuple[str, str]]
    attributes: list[Part]


def as_text(value: Any) -> str:
    """A JSON value as people read it: strings bare, the rest as indented JSON."""
    if isinstance(value, str):
        return value
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def body_text(kept: StoredBody, step: Step | None) -> BodyText:
    """The texts of one step, each cut at 64 kB for the page and whole for download."""
    is_call = step is not None and step.kind is StepKind.MODEL_CALL
    reads = step is None or step.kind is not StepKind.TOOL_CALL
    values = [("Error", kept.error_message), *_values(kept.body, is_call=is_call)]
    present = [(label, value) for label, value in values if value not in EMPTY]
    call = step.call if step is not None else None
    parts = [
        _part(label, value, is_call=is_call)
        if reads or label != "Input"
        else _plain(label, value)
        for label, value in present
    ]
    return BodyText(
        parts=[part for part in parts if part.label != ATTRIBUTES],
        attributes=[part for part in parts if part.label == ATTRIBUTES],
        whole="\n\n".join(f"{label}\n{as_text(value)}" for label, value in present),
        usage=_usage(kept, call) if isinstance(call, ModelCall) else [],
    )


def _usage(kept: StoredBody, call: ModelCall) -> list[tuple[str, str]]:
    # A step that is read without its body does not know the source.
    usage = msgspec.structs.replace(call.usage, source=kept.usage_source)
    return usage_facts(usage)


def _values(body: Body | None, *, is_call: bool) -> list[tuple[str, Any]]:
    """The values of a body by label: of a model call the answer comes first."""
    if body is None:
        return []
    given, said = ("Input", body.input), ("Output", body.output)
    thought = ("Reasoning", body.reasoning)
    texts = [said, thought, given] if is_call else [given, thought, said]
    return [*texts, (ATTRIBUTES, body.attributes)]


def _plain(label: str, value: Any) -> Part:
    text = as_text(value)
    return Part(label, text[:SHOWN], len(text) > SHOWN, len(text))


def _part(label: str, value: Any, *, is_call: bool) -> Part:
    plain = _plain(label, value)
    found = conversation(value) if label != ATTRIBUTES else None
    if found is None or isinstance(value, str):
        return plain
    start = new_from(found.messages) if is_call and label == "Input" else 0
    left = [SHOWN]
    new = _hear(found.messages[start:], left)
    earlier = _hear(found.messages[:start], left)
    names = {name for one in (*new, *earlier) for name in one.beside}
    return msgspec.structs.replace(
        plain,
        sayings=new,
        earlier=earlier,
        unheard=len(found.messages) - len(new) - len(earlier),
        beside=_names({*found.beside, *names}),
    )


def _hear(messages: list[Any], left: list[int]) -> list[Saying]:
    """The sayings of messages while characters are `left`, which goes down."""
    heard = []
    for message in messages[:_MOST_SAYINGS]:
        if left[0] <= 0:
            break
        one = saying(message, most=left[0])
        left[0] -= len(one.text) + len(one.thought) + 1
        heard.append(one)
    return heard


def _names(names: Iterable[str]) -> str:
    found = sorted(names)
    more = len(found) - _MOST_NAMES
    words = ", ".join(found[:_MOST_NAMES])
    return f"{words} and {number_in_words(more)} more" if more > 0 else words


def preview(kept: StoredBody | None, step: Step) -> Preview:
    """What a transcript shows of a step; `more` is empty when that is all there is."""
    rest = _rest(kept, step)
    if kept is None:
        return Preview(more=", ".join(rest))
    body, is_call = kept.body or Body(), step.kind is StepKind.MODEL_CALL
    order = ("output", "reasoning") if is_call else ("output", "input", "reasoning")
    main = next((name for name in order if getattr(body, name) not in EMPTY), "")
    text, more = _main(getattr(body, main, None), step.kind, is_input=main == "input")
    if not text and is_call:
        text = _asks_for(len(kept.tool_call_ids))
    if main == "reasoning":
        text = f"thinking: {text}"
    elif body.reasoning not in EMPTY:
        more.append("its thinking")
    asked, words = _asked(body.input) if is_call else ("", ["its input"])
    if main != "input" and body.input not in EMPTY:
        more += words
    is_cut = len(text) > PREVIEW
    return Preview(
        text=text[:PREVIEW],
        is_cut=is_cut,
        asked=asked,
        more=", ".join(dict.fromkeys(["the rest of the text"] * is_cut + more + rest)),
    )


def _asks_for(calls: int) -> str:
    if not calls:
        return ""
    words = "tool call" if calls == 1 else "tool calls"
    return f"[no text; asks for {number_in_words(calls)} {words}]"


def _rest(kept: StoredBody | None, step: Step) -> list[str]:
    """What no preview ever shows: counts with their source, and attributes."""
    rest = []
    call = step.call
    if isinstance(call, ModelCall) and call.usage.state is not UsageState.MISSING:
        rest.append("its usage")
    if kept is not None and kept.body is not None and kept.body.attributes:
        rest.append("attributes")
    return rest


def _main(value: Any, kind: StepKind, *, is_input: bool) -> tuple[str, list[str]]:
    """The text of the value that a step is known by, and what it leaves out."""
    is_arguments = is_input and kind is StepKind.TOOL_CALL
    found = None if is_arguments else conversation(value)
    if found is None or isinstance(value, str):
        return _recorded(value).strip(), []
    messages = found.messages
    is_whole = kind is StepKind.MODEL_CALL or len(messages) <= _TOGETHER
    start = 0 if is_whole else len(messages) - 1
    heard = [saying(one, most=4 * PREVIEW) for one in messages[start:][:_MOST_ASKED]]
    text = "\n".join(_line(one, heard) for one in heard if one.text).strip()
    more = _before(start)
    if len(messages) - start > len(heard):
        more.append(f"{number_in_words(len(messages) - start - len(heard))} more after")
    if any(one.thought for one in heard):
        more.append("its thinking")
    if not text:
        text = "\n".join(f"thinking: {one.thought}" for one in heard if one.thought)
    return text or as_text(value), [*more, "the recorded JSON"]


def _recorded(value: Any) -> str:
    """A value as it was recorded: short JSON on one line, long JSON on many."""
    line = one_line(value)
    return line if isinstance(value, str) or len(line) <= _SHORT else as_text(value)


def _line(one: Saying, heard: list[Saying]) -> str:
    is_alone = len({each.role for each in heard}) == 1
    return one.text if is_alone or not one.role else f"{one.role}: {one.text}"


def _before(count: int) -> list[str]:
    if not count:
        return []
    return [
        f"{number_in_words(count)} {'message' if count == 1 else 'messages'} before"
    ]


def _asked(value: Any) -> tuple[str, list[str]]:
    """What is new in the input of a model call, and what is left out of it."""
    found = conversation(value)
    if found is None:
        return "", [] if value in EMPTY else ["its input"]
    start = new_from(found.messages)
    new = found.messages[start:]
    lines = [_asked_line(saying(one, most=4 * _ASKED)) for one in new[:_MOST_ASKED]]
    after = len(new) - len(lines)
    notes = _before(start) + [f"{number_in_words(after)} more after"] * (after > 0)
    if notes:
        lines.append(f"({', '.join(notes)})")
    return "\n".join(filter(None, lines)), ["its whole input"]


def _asked_line(one: Saying) -> str:
    text = " ".join(one.text.split())
    cut = f"{text[:_ASKED]}…" if len(text) > _ASKED else text
    return f"{one.role or 'input'}: {cut}" if cut else ""


def in_one_line(value: Any, most: int) -> str:
    """A JSON value on one line, cut at `most` characters with an ellipsis."""
    text = one_line(value)
    return f"{text[:most]}…" if len(text) > most else text
