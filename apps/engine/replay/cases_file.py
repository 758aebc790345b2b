"""Cases as JSON lines: one case a line, with the fields of `Case`.

    {"agent": "billing", "name": "double charge", "input": "I was charged twice",
     "messages": [{"role": "user", "content": "I was charged twice"}],
     "tools": [{"name": "get_order", "description": "", "parameters": {}}],
     "calls": [{"tool": "get_order", "arguments": {"id": 7}, "result": "paid"}],
     "state": null, "context": {}, "model": "", "parameters": {}}

Only `agent` and one of `input` and `messages` are needed; an empty `agent` is the one
without a name. Good lines are kept, and of each bad one it is said what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from apps.engine.reading.json_values import Decoder, RefusedValue, made_visible
from apps.engine.reading.json_words import excerpt, why_not_json
from apps.engine.replay.case import Case, RecordedCall, ToolOffer

MOST_CASES: Final = 10_000
LONGEST_LINE: Final = 16 * 1024**2
MOST_REFUSED: Final = 1_000

_KNOWN: Final = Case.__struct_fields__
_PARTS: Final = {
    "tools": ToolOffer.__struct_fields__,
    "calls": RecordedCall.__struct_fields__,
}
_NOTHING: Final = msgspec.json.decode(msgspec.json.encode(Case(agent="")))
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})


class RefusedLine(msgspec.Struct, frozen=True):
    """A line that holds no case: its number from 1, why, and how it begins."""

    line: int
    reason: str
    excerpt: str = ""


class CasesRead(msgspec.Struct, frozen=True):
    """The cases of a file in order, the lines that were refused, and what to know.

    `refused_count` counts them all; at most 1,000 are listed. `notes` say what was
    replaced on the way in.
    """

    cases: tuple[Case, ...]
    refused: tuple[RefusedLine, ...] = ()
    refused_count: int = 0
    notes: tuple[str, ...] = ()


class _Refused(Exception):
    """Why a line is none that can be used, as a sentence."""


def cases_from_jsonl(
    lines: Iterable[str | bytes], *, agent: str | None = None
) -> CasesRead:
    """The cases of JSON lines; blank lines are none.

    `agent` is that of the lines without the field, "" the one without a name; with
    `None` these lines are refused. A line may have 16 MiB and a file 10,000 cases; what
    comes after these is refused. Numbers, characters and depth are those that every
    upload may have. Never raises for what stands in a line.
    """
    decoder = Decoder()
    cases: list[Case] = []
    refused: list[RefusedLine] = []
    count = 0
    for number, raw in enumerate(lines, start=1):
        try:
            found = _case_in(raw, number, decoder, agent)
            if found is not None:
                _refuse_more(len(cases))
                cases.append(found)
        except _Refused as why:
            count += 1
            if len(refused) < MOST_REFUSED:
                shown = raw[:200]
                head = (
                    shown
                    if isinstance(shown, str)
                    else shown.decode("utf-8", "replace")
                )
                refused.append(RefusedLine(number, str(why), excerpt(head)))
    notes = tuple(note.sentence for note in decoder.notes())
    return CasesRead(tuple(cases), tuple(refused), count, notes)


def cases_as_jsonl(cases: Iterable[Case]) -> Iterator[str]:
    """One line for each case, with its end of line; `cases_from_jsonl` reads them back.

    Fields that say nothing are left out. Halves of surrogate pairs are shown, as they
    are in every upload. Raises `ValueError` for a number that JSON does not know.
    """
    for case in cases:
        value = json.loads(json.dumps(msgspec.to_builtins(case), allow_nan=False))
        said = {
            name: held
            for name, held in value.items()
            if name == "agent" or held != _NOTHING[name]
        }
        yield json.dumps(made_visible(said), ensure_ascii=False) + "\n"


def _case_in(
    raw: str | bytes, number: int, decoder: Decoder, agent: str | None
) -> Case | None:
    """The case of a line, `None` for a blank one."""
    text = _text(raw, number)
    return _case(_decoded(decoder, text, number), agent) if text else None


def _refuse_more(count: int) -> None:
    if count >= MOST_CASES:
        raise _Refused(f"A file may hold at most {MOST_CASES:,} cases.")


def _text(raw: str | bytes, number: int) -> str:
    if len(raw) > LONGEST_LINE:
        raise _Refused(f"The line is longer than {LONGEST_LINE // 1024**2} MiB.")
    if isinstance(raw, bytes):
        try:
            raw = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise _Refused("The line is not UTF-8 text.") from None
    return (raw.removeprefix("\ufeff") if number == 1 else raw).strip()


def _decoded(decoder: Decoder, text: str, number: int) -> Any:
    try:
        value, end = decoder.decode(text, 0, number)
    except RefusedValue as refusal:
        raise _Refused(str(refusal)) from None
    except json.JSONDecodeError as error:
        raise _Refused(why_not_json(error, at_end=error.pos >= len(text))) from None
    if text[end:].strip():
        raise _Refused("Something follows the JSON object on the same line.")
    return value


def _case(value: Any, agent: str | None) -> Case:
    if not isinstance(value, dict):
        raise _Refused("A case is a JSON object; this line holds another value.")
    _refuse_strangers(value, _KNOWN, "")
    for name, known in _PARTS.items():
        for place, part in enumerate(value.get(name) or ()):
            if isinstance(part, dict):
                _refuse_strangers(part, known, f"{name}[{place}].")
    if agent is None and "agent" not in value:
        raise _Refused("“agent” is missing: which agent is run?")
    try:
        case = msgspec.convert({"agent": agent, **value}, Case)
    except msgspec.ValidationError as error:
        raise _Refused(_in_words(str(error))) from None
    _refuse_empty(case)
    return case


def _refuse_strangers(value: dict[str, Any], known: tuple[str, ...], at: str) -> None:
    for name in value:
        if name not in known:
            raise _Refused(
                f"“{at}{name[:60]}” is no field of a case; the fields there are "
                f"{', '.join(known)}."
            )


def _refuse_empty(case: Case) -> None:
    if case.input is None and not case.messages:
        raise _Refused("There is neither “input” nor “messages”: what is it asked?")
    for place, message in enumerate(case.messages):
        role = message.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            raise _Refused(
                f"“messages[{place}].role” is none of {', '.join(sorted(_ROLES))}."
            )
    if any(not tool.name.strip() for tool in case.tools):
        raise _Refused("A tool among “tools” has no name.")
    if any(not call.tool.strip() for call in case.calls):
        raise _Refused("A call among “calls” names no tool.")


def _in_words(said: str) -> str:
    what, _, place = said.partition(" - at `$")
    field = place.strip("`.").strip()
    where = f" in “{field}”" if field else ""
    return f"{what.rstrip('.')}{where}."
